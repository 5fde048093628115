"""Funding rows of the simulated exchange that sum several payments: section 5."""

from collections import defaultdict
from decimal import Decimal

import pytest
from msgspec import UNSET

from tests.worlds import world_of
from toolkit.times import HOUR


@pytest.fixture(scope="module", params=[1, 7])
def world(request):
    return world_of("tiny", request.param)


def test_samples_are_null_absent_or_three(world):
    """The native dex has null and the others no field, unless a row sums several payments."""
    kinds = {(":" in row.delta.coin, row.delta.n_samples) for row in world.sources.funding}
    assert kinds == {(False, None), (True, UNSET), (True, 3)}
    several = {row.delta.coin for row in world.sources.funding if row.delta.n_samples == 3}
    assert {coin.partition(":")[0] for coin in several} == {"pre"}


def test_row_of_three_samples_follows_gap(world):
    """Its dex has no rows in the two hours before, and its payments sum to zero."""
    hours, sums = set(), defaultdict(Decimal)
    for row in world.sources.funding:
        if row.delta.coin.startswith("pre:"):
            hours.add((row.time - world.sources.start_ms) // HOUR)
        if row.delta.n_samples == 3:
            sums[row.delta.coin, row.time] += Decimal(row.delta.usdc)
    assert not hours & {34, 35}
    assert hours >= {36, 37}
    assert set(sums.values()) == {Decimal(0)}
