"""Intervals of few clusters hold the truth as often as they say."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from toolkit.statistics import Sampling, bootstrap_interval, count_draws, draw_blocks


@pytest.mark.parametrize(("clusters", "mean"), [(3, 0.0), (3, 10.0), (9, 10.0)])
def test_intervals_of_few_clusters_cover_mean(clusters, mean):
    """Means of normal clusters, about zero and all positive: 95 % of 400 intervals, less 2 s.e.

    Percentiles alone reach no farther than the least and the largest of the clusters.
    """
    rng = np.random.default_rng(5)
    held = 0
    for seed in range(400):
        each = rng.normal(mean, 1.0, (clusters, 1))
        sums = Sampling(0.95, 199, seed).sums(each)[1:, 0]
        low, high = bootstrap_interval(sums / clusters, clusters, 0.95)
        held += low <= mean <= high
    assert held / 400 > 0.95 - 2 * np.sqrt(0.95 * 0.05 / 400)


def test_bootstrap_interval_by_hand():
    """Of two clusters Student's quantile is 12.71, times the root of 2 is 17.97."""
    values = np.array([-1.0, 1.0] * 50)
    assert bootstrap_interval(values, 2, 0.95) == pytest.approx((-17.97, 17.97), abs=0.01)
    positive = bootstrap_interval(np.exp(values), 2, 0.95, positive=True)
    assert np.log(positive) == pytest.approx((-17.97, 17.97), abs=0.01)
    assert all(np.isnan(bootstrap_interval(values, 1, 0.95)))
    assert bootstrap_interval(values, 10, 0.95) == (-1.0, 1.0)


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 99))
def test_block_places_are_consecutive(count, block, seed):
    """Within a block each place is followed by the next, the last by the first."""
    places = draw_blocks(np.random.default_rng(seed), 5, count, block)
    assert places.shape == (5, count)
    steps = np.diff(places, axis=1) % count
    inside = np.arange(1, count) % min(block, count) > 0
    assert (steps[:, inside] == 1 % count).all()
    held = count_draws(np.random.default_rng(seed), 5, count, block)
    assert [np.bincount(row, minlength=count).tolist() for row in places] == held.tolist()


def test_each_place_is_drawn_equally_often():
    """Of 7 places in blocks of 3 each comes once a draw, in the mean; 4,000 draws, 4 s.e."""
    held = count_draws(np.random.default_rng(2), 4000, 7, 3)
    assert np.abs(held.mean(axis=0) - 1).max() < 4 * held.std() / np.sqrt(4000)
    assert (count_draws(np.random.default_rng(2), 9, 7, 7) == 1).all()
