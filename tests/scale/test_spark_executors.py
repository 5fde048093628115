"""Helpers give the pandas result on PySpark with two executors, each a process of its own."""

import pytest

from tests.scale.case import ON_EXECUTORS, cases
from tests.spark import check_equal, close_gateway, open_session

pytestmark = pytest.mark.xdist_group("spark")
CASES = [case for case in cases() if str(case) in ON_EXECUTORS]


@pytest.fixture(scope="module")
def executors():
    session = open_session("local-cluster[2,1,1024]")
    yield session
    session.stop()
    close_gateway()


def test_two_executors_run(executors):
    assert len(CASES) == len(ON_EXECUTORS)
    assert executors.sparkContext.master.startswith("local-cluster[2,")
    assert executors.range(4).count() == 4  # the first job waits for all executors
    # The driver itself is in the list, too.
    assert executors.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3


@pytest.mark.parametrize("case", CASES, ids=str)
def test_executors_equal_pandas(case, executors):
    check_equal(case, case.numbers[-1], executors)
