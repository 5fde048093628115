"""Section 3: from flat to flat, the net PnL of an account equals its cash exactly."""

from collections import defaultdict
from decimal import Decimal

import pytest

from tests.analysis.simulated import everybody
from tests.worlds import world_of
from toolkit import pnl
from toolkit.analysis.pnl import execution_sequence
from toolkit.analysis.pnl.positions import read_position_fills, sort_by_chain
from toolkit.analysis.pnl.spot_cost_basis import find_swaps, walk_spot_fills
from toolkit.rules.spot_cost import SWAPS


@pytest.fixture(scope="module")
def tables():
    return everybody(world_of("tiny"))


def cash_of(fill):
    """Return the cash of a fill in USD, less its fee in USD."""
    notional = fill.px * fill.sz
    if fill.dir in SWAPS:
        notional = Decimal(0)  # tokens against tokens
    is_bought = fill.side == "B" and not fill.coin.startswith("#")
    fee = Decimal(0) if is_bought else fill.fee
    return (-notional if fill.side == "B" else notional) - fee


def remaining_at_cost(spot):
    """Return the cost of each account's last tokens, and which of them had a gap."""
    frame, _ = read_position_fills(spot)
    read = execution_sequence.integer_fills(frame, {})
    order = sort_by_chain(spot, frame, read)
    walk = walk_spot_fills(read, order, find_swaps(frame, read))
    names = list(zip(frame["user"].to_list(), frame["coin"].to_list(), strict=True))
    unit = Decimal(1).scaleb(-read.px_decimals - read.size_decimals)
    cost = {names[row]: walk.basis[row].cost * unit for row in order}
    odd = {names[row] for row in walk.gap}
    return cost, odd | {names[row] for row in order if walk.basis[row].unknown}


def test_spot_net_equals_cash(tables):
    """For each account: a sale of the remaining tokens at cost would make it flat."""
    spot = tables.fills[tables.fills["coin"].str.contains("^@|/|^#")]
    costs, odd = remaining_at_cost(spot)
    cash: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for fill in spot.itertuples():
        cash[fill.user, fill.coin] += cash_of(fill)
    nets = pnl.attribution(spot, by=["user", "coin"]).set_index(["user", "coin"])["net"]
    assert set(SWAPS) <= set(spot["dir"])
    pairs = [key for key in cash if not key[1].startswith("#")]
    assert len([key for key in pairs if key not in odd]) > 2
    for key in pairs:
        assert key in odd or nets[key] == cash[key] + costs[key], key
    # Swaps move cost between outcomes, so only all outcomes of an account are flat together.
    users = {user for user, coin in cash if coin.startswith("#")}
    assert len(users) > 2
    for user in users:
        mine = [key for key in cash if key[0] == user and key[1].startswith("#")]
        assert not odd & set(mine)
        assert sum(nets[key] for key in mine) == sum(cash[key] + costs[key] for key in mine), user


def test_flat_spot_trip_equals_cash(tables):
    """If a trip begins and ends flat, its net equals its cash without any cost basis."""
    spot = tables.fills[tables.fills["coin"].str.contains("^@|/|^#")]
    spot = spot[~spot["dir"].isin(SWAPS)]
    trips = pnl.round_trips(tables.fills[tables.fills["coin"].str.contains("^@|/|^#")])
    closed = trips[(trips["status"] == "closed") & trips["entry_px"].notna()]
    closed = closed[closed["exit_px"].notna()]
    assert len(closed) > 2
    for trip in closed.itertuples():
        mine = spot[(spot["user"] == trip.user) & (spot["coin"] == trip.coin)]
        during = mine[(mine["time"] >= trip.opened) & (mine["time"] <= trip.closed)]
        assert trip.net == sum(map(cash_of, during.itertuples())), trip


def test_perp_net_equals_parts(tables):
    """Net is closed PnL - fees + funding; with unrealised PnL it is the change of equity."""
    fills, paid = tables.fills, tables.funding
    perps = fills[~fills["coin"].str.contains("^@|/|^#")]
    rows = pnl.attribution(perps, paid, by="user").set_index("user")
    assert len(rows) > 20
    for user, row in rows.iterrows():
        mine = perps[perps["user"] == user]
        got = sum(paid[paid["user"] == user]["usdc"], Decimal(0))
        assert row["net"] == sum(mine["closed_pnl"]) - sum(mine["fee"]) + got, user
        assert row["funding_outside"] == 0


def test_audit_confirms_closed_pnl_of_spot(tables):
    spot = tables.fills[tables.fills["coin"].str.contains("^@|/|^#")]
    audited = pnl.audit(spot, {})
    known = audited["difference"].notna()
    assert known.mean() > 0.5
    assert (audited.loc[known, "difference"] == 0).all()
    assert (audited.loc[known, "expected_closed_pnl"] != 0).sum() > 100
