"""The fitted cost of a size: laws, likelihood, missing samples, results."""

import numpy as np
import pandas as pd
import pytest

from toolkit.slippage import asymmetry, cost, fit, heatmap
from toolkit.statistics import bootstrap_interval

from .examples import DAY, HOUR, MONDAY, times

NAN = float("nan")
SIZES = np.array([1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6])


def samples_of(ms, usd, buy, sell, half=1.0, coin="XYZ"):
    """Return slippage samples at milliseconds after Monday."""
    return pd.DataFrame(
        {
            "timestamp": times(MONDAY + np.array(ms)),
            "coin": coin,
            "half_spread_bps": half,
            "amount_usd": usd,
            "buy_slippage_bps": buy,
            "sell_slippage_bps": sell,
        }
    )


def books(days=4, *, half=1.0, a=10.0, k=0.6, sigma=0.0, end=np.inf, day_sigma=0.0, seed=0):
    """Return hourly books with the cost of the law times a factor for each book, up to `end`."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    factor = np.exp(sigma * rng.normal(size=len(hours)))
    factor = factor * np.repeat(np.exp(day_sigma * rng.normal(size=days)), 24)
    bps = (half + a * (SIZES / 1e5) ** k) * factor[:, None]
    bps = np.where(bps <= end, bps.round(2), NAN).ravel()
    ms = np.repeat(HOUR * hours, len(SIZES))
    return samples_of(ms, np.tile(SIZES, len(hours)), bps, bps, half)


def params(samples, side="buy"):
    table = fit(samples, draws=199).params
    return table[table["side"] == side].set_index("name")


def test_fit_recovers_law():
    """The costs are 0.5 + 8 * (Q / 100,000)**0.75, rounded to a hundredth."""
    found = params(books(half=0.5, a=8.0, k=0.75))
    assert found.loc["half_spread", "estimate"] == 0.5
    assert found.loc["a", "estimate"] == pytest.approx(8, abs=0.01)
    assert found.loc["k", "estimate"] == pytest.approx(0.75, abs=0.001)
    assert found.loc["sigma", "estimate"] < 0.002

    scattered = params(books(20, sigma=0.2))
    assert scattered.loc["sigma", "estimate"] == pytest.approx(0.2, rel=0.15)
    assert scattered.loc["k", "estimate"] == pytest.approx(0.6, abs=0.01)


def test_missing_samples_raise_cost():
    """Books that end at 30 bps miss expensive samples; without them the law is flatter."""
    whole = books(30, sigma=0.4)
    cut = books(30, sigma=0.4, end=30.0)
    share = cut["buy_slippage_bps"].isna().mean()
    assert 0.1 < share < 0.4
    wanted, found = params(whole)["estimate"], params(cut)["estimate"]
    dropped = params(cut.dropna(subset=["buy_slippage_bps"]))["estimate"]
    assert abs(found["k"] - wanted["k"]) < 0.03
    assert dropped["k"] < wanted["k"] - 0.05


def test_samples_without_size_are_ignored():
    rows = books(2)
    odd = rows.head(3).assign(amount_usd=[NAN, 0.0, -1.0])
    pd.testing.assert_frame_equal(params(pd.concat([rows, odd])), params(rows))


def test_rounding_does_not_bias_the_fit():
    """The costs are a few hundredths; their rounding must not change the exponent."""
    found = params(books(30, half=0.02, a=0.3, k=0.6, sigma=0.1))
    assert found.loc["k", "estimate"] == pytest.approx(0.6, abs=0.03)
    assert found.loc["a", "estimate"] == pytest.approx(0.3, rel=0.05)


def test_fit_of_one_size_is_missing():
    one_size = books()[lambda rows: rows["amount_usd"] == 1e4]
    found = fit(one_size)
    assert found.params["estimate"].isna().all()
    assert found.groups["n"].tolist() == [96, 96]
    one_day = fit(books(1, sigma=0.1)).params
    assert one_day["estimate"].notna().all()
    assert one_day[["low", "high"]].isna().all().all()


def test_fit_result_states_its_data_and_seed():
    found = fit(books(sigma=0.1), level=0.9, draws=99)
    assert found.n == 2 * 96 * len(SIZES)
    assert found.level == 0.9
    assert found["k"] == found.params.set_index(["side", "name"])["estimate"]["buy", "k"]
    assert "<script" not in fit(books().assign(coin="<script>"), draws=9)._repr_html_()
    assert found.groups[["smallest_usd", "largest_usd"]].to_numpy().tolist() == [[1e3, 1e6]] * 2
    assert not fit(books(sigma=0.1), level=0.9, draws=99, seed=1).params.equals(found.params)


def test_fitted_samples_and_bootstrap_by_hand():
    """Books of three days; beyond 10,000 USD the second and third one end early.

    The third book costs 5 bps for its only size, so a larger one costs 5 or more. In the second one
    the dollars from 10,000 to 100,000 cost 6.33 on average, so the next 900,000 cost as much.
    """
    bps = [2.0, 4.0, 10.0, 3.0, 6.0, NAN, 5.0, NAN, NAN]
    ms = DAY * np.repeat([0, 1, 2], 3)
    rows = samples_of(ms, [1e4, 1e5, 1e6] * 3, bps, [2.0, 9.0, 11.0] * 3)
    thin = rows.iloc[:1].assign(coin="ABC", buy_slippage_bps=NAN, amount_usd=7.0)
    found = fit(pd.concat([rows, thin]), level=0.8, draws=99)
    points = found.samples
    assert points.index.tolist() == list(range(8))
    table = points.set_index(["coin", "side", "amount_usd"]).sort_index()
    buys = table.loc[("XYZ", "buy")]
    assert buys["n"].tolist() == [3, 3, 3]
    assert buys["missing"].tolist() == [0, 1, 2]
    assert buys["q50"].tolist()[:2] == [3.0, 6.0]
    assert np.isnan(buys["q50"].iloc[2])
    large, small = 1e5 / 1.0006, 1e4 / 1.0003
    beyond = 1e4 * (1e6 / (large + 10 * (large - small)) - 1)
    wanted = [10 / 3, (4 + 6 + 5) / 3, (10 + beyond + 5) / 3]
    assert buys["mean"].tolist() == pytest.approx(wanted, rel=1e-9)
    assert table.loc[("XYZ", "sell"), "q50"].tolist() == [2.0, 9.0, 11.0]
    assert table.loc[("XYZ", "sell"), "mean"].tolist() == pytest.approx([2.0, 9.0, 11.0])
    assert np.isnan(table.loc[("ABC", "buy", 7.0), "mean"])
    groups = found.groups
    assert groups.iloc[:, :7].to_numpy().tolist() == [
        ["ABC", "buy", 1, 1, 1, 7, 7], ["ABC", "sell", 1, 0, 1, 7, 7],
        ["XYZ", "buy", 9, 3, 3, 1e4, 1e6], ["XYZ", "sell", 9, 0, 3, 1e4, 1e6],
    ]  # fmt: skip
    for side in ("buy", "sell"):
        blocks, drawn = found.draws["XYZ", side]
        ends = found.params.set_index(["coin", "side", "name"]).sort_index()
        for place, name in enumerate(["half_spread", "a", "k", "sigma"]):
            assert ends.loc[("XYZ", side, name), ["low", "high"]].tolist() == pytest.approx(
                list(bootstrap_interval(drawn[1:, place], blocks, 0.8, positive=name != "k"))
            )
    assert found.params.attrs["toolkit"]["level"] == 0.8


def test_blocks_of_days_change_only_intervals():
    """Six days in blocks of three are two blocks; one block has no interval."""
    rows = books(6, sigma=0.1, day_sigma=0.2)
    single, three, six = (fit(rows, draws=99, block_days=block) for block in (1, 3, 6))
    for found in (three, six):
        pd.testing.assert_series_equal(found.params["estimate"], single.params["estimate"])
    assert single.method.endswith("bootstrap by day")
    assert three.method.endswith("bootstrap by 3 days")
    assert three.params[["low", "high"]].notna().all().all()
    assert six.params[["low", "high"]].isna().all().all()
    assert cost(six, 1e5)[["low", "high"]].isna().all().all()
    assert asymmetry(rows, draws=99, block_days=3)["low"].notna().all()
    assert asymmetry(rows, draws=99, block_days=6)["low"].isna().all()
    assert (asymmetry(rows, draws=99, block_days=6)["days"] == 6).all()


def test_asymmetry_of_mixed_rows_by_hand():
    """Two coins and sizes, in no order; a repeated moment counts once, its cheapest buy.

    ABC: differences of -2, -1 and -4 on three days. XYZ: one of 0.004, which rounding explains.
    """
    rows = samples_of(
        [0, 2 * DAY, 0, 0, DAY, DAY + HOUR, 0],
        [1e4, 5e3, 5e3, 5e3, 5e3, 5e3, 1e3],
        [2.004, 1.0, 3.0, 9.0, 4.0, 4.0, NAN],
        [2.0, 5.0, 5.0, 5.0, 5.0, NAN, NAN],
        coin=["XYZ", *["ABC"] * 6],
    )
    found = asymmetry(rows, draws=500, seed=2)
    figures = ["coin", "amount_usd", "n", "buy_missing", "sell_missing", "days", "buy_bps"]
    assert list(found.columns) == [
        *figures, "sell_bps", "difference_bps", "low", "high", "buy_dearer",
    ]  # fmt: skip
    assert found[figures[:-1]].to_numpy().tolist() == [
        ["ABC", 1e3, 0, 1, 1, 0], ["ABC", 5e3, 3, 0, 1, 3], ["XYZ", 1e4, 1, 0, 0, 1],
    ]  # fmt: skip
    thin, abc, xyz = found.to_dict("records")
    assert all(np.isnan(thin[name]) for name in found.columns[6:])
    assert (abc["buy_bps"], abc["sell_bps"]) == pytest.approx((8 / 3, 5.0))
    assert abc["difference_bps"] == pytest.approx(-7 / 3)
    assert (abc["buy_dearer"], xyz["buy_dearer"]) == (0.0, 0.5)
    assert abc["low"] < -7 / 3 < abc["high"]
    assert asymmetry(rows, draws=500, seed=3).loc[1, "low"] != abc["low"]
    assert asymmetry(rows, draws=9, seed=2).loc[1, "low"] != abc["low"]
    half = asymmetry(rows, draws=500, seed=2, level=0.5).loc[1]
    assert abc["low"] < half["low"] < half["high"] < abc["high"]
    # Three days in blocks of two are two blocks; blocks of three are one.
    assert asymmetry(rows, block_days=2, draws=99)["low"].isna().tolist() == [True, False, True]
    assert asymmetry(rows, block_days=3, draws=99)["low"].isna().all()
    whole = asymmetry(rows.assign(kind=7), by="kind", draws=9)
    assert whole[["kind", "n"]].to_numpy().tolist() == [[7, 4]]
    assert str(whole["kind"].dtype) == "int64"


def test_wrong_arguments_are_named():
    for helper in (fit, asymmetry):
        for name, value in (("block_days", 0), ("level", 95)):
            with pytest.raises(ValueError, match=name):
                helper(books(1), **{name: value})
    for quantile in (50, -0.1):
        with pytest.raises(ValueError, match="quantile"):
            heatmap(books(1), quantile)


def test_heatmap_of_two_coins_by_hand():
    """Tuesday 05:00 and Sunday 23:59:59; a spread may be unknown; any share counts."""
    first, second = DAY + 5 * HOUR, 7 * DAY - 1000
    ms = [second, first, first, first + 1, first + 7 * DAY]
    buy, sell = [1.0, 3.0, 8.0, NAN, 4.0], [2.0, 5.0, 4.0, 6.0, 9.0]
    rows = samples_of(ms, 1e3, buy, sell, [4.0, 1.0, NAN, 3.0, 2.0], ["B", *"AAAA"])
    found = heatmap(rows, 0.75, by="coin")
    assert list(found.columns) == [
        "coin", "hour_of_week", "weekday", "hour_of_day", "side", "n", "missing", "missing_share",
        "half_spread_bps", "bps",
    ]  # fmt: skip
    assert found.to_numpy().tolist() == [
        ["A", 29, 1, 5, "buy", 4, 1, 0.25, 2.0, 8.0],
        ["A", 29, 1, 5, "sell", 4, 0, 0.0, 2.0, 6.0],
        ["B", 167, 6, 23, "buy", 1, 0, 0.0, 4.0, 1.0],
        ["B", 167, 6, 23, "sell", 1, 0, 0.0, 4.0, 2.0],
    ]
    assert heatmap(rows, 0, by="coin")["bps"].tolist() == [3, 4, 1, 2]
    most = heatmap(rows, 1, by="coin")["bps"].tolist()
    assert np.isnan(most[0])
    assert most[1:] == [9, 1, 2]
    assert found.attrs["toolkit"]["quantile"] == 0.75


def test_undetermined_slope_has_no_parameters():
    """Only the largest of three sizes costs more than the half spread, so any steep law fits."""
    costs = [0.5, 0.5, 0.9, 0.5, 0.5, 1.1] * 20
    rows = samples_of(DAY * (np.arange(120) // 3), [1e3, 1e4, 1e5] * 40, costs, costs, 0.5)
    found = fit(rows, draws=99)
    assert found.params["estimate"].isna().all()
    beyond = cost(found, 250_000)
    assert beyond["cost_bps"].isna().all()
    assert (beyond["range"] == "no law").all()
    within = cost(found, 100_000)
    assert within["cost_bps"].round(6).eq(1.0).all()
