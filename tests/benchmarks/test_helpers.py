"""Growth of every helper with the number of rows.

The calls of the helpers are those of the tests (tests/scale/cases), on pandas frames. A cell is
empty if the tests do not use so many rows.
"""

import pytest

from tests.benchmarks.growth import measure_growth
from tests.scale.case import cases

MOST = 1_000_000


@pytest.mark.parametrize("case", cases(), ids=str)
def test_growth_of_helper(case, sizes, report):
    fewer = [size for size in sizes if size <= min(case.most, MOST)]
    report(measure_growth(str(case), case.frames, case.run, fewer, rounds=1))
    if case.at_scale:
        frames = case.frames(fewer[-1])
        case.at_scale(frames, case.run(frames))
