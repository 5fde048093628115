"""How often accounts without skill look skilful, and how often intervals of trips hold the truth.

The shares stand in docs/analysis.md.
"""

from math import sqrt

import pytest

from tests.analysis.interval_coverage import LUCK, discovery_share, hold_share


@pytest.mark.parametrize("name", LUCK)
def test_luck_is_rarely_called_skill(name):
    """At q <= 5 %, at most 5 % of 100 worlds have a discovery, plus two standard errors."""
    assert discovery_share(name, 100) <= 0.05 + 2 * sqrt(0.05 * 0.95 / 100)


@pytest.mark.parametrize("count", [25, 60])
def test_intervals_of_skewed_trips_hold(count):
    """At least 90 % of the intervals of 95 % hold the truth; samples with few losses have none."""
    assert hold_share(f"{count} trips", 200) >= 0.9
