"""The expected cost of a size: at, between and beyond sampled sizes, and missing costs."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from toolkit.slippage import capacity, cost, fit

from .examples import DAY
from .test_slippage_fit import books, samples_of

NAN = float("nan")
FITTED = fit(books(6, sigma=0.1), draws=99)


def samples(bps):
    """Return one book for each day with costs by size; selling costs the same."""
    parts = [
        samples_of(DAY * np.arange(len(values)), usd, values, values) for usd, values in bps.items()
    ]
    return pd.concat(parts, ignore_index=True)


# Means 2, 2 and 8: flat, then a kink that no power law fits.
KINKED = samples({1e3: [1, 3], 1e4: [1, 3], 1e5: [6, 10]})


def test_cost_between_sizes_is_interpolated():
    """20,000 is log10(2) = 0.30103 of the way from 10,000 to 100,000: 2 * 4**0.30103 = 3.0357."""
    result = cost(KINKED, [1e3, 3e3, 1e4, 2e4, 1e5], side="buy")
    assert result["cost_bps"].tolist() == pytest.approx([2, 2, 2, 3.0357, 8], abs=1e-4)
    assert result["range"].tolist() == ["sampled", "between", "sampled", "between", "sampled"]
    assert result["cost_usd"].iloc[-1] == pytest.approx(80)
    back = capacity(KINKED, [2.0, 4.0], side="buy")
    # In logarithms 4 bps are half-way from 2 to 8: the root of 1e4 * 1e5. Of equal costs the
    # largest size counts.
    assert back["capacity_usd"].tolist() == pytest.approx([1e4, 10**4.5])
    assert back["range"].tolist() == ["sampled", "between"]


def test_cost_beyond_sizes_follows_fit():
    half, a, k, _ = FITTED.params.loc[FITTED.params["side"] == "buy", "estimate"]
    rows = books(6, sigma=0.1)
    result = cost(FITTED, [500, 5e6], side="buy")
    assert result["range"].tolist() == ["below", "above"]
    for found, usd, edge in zip(result["cost_bps"], [500, 5e6], [1e3, 1e6], strict=True):
        mean = rows.loc[rows["amount_usd"] == edge, "buy_slippage_bps"].mean()
        law = (half + a * (usd / 1e5) ** k) / (half + a * (edge / 1e5) ** k)
        assert found == pytest.approx(mean * law)
    assert np.isnan(result["too_thin"].iloc[1])


def test_cost_of_samples_equals_fit():
    rows = books(6, sigma=0.1)
    sizes = [500.0, 1e5, 2e5, 5e6]
    pd.testing.assert_frame_equal(cost(rows, sizes), cost(fit(rows), sizes))
    pd.testing.assert_frame_equal(capacity(rows, 7.0), capacity(fit(rows), 7.0))


def test_missing_samples_cost_at_least_smaller_size():
    """On the second day 10,000 is missing. 1,000 cost 3 then, and a larger size costs no less."""
    result = cost(samples({1e3: [1, 3], 1e4: [5, NAN]}), [1e3, 1e4], side="buy")
    assert result["too_thin"].tolist() == [0, 0.5]
    assert result["cost_bps"].iloc[0] == 2
    assert result["cost_bps"].iloc[1] == pytest.approx((5 + 3) / 2)


def test_never_filled_size_is_excluded():
    result = cost(samples({1e3: [1, 3], 1e4: [2, 6], 1e5: [NAN, NAN]}), [1e5], side="buy").iloc[0]
    assert (result["range"], result["too_thin"]) == ("above", 1)
    assert result["cost_bps"] > 4


def test_single_size_is_not_extrapolated():
    one = samples({1e4: [2, 4, 6]})
    result = cost(one, 1e4, side="buy").iloc[0]
    assert (result["cost_bps"], result["range"]) == (4, "sampled")
    assert result["low"] < 4 < result["high"]
    beyond = cost(one, [1e3, 2.5e5], side="buy")
    assert beyond["range"].tolist() == ["one size"] * 2
    assert beyond["cost_bps"].isna().all()
    room = capacity(one, 5.0, side="buy").iloc[0]
    assert (room["range"], np.isnan(room["capacity_usd"])) == ("one size", True)
    assert cost(samples({1e4: [NAN, NAN]}), 1e4)["range"].tolist() == ["never filled"] * 2


def test_figures_of_cost_and_capacity():
    """Of two days, with 2 and 8 bps, the interval is wide; it is one of positive numbers."""
    paid = cost(KINKED, [1e4, 1e5])
    assert paid["side"].tolist() == ["buy", "buy", "sell", "sell"]
    assert (paid["low"] > 0).all()
    assert (paid["low"] < paid["cost_bps"] / 2).all()
    assert (paid["high"] > paid["cost_bps"] * 2).all()
    assert paid["n"].tolist() == [6] * 4
    room = capacity(KINKED, 4.0)
    assert room[["smallest_usd", "largest_usd"]].to_numpy().tolist() == [[1e3, 1e5]] * 2
    none = capacity(samples({1e4: [NAN, NAN]}), 4.0)
    assert none["range"].tolist() == ["never filled"] * 2
    assert none[["smallest_usd", "largest_usd", "capacity_usd"]].isna().all(axis=None)


def test_wrong_arguments_are_named():
    for named, call in (
        ("^usd: .* 0 ", lambda: cost(KINKED, 0)),
        ("^usd: ", lambda: cost(FITTED, [1e4, 0])),
        ("^bps: .*-1", lambda: capacity(KINKED, -1)),
        ("'both'.* buy, sell", lambda: cost(KINKED, 1e4, side="both")),
        ("'ABC'.* XYZ", lambda: cost(FITTED, 1e4, coin="ABC")),
    ):
        with pytest.raises(ValueError, match=named):
            call()


def test_capacity_below_half_spread_is_zero():
    result = capacity(FITTED, [0.5, 5.0])
    assert result["capacity_usd"].tolist()[0] == 0
    assert result["range"].tolist() == ["below", "between"] * 2


def test_zero_costs_are_interpolated():
    result = cost(samples({1e3: [0, 0], 1e4: [0, 2]}), [1e3, 5e3, 1e4], side="buy")["cost_bps"]
    assert result.tolist()[::2] == [0, 1]
    assert 0.005 <= result.iloc[1] <= 1


def test_too_thin_is_share_of_next_size():
    """Six of the 24 books of a day end before 250,000 USD, the next size above 100,001 USD."""
    rows = books(1)
    thin = (rows["amount_usd"] >= 2.5e5) & (rows["timestamp"].dt.hour < 6)
    rows.loc[thin, "buy_slippage_bps"] = NAN
    result = cost(rows, [1e5, 100_001, 2.5e5], side="buy")
    assert result["too_thin"].tolist() == [0, 0.25, 0.25]


@settings(max_examples=10, deadline=None)
@given(st.floats(1e2, 1e7))
def test_capacity_inverts_cost(usd):
    bps = cost(FITTED, usd)["cost_bps"]
    found = capacity(FITTED, float(bps.iloc[0]), side="buy")
    assert found["capacity_usd"].iloc[0] == pytest.approx(usd, rel=1e-8)
    assert found["low"].iloc[0] <= found["high"].iloc[0]


def test_equal_days_have_narrow_interval():
    """Ten days without noise give the same mean in every draw, up to rounding."""
    costs = {usd: [round(1 + 10 * (usd / 1e5) ** 0.5, 2)] * 10 for usd in (1e3, 1e4, 1e5, 1e6)}
    found = capacity(samples(costs), [2.5, 6.0, 11.0, 21.0, 33.0, 90.0])
    assert (found["low"] <= found["capacity_usd"]).all()
    assert (found["capacity_usd"] <= found["high"]).all()
    assert (found["high"] - found["low"] < 0.01 * found["capacity_usd"]).all()
    paid = cost(samples(costs), [3e3, 1e5, 7e5], side="buy")
    assert (paid["low"] <= paid["cost_bps"]).all()
    assert (paid["cost_bps"] <= paid["high"]).all()


def test_misfit_is_worst_relative_error():
    assert fit(books(6, sigma=0.1), draws=9).groups["misfit"].max() < 0.03
    found = fit(KINKED, draws=9)
    half, a, k, sigma = found.params.loc[found.params["side"] == "buy", "estimate"]
    law = (half + a * np.array([0.01, 0.1, 1]) ** k) * np.exp(sigma**2 / 2)
    wanted = np.abs(law / [2, 2, 8] - 1).max()
    assert found.groups["misfit"].tolist() == pytest.approx([wanted] * 2)
    assert wanted > 0.1
    assert "does not hold, it misses a sampled mean by" in found._repr_html_()
    assert "does not hold" not in FITTED._repr_html_()
