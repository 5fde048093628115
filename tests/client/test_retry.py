"""Rules of retries: which failures are tried again, and which waits of the service are kept."""

import pytest
import stamina

from toolkit.client.retry import Retry, retry_cause
from toolkit.errors import AnswerDamaged, RateLimited, ServiceDown, Unreachable

RULES = Retry(timeout=100.0, draw=lambda: 0.0)


@pytest.fixture
def _waiting():
    """Make stamina wait as it does outside of tests."""
    was = stamina.is_active()
    stamina.set_active(True)
    try:
        with stamina.set_testing(False):
            yield
    finally:
        stamina.set_active(was)


def _slow_down(seconds):
    return RateLimited("slow down", retry_after=seconds)


@pytest.mark.usefixtures("_waiting")
def test_no_attempt_begins_after_timeout():
    waits = [RULES.next_wait(ServiceDown("500"), 1, elapsed) for elapsed in (0.0, 99.9, 100.0)]
    assert waits == [0.25, pytest.approx(0.1), None]
    error = Unreachable("nothing listens")
    error.has_no_service = True  # a missing local service is tried for two seconds
    assert [RULES.next_wait(error, 1, elapsed) is not None for elapsed in (0.0, 1.9, 2.0)] == [
        *(True, True, False)
    ]


@pytest.mark.usefixtures("_waiting")
def test_waits_grow_with_failures():
    for error, waits in (
        (ServiceDown("500"), [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0]),
        (_slow_down(None), [10.0, 20.0, 60.0, 60.0]),
        (_slow_down(0.0), [10.0, 20.0, 60.0, 60.0]),
        (_slow_down(1.0), [0.0, 0.0, 0.0, 2.0, 4.0]),  # the longer of the two; the budget waits 1 s
        (ServiceDown("503", retry_after=20.0), [0.0] * 8),
    ):
        found = [RULES.next_wait(error, number, 0.0) for number in range(1, len(waits) + 1)]
        assert found == waits


@pytest.mark.usefixtures("_waiting")
def test_waits_have_jitter():
    late = Retry(draw=lambda: 1.0)
    assert late.next_wait(ServiceDown("500"), 2, 0.0) == 1.5
    assert late.next_wait(_slow_down(None), 3, 0.0) == 75.0


def test_long_requested_wait_ends_retries():
    for kind, seconds, wait in (
        (RateLimited, 7.0, 0.0),
        (RateLimited, 100.0, 0.0),
        (RateLimited, 100.5, None),
        (ServiceDown, 97.0, 0.0),
        (ServiceDown, 97.5, None),  # 3 s of 100 have passed
    ):
        error = kind("later", retry_after=seconds)
        assert [RULES.next_wait(error, 1, elapsed) for elapsed in (3.0, 101.0)] == [wait, None]


@pytest.mark.usefixtures("_waiting")
def test_requested_wait_is_zero_without_stamina_waits():
    error = _slow_down(7.0)
    stamina.set_active(False)
    assert RULES.requested_wait(error) == 0.0
    stamina.set_active(True)
    with stamina.set_testing(True):
        assert RULES.requested_wait(error) == 0.0
        assert RULES.next_wait(ServiceDown("500"), 8, 0.0) == 0.0


def test_retry_causes_are_named():
    lost = Unreachable("no route")
    lost.cause = "time-out"
    causes = [retry_cause(error) for error in (_slow_down(1), ServiceDown("x"), lost)]
    assert causes == ["429", "500", "time-out"]
    assert retry_cause(RateLimited("in an answer", status=200)) == "rate limit"
    assert retry_cause(AnswerDamaged("cut")) == "answer cut short"
