"""Slippage curves: examples by hand, and numpy."""

import numpy as np
import pytest

from toolkit.slippage import curve

from .examples import DAY, MONDAY, times
from .test_slippage_fit import samples_of

NAN = float("nan")
COLUMNS = ["coin", "amount_usd", "side", "n", "missing", "missing_share", "q10", "q50", "q90"]


def samples(n=200, seed=4):
    rng = np.random.default_rng(seed)
    coin, usd = rng.choice(["BTC", "THIN"], n), rng.choice([1e3, 1e6], n)
    costs = (rng.gamma(shape, size=n).round(2) for shape in (2.0, 3.0))
    frame = samples_of(900_000 * np.arange(n), usd, *costs, rng.random(n).round(2), coin)
    frame = frame.astype({"coin": "str"}).assign(dex="main")
    frame.loc[rng.random(n) < 0.3, "buy_slippage_bps"] = NAN
    return frame


def test_curve_by_hand():
    """Samples 1, 2, 3, 4 and a missing one: the median is 3, and the 0.9 quantile is missing."""
    buy, sell = [4.0, NAN, 1.0, 3.0, 2.0], [5.0, 4.0, 1.0, 3.0, 2.0]
    frame = samples_of(range(5), 1000.0, buy, sell, [0.5, 0.1, 0.3, 0.2, 0.4])
    buy, sell = curve(frame).to_dict("records")
    assert (buy["side"], buy["n"], buy["missing"], buy["missing_share"]) == ("buy", 5, 1, 0.2)
    assert (buy["q10"], buy["q50"], buy["half_spread_bps"]) == (1.0, 3.0, 0.3)
    assert np.isnan(buy["q90"])
    assert [sell[name] for name in ("missing", "q10", "q50", "q90")] == [0, 1.0, 3.0, 5.0]
    assert list(buy) == [*COLUMNS, "half_spread_bps"]


def test_quantiles_against_numpy():
    frame = samples(2000)
    quantiles = (0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0)
    for row in curve(frame, quantiles).to_dict("records"):
        mine = frame[(frame["coin"] == row["coin"]) & (frame["amount_usd"] == row["amount_usd"])]
        bps = mine[f"{row['side']}_slippage_bps"].fillna(np.inf)
        assert (row["n"], row["missing"]) == (len(bps), np.isinf(bps).sum())
        wanted = np.quantile(bps, quantiles, method="inverted_cdf")
        wanted[np.isinf(wanted)] = NAN
        found = [row[f"q{100 * q:g}"] for q in quantiles]
        assert found == pytest.approx(wanted.tolist(), nan_ok=True, rel=0)


def test_side_that_is_never_filled_has_no_quantiles():
    thin = curve(samples().assign(buy_slippage_bps=NAN), by="coin").set_index(["coin", "side"])
    assert thin.loc[("THIN", "buy"), "missing_share"] == 1.0
    assert thin.loc[("THIN", "buy"), ["q10", "q50", "q90"]].isna().all()
    with pytest.raises(ValueError, match="between 0 and 1"):
        curve(samples(), (50,))


def test_curve_has_rows_of_each_day():
    result = curve(samples(), by=["day", "dex"])
    assert list(result["day"].unique()) == list(times(MONDAY + n * DAY for n in range(3)))
    assert set(result["dex"]) == {"hyperliquid"}
    assert result["n"].sum() == 400
