"""The fitted cost of a size: laws, likelihood, missing samples, results."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from toolkit.analysis.market import slippage_likelihood
from toolkit.errors import MissingColumns
from toolkit.slippage import asymmetry, capacity, cost, fit, heatmap

from .examples import DAY, HOUR, MONDAY, times

NAN = float("nan")
SIZES = np.array([1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6])


def books(
    days: int = 4, *, half: float = 1.0, a: float = 10.0, k: float = 0.6, sigma: float = 0.0,
    end: float = np.inf, day_sigma: float = 0.0, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Return hourly books with the cost of the law times a factor for each book, up to `end`."""
    rng = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    factor = np.exp(sigma * rng.normal(size=len(hours)))
    factor = factor * np.repeat(np.exp(day_sigma * rng.normal(size=days)), 24)
    bps = (half + a * (SIZES / 1e5) ** k) * factor[:, None]
    bps = np.where(bps <= end, bps.round(2), NAN).ravel()
    return pd.DataFrame(
        {
            "timestamp": times(np.repeat(MONDAY + HOUR * hours, len(SIZES))),
            "coin": "XYZ",
            "half_spread_bps": half,
            "amount_usd": np.tile(SIZES, len(hours)),
            "buy_slippage_bps": bps,
            "sell_slippage_bps": bps,
        }
    )


def params(samples: pd.DataFrame, side: str = "buy") -> pd.DataFrame:
    table = fit(samples, draws=199).params
    return table[table["side"] == side].set_index("name")


def test_fit_recovers_law() -> None:
    """The costs are 0.5 + 8 * (Q / 100,000)**0.75, rounded to a hundredth."""
    found = params(books(half=0.5, a=8.0, k=0.75))
    assert found.loc["half_spread", "estimate"] == 0.5
    assert found.loc["a", "estimate"] == pytest.approx(8, abs=0.01)
    assert found.loc["k", "estimate"] == pytest.approx(0.75, abs=0.001)
    assert found.loc["sigma", "estimate"] < 0.002


def test_fit_recovers_scatter() -> None:
    found = params(books(20, sigma=0.2))
    assert found.loc["sigma", "estimate"] == pytest.approx(0.2, rel=0.15)
    assert found.loc["k", "estimate"] == pytest.approx(0.6, abs=0.01)


def test_missing_samples_raise_cost() -> None:
    """Books that end at 30 bps miss expensive samples; without them the law is flatter."""
    whole = books(30, sigma=0.4)
    cut = books(30, sigma=0.4, end=30.0)
    share = cut["buy_slippage_bps"].isna().mean()
    assert 0.1 < share < 0.4
    wanted, found = params(whole)["estimate"], params(cut)["estimate"]
    dropped = params(cut.dropna(subset=["buy_slippage_bps"]))["estimate"]
    assert abs(found["k"] - wanted["k"]) < 0.03
    assert dropped["k"] < wanted["k"] - 0.05


@pytest.mark.parametrize("nothing", [NAN, 0.0, -1.0])
def test_samples_without_size_are_ignored(nothing: float) -> None:
    rows = books(2)
    odd = rows.head(3).assign(amount_usd=nothing)
    pd.testing.assert_frame_equal(params(pd.concat([rows, odd])), params(rows))


def test_rounded_values_have_bounds() -> None:
    """The costs are a few hundredths; their rounding must not change the exponent."""
    found = params(books(30, half=0.02, a=0.3, k=0.6, sigma=0.1))
    assert found.loc["k", "estimate"] == pytest.approx(0.6, abs=0.03)
    assert found.loc["a", "estimate"] == pytest.approx(0.3, rel=0.05)


bounds = st.tuples(
    st.floats(-3, 3), st.floats(0.001, 2), st.floats(-3, 3), st.floats(0, 5), st.booleans()
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(bounds, min_size=1, max_size=6),
    st.tuples(st.floats(-2, 3), st.floats(0.1, 1.5), st.floats(-2, 0.5)),
)
def test_score_and_hessian_are_derivatives(
    rows: list[tuple[float, float, float, float, bool]], point: tuple[float, float, float]
) -> None:
    low = np.array([row[0] for row in rows])
    width = np.array([np.inf if row[4] else row[1] for row in rows])
    given_ = slippage_likelihood.BoundedCosts(
        low=low,
        high=low + width,
        size=np.array([row[2] for row in rows]),
        spread=np.array([row[3] for row in rows]),
    )
    theta = np.array(point)
    value, score, curvature = slippage_likelihood._total_likelihood(theta, given_)
    if value < -200:  # differences of such numbers have no exact digits
        return
    step = 1e-4
    for place in range(3):
        up, down = theta.copy(), theta.copy()
        up[place] += step
        down[place] -= step
        above, below = (
            slippage_likelihood._total_likelihood(up, given_),
            slippage_likelihood._total_likelihood(down, given_),
        )
        slope = (above[0] - below[0]) / (2 * step)
        assert score[place] == pytest.approx(slope, rel=1e-3, abs=1e-3)
        bend = (above[1] - below[1]) / (2 * step)
        assert curvature[place] == pytest.approx(bend, rel=1e-2, abs=1e-2)


def test_fit_of_few_samples() -> None:
    one_size = books()[lambda rows: rows["amount_usd"] == 1e4]
    found = fit(one_size)
    assert found.params["estimate"].isna().all()
    assert found.groups["n"].tolist() == [96, 96]
    one_day = fit(books(1, sigma=0.1)).params
    assert one_day["estimate"].notna().all()
    assert one_day[["low", "high"]].isna().all().all()


def test_fit_result_object() -> None:
    found = fit(books(sigma=0.1), level=0.9, draws=99)
    assert found.n == 2 * 96 * len(SIZES)
    assert found.level == 0.9
    assert found["k"] == found.params.set_index(["side", "name"])["estimate"]["buy", "k"]
    assert "<script" not in fit(books().assign(coin="<script>"), draws=9)._repr_html_()
    assert found.groups[["smallest_usd", "largest_usd"]].to_numpy().tolist() == [[1e3, 1e6]] * 2
    same = fit(books(sigma=0.1), level=0.9, draws=99).params
    pd.testing.assert_frame_equal(found.params, same)
    assert not fit(books(sigma=0.1), level=0.9, draws=99, seed=1).params.equals(same)


FITTED = fit(books(6, sigma=0.1), draws=99)


def test_blocks_of_days() -> None:
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
    for helper in (fit, asymmetry):
        with pytest.raises(ValueError, match="block_days must be at least 1, not 0"):
            helper(rows, block_days=0)


def test_errors_of_fit() -> None:
    with pytest.raises(MissingColumns, match="timestamp"):
        fit(books().drop(columns="timestamp"))
    with pytest.raises(ValueError, match="level"):
        fit(books(), level=95)
    with pytest.raises(ValueError, match="no coin 'ABC' among the samples: XYZ"):
        cost(FITTED, 1e4, coin="ABC")
    with pytest.raises(ValueError, match="no side 'both'"):
        capacity(FITTED, 1.0, side="both")
    with pytest.raises(ValueError, match="positive"):
        cost(FITTED, [1e4, 0])
    with pytest.raises(ValueError, match="positive"):
        capacity(FITTED, -1)
    with pytest.raises(ValueError, match="quantile"):
        heatmap(books(), 50)


def test_heatmap_by_hand() -> None:
    """The samples are of Monday 00:30, Sunday 23:59:59 and the next Monday; one is missing."""
    rows = pd.DataFrame(
        {
            "timestamp": times([MONDAY + HOUR // 2, MONDAY + 7 * DAY - 1000, MONDAY + 7 * DAY]),
            "coin": "XYZ",
            "half_spread_bps": 1.0,
            "amount_usd": 1e4,
            "buy_slippage_bps": [2.0, 5.0, NAN],
            "sell_slippage_bps": [2.0, 5.0, 4.0],
        }
    )
    frame = heatmap(rows).set_index(["hour_of_week", "side"])
    assert frame.index.tolist() == [(0, "buy"), (0, "sell"), (167, "buy"), (167, "sell")]
    assert frame["weekday"].tolist() == [0, 0, 6, 6]
    assert frame["hour_of_day"].tolist() == [0, 0, 23, 23]
    assert frame["missing"].tolist() == [1, 0, 0, 0]
    assert frame["bps"].tolist() == [2.0, 2.0, 5.0, 5.0]
    dear = heatmap(rows, 0.9).set_index(["hour_of_week", "side"])["bps"]
    assert np.isnan(dear[0, "buy"])
    assert dear[0, "sell"] == 4.0


def test_asymmetry_by_hand() -> None:
    """The differences are 1, 3, 0 on the first day and 2 on the second; one pair has no buy."""
    rows = pd.DataFrame(
        {
            "timestamp": times(MONDAY + np.array([0, HOUR, 2 * HOUR, 3 * HOUR, DAY])),
            "coin": "XYZ",
            "half_spread_bps": 1.0,
            "amount_usd": 1e4,
            "buy_slippage_bps": [3.0, 6.0, 2.0, NAN, 4.0],
            "sell_slippage_bps": [2.0, 3.0, 2.0, 5.0, 2.0],
        }
    )
    result = asymmetry(rows, draws=999).iloc[0]
    assert (result["n"], result["buy_missing"], result["sell_missing"], result["days"]) == (
        4,
        1,
        0,
        2,
    )
    assert result["buy_bps"] == (3 + 6 + 2 + 4) / 4
    assert result["difference_bps"] == (1 + 3 + 0 + 2) / 4
    assert result["buy_dearer"] == 3.5 / 4
    # Draws of days: first twice, 4/3; both, 3/2; second twice, 2. The standard deviation is
    # 1/4. Two days: Student's 12.71 times the root of 2 is 17.97, about the median.
    assert result["low"] == pytest.approx(1.5 - 17.97 / 4, abs=0.1)
    assert result["high"] == pytest.approx(1.5 + 17.97 / 4, abs=0.1)
    assert asymmetry(rows.iloc[:3])[["low", "high"]].isna().all().all()


def test_undetermined_slope_has_no_parameters() -> None:
    """Only the largest of three sizes costs more than the half spread, so any steep law fits."""
    usd = pd.Series([1e3, 1e4, 1e5] * 40)
    days = pd.Series(range(120)) // 3 * 86_400_000
    costs = pd.Series([0.5, 0.5, 0.9, 0.5, 0.5, 1.1] * 20)
    rows = pd.DataFrame(
        {
            "timestamp": pd.to_datetime(days, unit="ms", utc=True),
            "coin": "XYZ",
            "amount_usd": usd,
            "half_spread_bps": 0.5,
            "buy_slippage_bps": costs,
            "sell_slippage_bps": costs,
        }
    )
    found = fit(rows, draws=99)
    assert found.params["estimate"].isna().all()
    beyond = cost(found, 250_000)
    assert beyond["cost_bps"].isna().all()
    assert (beyond["range"] == "no law").all()
    within = cost(found, 100_000)
    assert within["cost_bps"].round(6).eq(1.0).all()
