"""A maker's days: by hand, against a loop over single fills, and what is not known."""

import numpy as np
import pandas as pd
import pytest

from toolkit.execution import maker_days

from .examples import DAY, HOUR, MONDAY, times, wrong_errors


def fills_of(*rows, coin="XYZ"):
    """Return fills from (ms after Monday, side, px, sz, crossed, start position, fee)."""
    names = ["ms", "side", "px", "sz", "crossed", "start_position", "fee"]
    frame = pd.DataFrame(rows, columns=names).assign(coin=coin, closed_pnl=0.0)
    return frame.assign(time=times(MONDAY + frame.pop("ms")))


def mids_of(*rows, coin="XYZ"):
    ms, px = zip(*rows, strict=True)
    return pd.DataFrame({"coin": coin, "time": times(MONDAY + np.array(ms)), "mid_px": px})


# Bought 2 at 99 as a maker with the mid at 100, which is 98 after 10 s and 103 at midnight. Sold 1
# at 105 as a taker with the mid at 106 on Tuesday, which ends at 104. Opened with 3.
ROWS = fills_of(
    (HOUR, "B", 99.0, 2.0, False, 3.0, -0.2), (DAY + HOUR, "A", 105.0, 1.0, True, 5.0, 0.5)
)
PRICES = mids_of(
    (HOUR - 1, 100.0), (HOUR + 9_000, 98.0), (DAY - 500, 103.0), (DAY + HOUR - 1, 106.0),
    (2 * DAY - 100, 104.0),
)  # fmt: skip
PARTS = ["spread", "taking", "adverse_10s", "inventory", "rebates", "fees"]


def test_two_days_by_hand():
    """Monday: 3 held gain 9, 2 bought at 99 gain 8; Tuesday: 5 gain 15, 1 sold at 105 loses 1."""
    paid = pd.DataFrame({"coin": "XYZ", "time": times(MONDAY + np.array([2, 25]) * HOUR),
                         "usdc": [-0.3, 0.1]})  # fmt: skip
    found = maker_days(ROWS, PRICES, paid, ["5s", "10s"])
    assert found[PARTS].values.tolist() == [
        [2, 0, -4, 19, pytest.approx(0.2), 0],
        [0, -1, 0, 7, 0, -0.5],
    ]
    assert found["adverse_5s"].tolist() == [0, 0]  # no mid after the fill yet
    assert found["funding"].tolist() == [-0.3, 0.1]
    assert found["net"].tolist() == pytest.approx([17 + 0.2 - 0.3, 5 * 104 - 5 * 103 + 1 - 0.4])
    assert found["day"].tolist() == times(MONDAY + DAY * np.array([0, 1])).tolist()
    assert found[["fills", "volume", "unpriced", "gaps"]].values.tolist() == [
        [1, 198, 0, 0],
        [1, 105, 0, 0],
    ]
    assert found["mark_age_seconds"].tolist() == pytest.approx([0.499, 0.099])
    named = maker_days(ROWS.assign(user="0xA"), PRICES, paid, by=["user"])
    assert named[["user", "fills", "funding"]].values.tolist() == [["0xa", 2, pytest.approx(-0.2)]]


def test_parts_equal_a_loop_over_fills():
    """Three accounts, two coins, six days: net is cash plus positions at mids."""
    rng = np.random.default_rng(4)
    frames, truth = [], {}
    prices = pd.concat(
        [mids_of(*zip(range(0, 6 * DAY, 30_000), 100 + np.cumsum(rng.normal(0, 0.05, 6 * 2_880)),
                      strict=True), coin=coin) for coin in ("ABC", "XYZ")]
    )  # fmt: skip
    at = {coin: own.set_index(own["time"].array.asi8)["mid_px"] for coin, own in
          prices.groupby("coin")}  # fmt: skip
    for user in ("0xa", "0xb", "0xc"):
        for coin, mids in at.items():
            ms = np.sort(rng.choice(5 * DAY, 40, replace=False)) + 60_000
            side, sz = rng.choice(["A", "B"], 40), rng.integers(1, 5, 40)
            change = np.where(side == "B", sz, -sz)
            held = np.cumsum(change)
            px = np.array([mids.loc[: MONDAY + t].iloc[-1] for t in ms]) + rng.normal(0, 0.1, 40)
            rows = zip(ms, side, px, sz, rng.random(40) < 0.3, held - change, rng.normal(0, 1, 40),
                       strict=True)  # fmt: skip
            frames.append(fills_of(*rows, coin=coin).assign(user=user))
            end = mids.loc[: MONDAY + (ms[-1] // DAY + 1) * DAY - 1].iloc[-1]
            truth[user, coin] = held[-1] * end - (change * px).sum() - frames[-1]["fee"].sum()
    rows = pd.concat(frames).sample(frac=1, random_state=1)
    found = maker_days(rows, prices, by=["user", "coin"]).set_index(["user", "coin"])
    assert found["net"].to_dict() == pytest.approx(truth)
    by_day = maker_days(rows, prices)
    parts = ["spread", "taking", "adverse_300s", "inventory", "rebates", "fees"]
    assert by_day[parts].sum(axis=1).tolist() == pytest.approx(by_day["net"].tolist())
    assert by_day["net"].sum() == pytest.approx(sum(truth.values()))
    assert found["unpriced"].sum() == 0


def test_unpriced_fills_are_inventory():
    """Without a mid before it, off the book, or of unknown side, a fill's gain is inventory."""
    rows = pd.concat([ROWS.iloc[:1]] * 3).assign(start_position=[3.0, 5.0, 7.0])
    rows["time"] += pd.to_timedelta([0, 0, 12], unit="h")
    rows["crossed"] = [None, False, False]
    rows["dir"] = ["Open Long", "Auto-Deleveraging", "Open Long"]
    row = maker_days(rows, PRICES, horizons=["10s"]).iloc[0]
    assert row[["spread", "taking", "adverse_10s"]].tolist() == [0, 0, 0]
    assert row["inventory"] == 3 * 3 + 6 * (103 - 99)
    assert row["unpriced"] == 3


def test_missing_fills_and_marks_are_said():
    """A position that jumps by 1 is counted; a day without any mid has no inventory."""
    gap = maker_days(ROWS.assign(start_position=[3.0, 6.0]), PRICES)
    assert gap["gaps"].tolist() == [0, 1]
    blind = maker_days(ROWS, PRICES.iloc[3:], horizons=["10s"])
    assert blind["net"].isna().tolist() == [True, True]
    assert blind["fees"].tolist() == [0, -0.5]


def test_errors_of_maker_days():
    both = ROWS.iloc[[0, 0]].assign(side=["A", "B"], tid=7)
    table = [
        (lambda: maker_days(ROWS, PRICES, by="hour"), ValueError, "'hour'"),
        (lambda: maker_days(ROWS, PRICES, horizons=[0]), ValueError, "each of horizons"),
        (lambda: maker_days(ROWS, ROWS), ValueError, "bid or an ask"),
        (lambda: maker_days(both, PRICES), ValueError, "several accounts"),
    ]  # fmt: skip
    assert wrong_errors(table) == []
