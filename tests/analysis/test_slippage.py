"""Slippage curves: examples by hand, numpy, every engine, and simulated samples."""

import duckdb
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from toolkit.errors import MissingColumns
from toolkit.slippage import curve

from .examples import DAY, MONDAY, as_numbers, times

NAN = float("nan")
COLUMNS = ["coin", "amount_usd", "side", "n", "missing", "missing_share", "q10", "q50", "q90"]


def samples(n=200, seed=4):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "timestamp": times(MONDAY + 900_000 * np.arange(n)),
            "dex": "main",
            "coin": pd.array(rng.choice(["BTC", "THIN"], n), dtype="str"),
            "half_spread_bps": rng.random(n).round(2),
            "amount_usd": rng.choice([1e3, 1e6], n),
            "buy_slippage_bps": rng.gamma(2.0, size=n).round(2),
            "sell_slippage_bps": rng.gamma(3.0, size=n).round(2),
        }
    )
    frame.loc[rng.random(n) < 0.3, "buy_slippage_bps"] = NAN
    return frame


def test_curve_by_hand():
    """Samples 1, 2, 3, 4 and a missing one: the median is 3, and the 0.9 quantile is missing."""
    frame = pd.DataFrame(
        {
            "coin": "X",
            "amount_usd": 1000.0,
            "half_spread_bps": [0.5, 0.1, 0.3, 0.2, 0.4],
            "buy_slippage_bps": [4.0, NAN, 1.0, 3.0, 2.0],
            "sell_slippage_bps": [5.0, 4.0, 1.0, 3.0, 2.0],
        }
    )
    buy, sell = curve(frame).to_dict("records")
    assert (buy["side"], buy["n"], buy["missing"], buy["missing_share"]) == ("buy", 5, 1, 0.2)
    assert (buy["q10"], buy["q50"], buy["half_spread_bps"]) == (1.0, 3.0, 0.3)
    assert np.isnan(buy["q90"])
    assert [sell[name] for name in ("missing", "q10", "q50", "q90")] == [0, 1.0, 3.0, 5.0]
    assert list(buy) == [*COLUMNS, "half_spread_bps"]


def test_quantiles_against_numpy():
    frame = samples()
    quantiles = (0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0)
    result = curve(frame, quantiles)
    for row in result.to_dict("records"):
        mine = frame[(frame["coin"] == row["coin"]) & (frame["amount_usd"] == row["amount_usd"])]
        bps = mine[f"{row['side']}_slippage_bps"].fillna(np.inf)
        assert row["n"] == len(bps)
        assert row["missing"] == np.isinf(bps).sum()
        for q in quantiles:
            wanted = np.quantile(bps, q, method="inverted_cdf")
            assert row[f"q{100 * q:g}"] == wanted or (
                np.isinf(wanted) and np.isnan(row[f"q{100 * q:g}"])
            )


@pytest.mark.parametrize("kind", ["float", "exact"])
@pytest.mark.parametrize("by", [("coin", "amount_usd"), "coin", ["day", "dex"]], ids=str)
def test_curve_is_equal_on_every_engine(engine, kind, by):
    frame = as_numbers(samples(), kind)
    expected = type(engine)("pandas").take(curve(frame, by=by))
    assert engine.take(curve(engine.give(frame), by=by)) == expected


def test_curve_of_few_rows_keeps_dtypes():
    full = curve(samples())
    for n in (0, 1):
        few = curve(samples().head(n))
        assert len(few) == 2 * n
        assert list(few.dtypes) == list(full.dtypes)
        assert list(few.columns) == list(full.columns)
    thin = curve(samples().assign(buy_slippage_bps=NAN), by="coin").set_index(["coin", "side"])
    assert (thin.loc[("THIN", "buy"), "missing_share"]) == 1.0
    assert thin.loc[("THIN", "buy"), ["q10", "q50", "q90"]].isna().all()


def test_curve_ignores_row_order():
    frame = samples()
    shuffled = frame.sample(frac=1, random_state=2)
    before = shuffled.copy(deep=True)
    pd.testing.assert_frame_equal(curve(frame), curve(shuffled))
    pd.testing.assert_frame_equal(shuffled, before)


def test_errors_of_curve():
    with pytest.raises(
        MissingColumns, match="samples: the frame lacks the columns half_spread_bps, buy_slip"
    ):
        curve(samples().drop(columns=["half_spread_bps", "buy_slippage_bps"]))
    with pytest.raises(MissingColumns, match="sell_slippage_bps is String"):
        curve(samples().assign(sell_slippage_bps="1.0"))
    with pytest.raises(ValueError, match="between 0 and 1"):
        curve(samples(), (50,))


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1, max_size=30))
def test_quantiles_beyond_filled_share_are_missing(bps):
    column = pd.array([NAN if b is None else float(b) for b in bps], dtype="float64")
    frame = pd.DataFrame(
        {
            "coin": "X",
            "amount_usd": 1e3,
            "half_spread_bps": 0.1,
            "buy_slippage_bps": column,
            "sell_slippage_bps": column,
        }
    )
    row = curve(frame, (0.1, 0.5, 0.9)).iloc[0]
    found = [v for v in row[["q10", "q50", "q90"]] if not np.isnan(v)]
    assert found == sorted(found)
    for q in (0.1, 0.5, 0.9):
        beyond = q > 1 - row["missing_share"] + 1e-9
        assert np.isnan(row[f"q{100 * q:g}"]) == beyond


def test_curve_counts_million_rows():
    result = curve(samples(1_000_000), by=["coin", "amount_usd"])
    assert result["n"].sum() == 2_000_000
    assert (result["q50"] > 0).all()


def test_curve_names_helper_and_inputs():
    result = curve(samples(), by=["coin"])
    facts = result.attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("slippage.curve", ["coin"])
    assert list(facts["inputs"]) == ["samples"]
    # In Polars an unknown spread may be a null or no number. Both are above all others.
    for spreads, median in (([NAN, None, 2.0, 1.0], 2.0), ([None, NAN, None, 1.0], None)):
        frame = pl.from_pandas(samples(4)).with_columns(
            pl.Series("half_spread_bps", spreads), coin=pl.lit("X")
        )
        for each in (frame, duckdb.from_arrow(frame.to_arrow())):
            rows = pl.DataFrame(curve(each, by="coin"))
            assert rows["half_spread_bps"].to_list() == [median] * 2


def test_curve_has_rows_of_each_day():
    result = curve(samples(), by="day")
    assert list(result["day"].unique()) == list(times(MONDAY + n * DAY for n in range(3)))
