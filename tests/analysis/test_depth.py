"""Depth: examples by hand, identities, and slippage of the same books."""

from functools import partial

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from tests.rules.reference import half_spread_bps, slippage_bps
from toolkit.depth import consistency, imbalance, profile, resilience
from toolkit.rules.depth import BANDS_BPS, Book, depth_bands, slippage_bounds

from .examples import MONDAY, times, wrong_errors
from .test_slippage_fit import samples_of

NAN = float("nan")


def batch(second, bid, ask, bps=10, coin="XYZ"):
    depths = {"bid_depth_usd": bid, "ask_depth_usd": ask}
    at = MONDAY + int(1000 * second)
    return {"timestamp_ms": at, "dex": "main", "coin": coin, "bps": bps, **depths}


def depth(rows):
    frame = pd.DataFrame(rows)
    return frame.assign(timestamp_ms=times(frame["timestamp_ms"]))


def test_profile_by_hand():
    """Bids of 1, 2, 4 and a missing one: 3 values, mean 7/3, median 2."""
    rows = depth([batch(n, bid, 0.0) for n, bid in enumerate([1.0, 4.0, 2.0, NAN])])
    ask, bid = profile(rows, (0.5, 0.9)).to_dict("records")
    assert (ask["side"], ask["n"], ask["mean_usd"], ask["q50"], ask["missing"]) == (
        *("ask", 4, 0.0, 0.0, 0),
    )
    assert (bid["n"], bid["q50"], bid["q90"], bid["missing"]) == (3, 2.0, 4.0, 1)
    assert bid["mean_usd"] == pytest.approx(7 / 3)
    days = profile(rows, by=["coin", "day"])
    assert list(days.columns[:4]) == ["coin", "day", "side", "bps"]
    unknown = profile(rows.assign(bid_depth_usd=NAN))
    assert unknown.loc[1, ["mean_usd", "q50"]].isna().all()
    assert unknown.loc[1, "missing"] == 4


def test_imbalance_by_hand():
    rows = depth([batch(0, 1, 3), batch(1, 2, 0), batch(2, 0, 0), batch(3, NAN, 1)])
    result = imbalance(rows)
    assert result["imbalance"].tolist()[:2] == [-0.5, 1.0]
    assert result["imbalance"].iloc[2:].isna().all()
    assert result["total_usd"].tolist()[:3] == [4, 2, 0]


def shocks(half_life, count=3, step=5.0, noise=0.0, seed=0):
    """Return batches: every ten minutes 70 % of the bids vanish and return; asks do not change."""
    rng = np.random.default_rng(seed)
    seconds = np.arange(0, 600 * (count + 1), step)
    lost = np.where(seconds < 600, 0, 0.7 * 2.0 ** (-(seconds % 600) / half_life))
    bids = 1e6 * (1 - lost) * (1 + noise * rng.normal(size=len(seconds)))
    return depth([batch(s, b, 2e6) for s, b in zip(seconds, bids, strict=True)])


def test_half_lives_are_recovered():
    for half_life in (12.0, 40.0, 150.0):
        result = resilience(shocks(half_life))
        assert result["half_life"] == pytest.approx(half_life, rel=0.002)
        # After four half-lives a sixteenth of the lost depth is missing before the next shock.
        assert result["taken"] == pytest.approx(0.7, rel=0.02)
        assert result.n == 3
        assert result.shocks["side"].tolist() == ["bid"] * 3
        assert result.shocks["before_usd"].tolist() == pytest.approx([1e6] * 3, rel=0.05)
        assert list(result.shocks["time"]) == list(times(MONDAY + 600_000 * np.arange(1, 4)))


def test_resilience_without_shocks_is_missing():
    still = resilience(shocks(40.0, count=0))
    assert still.n == 0
    assert still.params["estimate"].isna().all()
    one = resilience(shocks(40.0, count=1, noise=0.01)).params
    assert one["estimate"].notna().all()
    assert one[["low", "high"]].isna().all().all()
    # Depth that does not return has no half-life.
    gone = [batch(s, 1e6 if s < 100 else 1e5, 1e6) for s in range(0, 400, 10)]
    lost = resilience(depth(gone))
    assert np.isnan(lost["half_life"])
    assert lost["taken"] == pytest.approx(0.9)


def test_shock_without_recovery_counts_in_path():
    """Two markets lose 60 % of 2,000 USD. One regains half of it in 20 s, the other nothing."""
    seconds = np.arange(-50, 300, 10)
    back = np.where(seconds < 0, 2000.0, 2000 - 1200 * 2.0 ** (-seconds / 20))
    gone = np.where(seconds < 0, 2000.0, 800.0)
    rows = [
        batch(second, usd, 5e5, coin=coin)
        for coin, usd_of_coin in (("XYZ", back), ("ABC", gone))
        for second, usd in zip(seconds, usd_of_coin, strict=True)
    ]
    result = resilience(depth(rows))
    assert result["half_life"] == pytest.approx(20.0, rel=0.002)
    assert result["taken"] == pytest.approx(0.6)
    assert result.shocks["taken"].tolist() == pytest.approx([0.6, 0.6])
    assert result.shocks["returned"].tolist() == [0, pytest.approx(1, abs=1e-3)]
    first, path = result.path.iloc[0], result.path[["q10", "q50", "q90"]]
    assert (first["n"], first["q10"], first["q90"]) == (2, 0.0, 0.0)
    assert path.min(axis=None) >= 0
    assert path.max(axis=None) <= 1
    assert result.path["q50"].iloc[-1] == pytest.approx(0.5, abs=0.01)


def test_fall_over_a_gap_is_no_shock():
    """The poll paused for two hours, and the depth is lower since."""
    seconds = [*range(0, 100, 10), *range(7_300, 7_500, 10)]
    rows = [batch(second, 900.0 if second < 100 else 400.0, 5e5) for second in seconds]
    assert resilience(depth(rows)).n == 0
    # A shock before the gap is followed until the gap.
    early = [batch(second, 1e3 if second < 20 else 300.0, 5e5) for second in seconds]
    assert resilience(depth(early)).shocks["samples"].tolist() == [8]


def test_errors_of_depth():
    rows, one = shocks(40.0, count=1), depth([batch(0, 1, 1)])
    table = [
        *((partial(resilience, rows, **{name: value}), ValueError, name)
          for name, value in (("drop", 0), ("drop", 1.5), ("window", 0), ("level", 95))),
        (lambda: profile(one, (50,)), ValueError, "between 0 and 1"),
        (lambda: profile(one, by="bps"), ValueError, "'bps'"),
        (lambda: consistency(one, sample(0, 1, 1), slack=1.0), ValueError, "slack"),
    ]  # fmt: skip
    assert wrong_errors(table) == []


levels = st.lists(st.tuples(st.floats(0.1, 60), st.floats(1, 1000)), min_size=1, max_size=12)


@given(levels, levels, st.floats(50, 20_000))
def test_book_slippage_is_within_bounds(bids, asks, usd):
    """The slippage of random books is between the bounds from their bands."""

    def side(steps, sign):
        away = np.cumsum([bps for bps, _ in steps])
        px = 100 * (1 + sign * away / 1e4)
        return np.stack([px, np.array([size for _, size in steps]) / px], axis=1)

    book = Book(side(bids, -1), side(asks, 1))
    table = np.array([[bid, ask] for _, bid, ask in depth_bands(book)])
    half = np.array([half_spread_bps(book)])
    for sign, column, found in zip((1, -1), (1, 0), slippage_bps(book, usd), strict=True):
        widths = np.array(BANDS_BPS, dtype=float)
        mine = (np.array([usd]), table[:, column][None, :], widths, half, sign)
        least, most = (float(end[0]) for end in slippage_bounds(*mine))
        if found is None:
            assert most == np.inf
        else:
            assert least - 0.011 <= found <= most + 0.011


def sample(second, buy, sell, usd=2e3):
    return samples_of([int(1000 * second)], usd, [buy], [sell], 2.0)


def test_consistency_by_hand():
    """The depth is 1,000 within 10 bps and 3,000 within 25 bps.

    2,000 cost at least (1,000 * 2 + 1,000 * 10) / 2,000 = 6 and at most (10 + 25) / 2 = 17.5 bps,
    give or take a hundredth; 4,000 at least (2 + 2 * 10 + 25) / 4 = 11.75, and may be missing.
    """
    books = depth([batch(0, 1e3, 1e3), batch(0, 3e3, 3e3, 25)])
    rows = pd.concat([sample(0.5, 17.5, 5.0), sample(0.5, NAN, 12.0, 4e3), sample(0, NAN, 8.0)])
    frame = consistency(books, rows).set_index(["timestamp", "amount_usd", "side"])
    early, late = times([MONDAY, MONDAY + 500])
    assert frame["consistent"].to_dict() == {
        (early, 2e3, "buy"): False,  # cannot be missing: the depth is 3,000
        (early, 2e3, "sell"): True,
        (late, 2e3, "buy"): True,
        (late, 2e3, "sell"): False,
        (late, 4e3, "buy"): True,
        (late, 4e3, "sell"): True,
    }
    assert frame.loc[(early, 2e3, "buy"), "outside_bps"] == np.inf
    assert frame.loc[(late, 2e3, "sell"), "outside_bps"] == pytest.approx(0.99, abs=0.01)
    assert frame.loc[(late, 4e3, "buy"), "least_bps"] == pytest.approx(11.75, abs=0.02)
    assert frame.loc[(late, 2e3, "buy"), "age_seconds"] == 0.5


def test_consistency_of_wide_bands_by_hand():
    """1,000 rest within 100 bps and 1,000 more within 1,000 bps, of asks; twice as much of bids.

    A buy of 2,000 pays at most 1.01 and 1.1 for half of the money each, so 2,000 for 1,899.19
    coins. A sale of 4,000 has 0.99 and 0.9 for 2,000 each, so 4,000 for 4,242.42 coins.
    """
    books = depth([batch(0, 2e3, 1e3, 100), batch(0, 4e3, 2e3, 1000)])
    rows = pd.concat([sample(0, 530.0, 100.0), sample(0, NAN, 571.5, 4e3)])
    found = consistency(books, rows).set_index(["amount_usd", "side"])
    assert found.loc[(2e3, "buy"), "most_bps"] == pytest.approx(
        1e4 * (2000 / (1000 / 1.01 + 1000 / 1.1) - 1)
    )
    assert found.loc[(4e3, "sell"), "most_bps"] == pytest.approx(
        1e4 * (1 - 4000 / (2000 / 0.99 + 2000 / 0.9))
    )
    assert found.loc[(4e3, "sell"), "outside_bps"] == pytest.approx(571.5 - 571.43 - 0.01, abs=2e-3)
    assert found.loc[(4e3, "buy"), "most_bps"] == np.inf


def test_consistency_takes_nearest_batch():
    """Batches of two coins at 0, 10 and 30 s; the samples are out of order and between them."""
    books = depth(
        [batch(s, 1e3 * (k + 1), 1e6, coin=coin)
         for coin, k in (("XYZ", 0), ("ABC", 9)) for s, k in ((0, k), (30, k + 2), (10, k + 1))]
    )  # fmt: skip
    parts = [sample(s, 1.0, 1.0, 500.0) for s in (29, -3, 4, 6, 12, 21)]
    rows = pd.concat([*(part.assign(coin=c) for c in ("XYZ", "ABC") for part in parts)])
    found = consistency(books, rows, max_age=60)
    assert found.index.tolist() == list(range(24))
    sold = found[found["side"] == "sell"]
    assert sold["coin"].tolist() == ["ABC", "XYZ"] * 6
    assert sold["age_seconds"].tolist() == [-3, -3, 4, 4, -4, -4, 2, 2, -9, -9, -1, -1]
    unknown = consistency(books, rows.assign(half_spread_bps=NAN), max_age=60)
    assert unknown[["consistent", "least_bps", "most_bps", "outside_bps"]].isna().all(axis=None)
    large = consistency(books, rows.assign(amount_usd=2500.0), max_age=60)
    large = large[(large["side"] == "sell") & (large["coin"] == "XYZ")]
    # The first batches have bids of 1,000 and 2,000, the last one of 3,000.
    assert np.isinf(large["most_bps"]).tolist() == [True] * 4 + [False] * 2


def test_consistency_needs_recent_batch():
    books = depth([batch(0, 1e3, 1e3), batch(10, 1e6, 1e6)])
    result = consistency(books, sample(5, 3.0, 3.0), max_age=4)
    assert result["consistent"].isna().all()
    assert result[["least_bps", "most_bps", "outside_bps"]].isna().all().all()
    near = consistency(books, sample(9, 3.0, 3.0), max_age=4)
    assert near["age_seconds"].tolist() == [-1, -1]
    assert near["consistent"].all()
    other = consistency(books, sample(9, 3.0, 3.0).assign(coin="ABC"), max_age=4)
    assert other["consistent"].isna().all()


def test_slack_extends_bounds():
    """With a slack of a half, asks of 2,000 within 10 bps may have been 3,000 or 1,000."""
    books = depth([batch(0, 2e3, 2e3), batch(0, 4e3, 4e3, 25)])
    strict = consistency(books, sample(0, 12.0, 1.9))
    assert strict["consistent"].tolist() == [False, False]
    loose = consistency(books, sample(0, 12.0, 1.9), slack=0.5)
    assert loose["consistent"].tolist() == [True, False]


def test_consistency_matches_coins_without_dex():
    """Depth writes a coin with or without its dex; samples write it with the dex."""
    for coin in ("TSLA", "flx:TSLA"):
        books = depth([{**batch(0, 1e4, 1e4, coin=coin), "dex": "flx"}])
        result = consistency(books, sample(0, 9.0, 9.0).assign(coin="flx:TSLA"))
        assert result["consistent"].tolist() == [True, True]
