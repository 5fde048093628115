"""Implementation shortfall: hand-worked parts, the identity of their sum, what is left out."""

import warnings

import numpy as np
import pandas as pd
import pytest

from toolkit.errors import HistoryWarning, ToolkitError
from toolkit.execution import shortfall


def at(*ms):
    return pd.to_datetime(list(ms), unit="ms", utc=True)


def events(oid, side, size, *steps):
    """Return the events of one order from (status, ms, open size)."""
    status, ms, rest = zip(*steps, strict=True)
    return pd.DataFrame(
        {"oid": oid, "coin": "XYZ", "side": side, "orig_sz": size, "status": status, "sz": rest,
         "timestamp": at(*[ms[0]] * len(ms)), "status_timestamp": at(*ms), "order_type": "Limit",
         "is_trigger": False}
    )  # fmt: skip


def fills_of(oid, side, *rows):
    """Return fills from (ms, px, sz, crossed, fee)."""
    ms, px, sz, crossed, fee = zip(*rows, strict=True)
    return pd.DataFrame(
        {"oid": oid, "coin": "XYZ", "side": side, "px": px, "sz": sz, "crossed": crossed,
         "fee": fee, "time": at(*ms)}
    )  # fmt: skip


MIDS = pd.DataFrame({"coin": "XYZ", "time": at(900, 4_000, 8_000), "mid_px": [100.0, 99.0, 97.0]})
# A sale of 5 decided at 100; 2 rest and fill at 99.5, 1 takes at 98.5; 2 are canceled at 97.
SALE = events(1, "A", 5.0, ("open", 1_000, 5.0), ("canceled", 9_000, 2.0))
SOLD = fills_of(1, "A", (5_000, 99.5, 2.0, False, -0.1), (6_000, 98.5, 1.0, True, 0.4))


def test_quote_of_own_fill_is_no_decision_price():
    """A buy is filled at 102 in its millisecond, where a quote of 102 is its own fill."""
    mids = pd.DataFrame({"coin": "XYZ", "time": at(900, 1_000), "mid_px": [100.0, 102.0]})
    buy = events(3, "B", 1.0, ("open", 1_000, 1.0), ("filled", 1_000, 0.0))
    bought = fills_of(3, "B", (1_000, 102.0, 1.0, True, 0.0))
    row = shortfall(buy, bought, mids).orders.iloc[0]
    assert (row["decision_px"], row["delay"], row["trading"]) == (100.0, 0.0, -2.0)


def test_shortfall_of_two_parents_by_hand():
    """The sale, and a buy of 4 tokens, decided at 50: 1 rests and fills at 51, 3 take at 51.5.

    The fee of the first is 0.001 tokens, which are 0.051 USD.
    """
    day = 86_400_000
    status = (("open", day + 1_000, 4.0), ("filled", day + 4_000, 0.0))
    buy = events(2, "B", 4.0, *status).assign(coin="ABC/USDC")
    fills = ((day + 3_000, 51.0, 1.0, False, 0.001), (day + 3_500, 51.5, 3.0, True, 0.2))
    bought = fills_of(2, "B", *fills).assign(coin="ABC/USDC", fee_token=["ABC", "USDC"])
    times = at(day + 900, day + 2_500, day + 3_500)
    mids = pd.DataFrame({"coin": "ABC/USDC", "time": times, "mid_px": [50.0, 51.0, 60.0]})
    given = [pd.concat(pair) for pair in ((buy, SALE), (bought, SOLD), (mids, MIDS))]
    orders = given[0].drop(columns=["order_type", "is_trigger"])
    found = shortfall(orders, *given[1:], draws=9)
    names = ["parent", "coin", "side", "size", "filled", "maker_share"]
    names += ["decision_px", "first_px", "end_px", "delay", "trading", "opportunity", "fees"]
    rows = found.orders[[*names, "total", "total_bps"]].to_numpy().tolist()
    assert rows[0][:3] == [1, "XYZ", "A"]
    assert rows[0][3:] == pytest.approx([5, 3, 2 / 3, 100, 99, 97, -3, 0.5, -6, -0.3, -8.8, -176])
    parts = [4, 4, 0.25, 50, 51, 60, -4, -1.5, 0, -0.251, -5.751, -287.55]
    assert rows[1][:3] == [2, "ABC/USDC", "B"]
    assert rows[1][3:] == pytest.approx(parts)
    assert found.orders["placed"].tolist() == at(1_000, day + 1_000).tolist()
    assert found.orders["ended"].tolist() == at(9_000, day + 4_000).tolist()
    usd = [-7, -1, -6, -0.551, -14.551]
    assert found.params["name"].tolist() == ["delay", "trading", "opportunity", "fees", "total"]
    assert found.params["usd"].tolist() == pytest.approx(usd)
    assert found.params["estimate"].tolist() == pytest.approx([1e4 * v / 700 for v in usd])
    counts = found.params[["n", "missing", "clusters"]].drop_duplicates()
    assert counts.to_numpy().tolist() == [[2, 0, 2]]
    assert found.orders.attrs["toolkit"]["price_source"] == "mid_px"


def test_rejected_order_is_left_out():
    rejected = events(2, "B", 1.0, ("perpMarginRejected", 2_000, 1.0))
    found = shortfall(pd.concat([SALE, rejected]), SOLD, MIDS)
    assert found.orders["parent"].tolist() == [1]


def test_trigger_order_is_decided_when_triggered():
    stop = events(
        3, "A", 1.0, ("open", 1_000, 1.0), ("triggered", 4_500, 1.0), ("filled", 5_000, 0.0)
    ).assign(is_trigger=True)
    waiting = events(4, "A", 1.0, ("open", 1_000, 1.0)).assign(is_trigger=True)
    sold = fills_of(3, "A", (5_000, 98.0, 1.0, True, 0.0))
    found = shortfall(pd.concat([stop, waiting]), sold, MIDS).orders
    assert found["parent"].tolist() == [3]
    assert found["decision_px"].tolist() == [99.0]
    assert found["maker_share"].tolist() == [0.0]


def test_shortfall_of_unsized_order_is_missing():
    """Take-profit orders of a whole position state the size 0; this is no missing fill."""
    empty = events(6, "A", 0.0, ("open", 1_000, 0.0), ("canceled", 2_000, 0.0))
    found = shortfall(pd.concat([SALE, empty]), SOLD, MIDS, draws=9)
    assert found.orders["total"].isna().tolist() == [False, True]
    assert found.params["usd"].tolist() == pytest.approx([-3, 0.5, -6, -0.3, -8.8])
    assert found.params["missing"].tolist() == [1] * 5


def test_open_order_is_valued_at_last_event():
    still = events(5, "B", 2.0, ("open", 1_000, 2.0))
    row = shortfall(pd.concat([SALE, still]), SOLD, MIDS).orders.iloc[1]
    assert pd.isna(row["ended"])
    assert row["opportunity"] == 6.0  # not bought, and 3 cheaper at the last event


def test_twap_slices_are_one_order():
    slices = [events(n, "B", 1.0, ("filled", 1_000 * n, 0.0)) for n in (5, 6)]
    orders = pd.concat(slices).assign(order_type="Twap Slice")
    bought = [fills_of(n, "B", (1_000 * n, 99.0 + n, 1.0, True, 0.1)) for n in (5, 6)]
    found = shortfall(orders, pd.concat(bought).assign(twap_id=8), MIDS).orders
    assert found[["kind", "parent", "filled"]].values.tolist() == [["twap", 8, 2.0]]
    assert found["trading"].tolist() == [-(5.0 + 6.0)]
    assert found["opportunity"].tolist() == [0.0]


@pytest.mark.parametrize("columns", [{"user": ["0xa", "0xb"]}, {"coin": ["XYZ", "ABC"]}])
def test_twaps_of_two_accounts_may_share_an_id(columns):
    bought = fills_of(5, "B", (5_000, 99.0, 1.0, True, 0.0), (6_000, 99.0, 2.0, True, 0.0))
    bought = bought.assign(twap_id=8, **columns)
    mids = pd.concat([MIDS, MIDS.assign(coin="ABC")])
    found = shortfall(SALE.iloc[:0], bought, mids).orders
    assert found[["kind", "parent", "filled"]].values.tolist() == [
        ["twap", 8, 1.0],
        ["twap", 8, 2.0],
    ]
    assert found["trading"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("moment", [1_759_023_812_522, 1_759_022_773_126, 1_000])
def test_stop_that_fills_at_once_is_decided_before(moment):
    """The price of the millisecond is that of the fill itself: 50 before, sold at 49."""
    steps = (("open", moment - 900, 1.0), ("triggered", moment, 1.0), ("filled", moment, 0.0))
    stop = events(3, "A", 1.0, *steps).assign(is_trigger=True)
    mids = pd.DataFrame({"coin": "XYZ", "time": at(moment - 1, moment), "mid_px": [50.0, 48.0]})
    sold = fills_of(3, "A", (moment, 49.0, 1.0, True, 0.0))
    row = shortfall(stop, sold, mids).orders.iloc[0]
    assert row[["decision_px", "delay", "total"]].tolist() == [50.0, 0.0, -1.0]


def test_order_of_a_forced_close_is_left_out():
    forced = events(6, "B", 1.0, ("open", 1_000, 1.0), ("filled", 5_000, 0.0))
    closed = fills_of(6, "B", (5_000, 150.0, 1.0, False, 0.0)).assign(dir="Auto-Deleveraging")
    found = shortfall(pd.concat([SALE, forced]), pd.concat([SOLD, closed]), MIDS)
    assert found.orders["parent"].tolist() == [1]


def test_missing_and_foreign_fills_warn():
    with pytest.warns(HistoryWarning, match="1 of 1 order"):
        shortfall(SALE, SOLD.iloc[:1], MIDS)
    with pytest.warns(HistoryWarning, match="2 of 4 fills"):
        shortfall(SALE, pd.concat([SOLD, SOLD.assign(oid=2)]), MIDS)


def test_unknown_fill_makes_order_unknown():
    for column in ("px", "sz", "fee"):
        sold = SOLD.copy()
        sold.loc[1, column] = float("nan")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HistoryWarning)  # without sz the sizes do not add up
            found = shortfall(SALE, sold, MIDS)
        assert found.orders["total"].isna().all()
        assert found.params["missing"].tolist() == [1] * 5


def test_stale_decision_price_is_missing():
    found = shortfall(SALE, SOLD, MIDS, max_age=0.05)
    assert found.params["missing"].tolist() == [1] * 5
    assert np.isnan(found["total"])


def test_quotes_hold_until_the_end_of_an_order():
    """Nobody trades while the order rests: its end counts, at the quote from before, with its age.

    Whether the fills rested is not known, so their share is not.
    """
    book = MIDS.iloc[:1].assign(bid_px=99.9, ask_px=100.1)
    late = pd.concat([SALE.iloc[:1], SALE.iloc[1:].assign(status_timestamp=at(500_000))])
    row = shortfall(late, SOLD.assign(crossed=[None, True]), book).orders.iloc[0]
    assert row[["delay", "trading", "opportunity"]].tolist() == pytest.approx([0, -2.5, 0])
    ages = row[["decision_age_seconds", "first_age_seconds", "end_age_seconds"]]
    assert ages.tolist() == pytest.approx([0.1, 4.099, 499.1])
    assert np.isnan(row["maker_share"])
    polls = shortfall(late, SOLD, MIDS.iloc[:1]).orders
    assert polls["total"].isna().all()


def test_prices_of_trades_are_refused():
    with pytest.raises((ValueError, ToolkitError), match="bid or an ask"):
        shortfall(SALE, SOLD, SOLD[["coin", "time", "px"]])


def test_intervals_hold_planted_cost():
    """60 samples of 40 days with a planted cost: 88 % of the 95 % intervals or more hold it."""
    rng = np.random.default_rng(3)
    held = []
    day = 86_400_000
    for _ in range(60):
        n = 40
        start = 1_000 + day * np.arange(n)
        cost = 5.0 + 8.0 * rng.normal(size=n)  # bps
        orders = pd.DataFrame(
            {"oid": np.arange(n), "coin": "XYZ", "side": "B", "orig_sz": 1.0,
             "status": "filled", "timestamp": at(*start), "status_timestamp": at(*start + 9)}
        )  # fmt: skip
        fills = pd.DataFrame(
            {"oid": np.arange(n), "coin": "XYZ", "side": "B", "sz": 1.0, "crossed": True,
             "px": 100 + cost / 100, "fee": 0.02, "time": at(*start + 9)}
        )  # fmt: skip
        prices = pd.DataFrame({"coin": "XYZ", "time": at(*start - 1), "mid_px": 100.0})
        params = shortfall(orders, fills, prices, draws=199).params
        total = params.set_index("name").loc["total"]
        held.append(total["low"] <= -7.0 <= total["high"])
    assert np.mean(held) >= 0.88
