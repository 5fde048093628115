"""Price impact: by hand, a planted law and kernel, what belongs to an order."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.interval_coverage import hold_share, impact_tape
from toolkit.errors import MissingDirections

SECOND = 1_000


def at(*seconds):
    return pd.to_datetime([int(SECOND * each) for each in seconds], unit="ms", utc=True)


def fills_of(oids, seconds, **columns):
    rows = pd.DataFrame(
        {"oid": oids, "coin": "XYZ", "px": 100.0, "sz": 1.0, "side": "B", "crossed": True,
         "time": at(*seconds)}
    )  # fmt: skip
    return rows.assign(**columns)


def mids(*rows):
    seconds, px = zip(*rows, strict=True)
    return pd.DataFrame({"coin": "XYZ", "time": at(*seconds), "mid_px": px})


PRICES = mids((0, 100.0), (14, 100.1), (24, 100.3), (34, 100.6))


def test_fills_of_one_order_are_one_parent():
    rows = fills_of([7, 7], [5, 20], sz=[2.0, 3.0])
    parents = tk.execution.impact(rows, PRICES, volume={"XYZ": 1e4}).parents
    assert parents[["parent", "fills", "usd", "share"]].values.tolist() == [[7, 2, 500, 0.05]]
    # From the mid before second 5 to the one of second 24, after the last fill.
    assert parents["impact_bps"].tolist() == pytest.approx([30.0])


def test_slices_of_twap_are_one_parent():
    rows = fills_of([7, 8], [5, 20], twap_id=[3, 3])
    parents = tk.execution.impact(rows, PRICES).parents
    assert parents[["kind", "parent", "fills"]].values.tolist() == [["twap", 3, 2]]


def test_maker_fills_do_not_count():
    rows = fills_of([7, 8], [5, 20], crossed=[False, True])
    assert tk.execution.impact(rows, PRICES).parents["parent"].tolist() == [8]
    unknown = rows.assign(crossed=pd.array([None, True], dtype="boolean"))
    assert tk.execution.impact(unknown, PRICES).parents["parent"].tolist() == [8]


def test_conversions_and_settlements_are_no_orders():
    rows = fills_of([7, 8, 9, 10], [5, 6, 7, 20], side=["B", "A", "A", "B"])
    rows["dir"] = ["Open Long", "Split Outcome", "Settlement", "Close Short"]
    found = tk.execution.impact(rows, PRICES, lags=1)
    assert found.parents["parent"].tolist() == [7, 10]
    # 200 USD in twice 15 seconds are 576,000 USD a day.
    assert found.parents["share"].tolist() == pytest.approx([100 / 576_000] * 2)
    assert found.lags["autocorrelation"].tolist() == [1.0]
    alone = tk.execution.impact(rows.iloc[[0, 3]], PRICES, lags=1)
    pd.testing.assert_frame_equal(found.lags, alone.lags)
    rows["dir"] = pd.array([None] * 4, dtype="str")
    with pytest.warns(MissingDirections, match=r"^fills: column dir is missing"):
        assert len(tk.execution.impact(rows, PRICES, lags=1).parents) == 4


def test_order_without_user_counts():
    rows = fills_of([7, 8, 9], [5, 13, 50], user=["0xa", None, None])
    found = tk.execution.impact(rows, PRICES)
    assert found.parents["user"].tolist() == ["0xa", "", ""]
    assert found.params[["n", "missing"]].iloc[0].tolist() == [2, 1]


def test_price_from_before_last_fill_is_missing():
    found = tk.execution.impact(fills_of([7], [36]), PRICES)
    assert found.parents["impact_bps"].isna().all()
    assert found.params["missing"].tolist() == [1] * 3


def test_response_by_hand():
    """Buy, buy, sell at mids 100, 101, 103.02: changes of +1 % and +2 %."""
    rows = fills_of([1, 2, 3], [1, 2, 3], side=["B", "B", "A"])
    prices = mids((0, 100.0), (1.5, 101.0), (2.5, 103.02))
    lags = tk.execution.impact(rows, prices, lags=2, horizon=0.1).lags
    assert lags["response_bps"].tolist() == pytest.approx([150.0, 350.0])
    assert lags["autocorrelation"].tolist() == pytest.approx([0.0, -1.0])
    assert lags["n"].tolist() == [2, 1]


def test_coins_are_apart():
    rows, prices = impact_tape(np.random.default_rng(3), days=4)
    other = [frame.assign(coin="ABC") for frame in (rows, prices)]
    other[0]["oid"] += 10**6
    both = tk.execution.impact(pd.concat([rows, other[0]]), pd.concat([prices, other[1]]))
    alone = tk.execution.impact(rows, prices)
    assert both.lags["n"].tolist() == (2 * alone.lags["n"]).tolist()
    names = ["response_bps", "autocorrelation", "kernel_bps"]
    pd.testing.assert_frame_equal(both.lags[names], alone.lags[names])


def test_kernel_and_sides_give_response():
    """R(l) = G(l) + sum of C(n) * (G(l - n) or G(l + n) - G(n)): Bouchaud et al. (2004)."""
    rows, prices = impact_tape(np.random.default_rng(4))
    lags = tk.execution.impact(rows, prices, lags=60).lags
    kernel = np.diff(lags["kernel_bps"], prepend=0.0)
    sides = np.concatenate([[1.0], lags["autocorrelation"]])
    places = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    made = np.cumsum(sides[places] @ kernel)
    assert lags["response_bps"].tolist() == pytest.approx(made.tolist())


def test_equal_sides_have_no_kernel():
    rows = fills_of([1, 2, 3], [1, 2, 3])
    prices = mids((0, 100.0), (1.5, 101.0), (2.5, 103.0))
    assert tk.execution.impact(rows, prices, lags=2).lags["kernel_bps"].isna().all()


# Shares of a day's volume: of 1e4 USD for XYZ, of 1e6 USD for ABC.
SHARES = {"XYZ": [0.01, 0.04, 0.0025, 0.09, 0.16], "ABC": [0.002, 0.008, 0.02, 0.0001, 0.05]}
VOLUMES = {"XYZ": 1e4, "ABC": 1e6}


def lawful_tape(exponent, bps=8.0):
    """Return orders on five days that move the price by some bps * (share / 1 %)**exponent."""
    fills, prices = [], []
    for first, (coin, shares) in enumerate(SHARES.items()):
        for day, share in enumerate(shares):
            second, sign = 86_400.0 * day + 1_000 * first + 100, 1 if day % 2 else -1
            oid = 2**60 + 10 * day + first
            fills.append((oid, coin, share * VOLUMES[coin] / 50, "B" if sign > 0 else "A", second))
            moved = 50 * (1 + sign * bps / 1e4 * (share / 0.01) ** exponent)
            prices += [(coin, second - 1, 50.0, 50.0), (coin, second + 5, moved, 70.0)]
    names = ["oid", "coin", "sz", "side", "time"]
    rows = pd.DataFrame([*fills[::-1], (7, "OLD", 1.0, "B", 50.0)], columns=names)
    rows = rows.assign(time=at(*rows["time"]), px=50.0, crossed=True)
    table = pd.DataFrame(prices, columns=["coin", "time", "mark_px", "mid_px"])
    return rows, table.assign(time=at(*table["time"]))


def test_law_of_two_coins_by_hand():
    """An exponent between two of those that are searched; 8 bps for 1 % of a day's volume."""
    fills, prices = lawful_tape(0.503)
    options = {"volume": VOLUMES, "price": "mark_px", "draws": 99, "seed": 2}
    found = tk.execution.impact(fills, prices, **options)
    params = found.params.set_index("name")
    assert params["n"].tolist() == [10] * 3
    assert params["missing"].tolist() == [1] * 3
    assert params["clusters"].tolist() == [5] * 3
    assert params.loc["exponent", "estimate"] == pytest.approx(0.503, abs=5e-4)
    assert params.loc["exponent", ["low", "high"]].tolist() == pytest.approx([0.503] * 2, abs=5e-3)
    assert params.loc["impact_bps", "estimate"] == pytest.approx(8, rel=1e-2)
    assert params.loc["root_bps", "estimate"] == pytest.approx(8, rel=1e-2)
    parents = found.parents
    assert parents.index.tolist() == list(range(11))
    assert parents["coin"].tolist() == ["OLD", *["XYZ", "ABC"] * 5]
    assert parents["parent"].tolist()[1:3] == [2**60, 2**60 + 1]
    assert parents["share"].tolist()[1::2] == pytest.approx(SHARES["XYZ"])
    assert parents["share"].tolist()[2::2] == pytest.approx(SHARES["ABC"])
    assert parents["after_px"].isna().tolist() == [True] + [False] * 10
    assert (parents["impact_bps"].iloc[1:] > 0).all()
    shares = sorted([*SHARES["XYZ"], *SHARES["ABC"]])
    groups = [[0], [1], [2], [3, 4], [5], [6], [7], [8, 9]]
    assert found.sizes["n"].tolist() == [len(group) for group in groups]
    means = [np.exp(np.mean([np.log(shares[k]) for k in group])) for group in groups]
    assert found.sizes["share"].tolist() == pytest.approx(means)
    impacts = [np.mean([8 * (shares[k] / 0.01) ** 0.503 for k in group]) for group in groups]
    assert found.sizes["estimate"].tolist() == pytest.approx(impacts)
    pairs = found.sizes["n"] == 2
    assert found.sizes["low"].notna().tolist() == pairs.tolist()
    assert (found.n, found.level, found.price_source) == (10, 0.95, "mark_px")
    assert found.method.endswith("bootstrap by day; prices: mark_px")
    assert found.coins["n"].tolist() == [5, 0, 5]
    for table in (found.params, found.parents, found.coins, found.sizes, found.lags):
        assert table.attrs["toolkit"]["price_source"] == "mark_px"


def test_coins_of_two_volatilities_have_one_exponent():
    """ABC moves ten times as much for a share as XYZ does, and has smaller orders."""
    fills, prices = lawful_tape(0.5)
    is_wild = prices["coin"] == "ABC"
    moved = np.where(is_wild, 50 + 10 * (prices["mark_px"] - 50), prices["mark_px"])
    options = {"volume": VOLUMES, "price": "mark_px", "draws": 9}
    found = tk.execution.impact(fills, prices.assign(mark_px=moved), **options)
    assert found["exponent"] == pytest.approx(0.5, abs=1e-3)
    assert found["impact_bps"] == pytest.approx((8 + 80) / 2, rel=1e-2)
    laws = found.coins.set_index("coin").drop("OLD")
    assert laws["impact_bps"].to_dict() == pytest.approx({"ABC": 80, "XYZ": 8}, rel=1e-2)
    assert laws["y_root"].tolist() == pytest.approx(
        (laws["impact_bps"] / laws["volatility_bps"] / 0.1).tolist(), rel=1e-2
    )


def test_volatile_coin_does_not_decide_the_exponent():
    """XYZ follows a square root; ABC is noise of ten times its size, in as many orders."""
    rng = np.random.default_rng(6)
    fills, prices = impact_tape(rng, days=30)
    other = [frame.assign(coin="ABC") for frame in impact_tape(rng, days=30)]
    other[1]["mid_px"] = 100 + 10 * (other[1]["mid_px"].sample(frac=1, random_state=1).array - 100)
    rows, mixed = pd.concat([fills, other[0]]), pd.concat([prices, other[1]])
    found = tk.execution.impact(rows, mixed, volume={"XYZ": 1e8, "ABC": 1e8}, draws=9)
    assert found["exponent"] == pytest.approx(0.5, abs=0.1)


def test_volatility_and_kyles_lambda_by_hand():
    """Changes of +1 %, 0 and -2 % in steps of 300, 300 and 600 s; only the last price of 5 minutes.

    Takers buy 2 % and sell 1 % of a day's volume in the first and the last step.
    """
    prices = mids((0, 90.0), (1, 100.0), (300, 101.0), (600, 101.0), (1_200, 98.98))
    rows = fills_of([1, 2, 3], [200, 250, 700], sz=[3.0, 1.0, 1.0], side=["B", "A", "A"])
    row = tk.execution.impact(rows, prices, volume={"XYZ": 1e4}, max_age="1h").coins.iloc[0]
    assert row["volatility_bps"] == pytest.approx(
        (100**2 + 200**2) ** 0.5 * (86_400 / 1_199) ** 0.5
    )
    assert row["kyle_bps"] == pytest.approx((2 * 100 + 1 * 200) / 5)
    assert np.isnan(row["kyle_low"])
    assert (row["n"], row["volume_usd"]) == (0, 1e4)  # no price shows the impact of an order


def test_part_of_a_day_is_no_day():
    """Six orders, one each 20 minutes, are a volume of two hours; a day has 12 times as much."""
    sizes = [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]
    rows = fills_of(range(6), [1200 * n + 60 for n in range(6)], sz=sizes)
    prices = [(1200 * n + k, 100.0 + k * size**0.5 / 100) for n, size in enumerate(sizes)
              for k in (0, 1)]  # fmt: skip
    prices = mids(*((second + 59.5 + 1.0 * (px > 100), px) for second, px in prices))
    parents = tk.execution.impact(rows, prices, horizon="1s").parents
    assert parents["share"].tolist() == pytest.approx([size / 91 / 12 for size in sizes])


def test_equal_shares_are_one_group():
    """Orders of one size are one group; a law of less than 1 bps is a law, too."""
    fills, prices = lawful_tape(0.5, bps=0.25)
    # The shares of 0.002 and 0.0025 become 0.0001, too, with the same prices as before.
    fills.loc[fills["sz"] == 0.002 * 1e6 / 50, "sz"] = 0.0001 * 1e6 / 50
    fills.loc[fills["sz"] == 0.0025 * 1e4 / 50, "sz"] = 0.0001 * 1e4 / 50
    found = tk.execution.impact(fills, prices, volume=VOLUMES, price="mark_px", draws=9)
    assert found.sizes["n"].tolist() == [3, 1, 1, 1, 1, 1, 1, 1]
    mean = 0.25 * (0.1 + 0.2**0.5 + 0.5) / 3
    assert found.sizes["estimate"].iloc[0] == pytest.approx(mean)
    weak = tk.execution.impact(*lawful_tape(0.5, 0.25), volume=VOLUMES, price="mark_px", draws=9)
    assert weak["exponent"] == pytest.approx(0.5, abs=1e-3)
    assert weak["impact_bps"] == pytest.approx(0.25, rel=1e-3)


def test_exponent_is_bounded_by_search():
    """Of an exponent of 3 only 2 is searched; its interval ends there, too."""
    found = tk.execution.impact(*lawful_tape(3.0), volume=VOLUMES, price="mark_px", draws=99)
    row = found.params.set_index("name").loc["exponent"]
    assert row[["estimate", "high"]].tolist() == [2.0, 2.0]
    assert row["low"] <= 2.0
    flat = tk.execution.impact(*lawful_tape(-1.0), volume=VOLUMES, price="mark_px", draws=99)
    row = flat.params.set_index("name").loc["exponent"]
    assert row[["estimate", "low"]].tolist() == [-0.5, -0.5]


def test_wrong_arguments_of_impact_are_named():
    fills, prices = lawful_tape(0.5)
    for name, wrong in (("max_age", 0), ("horizon", "soon"), ("lags", 0), ("level", 95)):
        with pytest.raises(ValueError, match=f"^{name}.* must"):
            tk.execution.impact(fills, prices, **{name: wrong})
    with pytest.raises(ValueError, match="bid or an ask"):  # prices of trades
        tk.execution.impact(fills, fills[["coin", "time", "px"]])


def test_prices_without_impact_have_no_law():
    rows, prices = impact_tape(np.random.default_rng(8), days=4)
    found = tk.execution.impact(rows, prices.assign(mid_px=100.0))
    assert np.isnan(found["exponent"])
    assert found["root_bps"] == 0


def test_intervals_hold_planted_law_and_kernel():
    assert hold_share("impact", 12) >= 0.88
