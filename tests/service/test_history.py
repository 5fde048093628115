"""Fills, orders, funding and ledger of the service, compared with the simulation's tables."""

from toolkit.contract.records import Fill
from toolkit.service.aggregation import aggregate_fills


def fill(**fields):
    row = {"coin": "BTC", "px": "100.0", "sz": "1.0", "side": "B", "time": 5}
    row |= {"start_position": "0.0", "dir": "Open Long", "closed_pnl": "0.0", "hash": "0x1"}
    row |= {"oid": 1, "crossed": True, "fee": "0.1", "tid": 1, "fee_token": "USDC"}
    return Fill(**{**row, "twap_id": None, "tx_index": 0, **fields})


def test_fills_of_different_orders_stay_separate():
    rows = [
        fill(oid=1),
        fill(oid=2),
        fill(oid=1, side="A"),
        fill(oid=1, coin="ETH"),
        fill(oid=3, crossed=False, tx_index=1),
        fill(oid=3, crossed=False, tx_index=2),
    ]
    assert aggregate_fills(rows) == rows
    assert len(aggregate_fills([fill(oid=3, crossed=False), fill(oid=3, crossed=False)])) == 1
    assert len(aggregate_fills([fill(oid=3, tx_index=1), fill(oid=3, tx_index=2)])) == 1


def test_conversions_stay_separate():
    """A trade and conversions with the same order id are not merged."""
    leg = fill(coin="#1230", px="0.5", dir="Split Outcome", tid=0, fee="0.0")
    rows = [leg, fill(coin="#1230", px="0.4", dir="Buy"), fill(coin="#1231", px="0.5", tid=0)]
    assert aggregate_fills(rows) == rows
    other = fill(coin="#1230", px="0.25", dir="Negate Outcome", tid=0, tx_index=7, hash="0x2")
    assert aggregate_fills([leg, other]) == [leg, other]


def test_inclusive_funding_cursor_repeats_last_row(asker, world):
    """The address in a cursor may have any case."""
    builder = world.builders[0]
    first = asker.ask("builderApprovedFundingByTime", builder=builder, startTime=0, limit=5)
    last = first[-1]
    for user in (last["user"], "0x" + last["user"][2:].upper()):
        cursor = f"{last['time']}_{user}_{last['delta']['coin']}"
        asked = {"builder": builder, "cursor": cursor, "limit": 3}
        again = asker.ask("builderApprovedFundingByTime", inclusive=True, **asked)
        assert again[0] == last
        assert asker.ask("builderApprovedFundingByTime", **asked)[:2] == again[1:]
