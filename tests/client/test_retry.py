"""Rules of retries: which failures are tried again, and which waits of the service are kept."""

from collections.abc import Iterator

import pytest
import stamina

from toolkit.client.retry import Retry, retry_cause
from toolkit.errors import (
    AnswerDamaged,
    AnswerInvalid,
    BadRequest,
    RateLimited,
    ServiceDown,
    Unreachable,
)

RULES = Retry(timeout=100.0)


@pytest.fixture
def _waiting() -> Iterator[None]:
    """Make stamina wait as it does outside of tests."""
    was = stamina.is_active()
    stamina.set_active(True)
    try:
        with stamina.set_testing(False):
            yield
    finally:
        stamina.set_active(was)


def _slow_down(seconds: float | None) -> RateLimited:
    return RateLimited("slow down", retry_after=seconds)


@pytest.mark.parametrize(
    ("error", "is_retried"),
    [
        (ServiceDown("500"), True),
        (Unreachable("no route"), True),
        (AnswerDamaged("cut short"), True),
        (_slow_down(None), True),
        (BadRequest("400"), False),
        (AnswerInvalid("wrong type"), False),
        (ValueError("ours"), False),
    ],
)
def test_only_temporary_failures_are_retried(error: Exception, is_retried: bool) -> None:
    assert RULES.retry_decision(error, 0.0) is is_retried


@pytest.mark.parametrize(("elapsed", "is_retried"), [(99.9, True), (100.0, True), (100.1, False)])
def test_no_retry_after_timeout(elapsed: float, is_retried: bool) -> None:
    assert RULES.retry_decision(ServiceDown("500"), elapsed) is is_retried


@pytest.mark.parametrize(("elapsed", "is_retried"), [(0.0, True), (2.0, True), (2.1, False)])
def test_missing_local_service_is_retried_two_seconds(elapsed: float, is_retried: bool) -> None:
    error = Unreachable("nothing listens")
    error.has_no_service = True
    assert RULES.retry_decision(error, elapsed) is is_retried


@pytest.mark.parametrize(("seconds", "pause"), [(7.0, 0.0), (100.0, 0.0), (100.5, False)])
def test_requested_wait_adds_no_retry_pause(seconds: float, pause: float | bool) -> None:
    """The budget waits, so the retry itself has no pause; a wait beyond the timeout ends it."""
    found = RULES.retry_decision(_slow_down(seconds), 3.0)
    assert (found, type(found)) == (pause, type(pause))
    assert RULES.retry_decision(_slow_down(seconds), 101.0) is False


@pytest.mark.usefixtures("_waiting")
@pytest.mark.parametrize(
    ("timeout", "error", "wait"),
    [
        (100.0, _slow_down(7.0), 7.0),
        (100.0, _slow_down(100.0), 100.0),
        (100.0, _slow_down(100.5), 0.0),
        (180.0, _slow_down(150.0), 120.0),
        (100.0, _slow_down(None), 0.0),
        (100.0, ServiceDown("500"), 0.0),
    ],
)
def test_requested_wait_is_limited(timeout: float, error: Exception, wait: float) -> None:
    assert Retry(timeout=timeout).requested_wait(error) == wait


@pytest.mark.usefixtures("_waiting")
def test_requested_wait_is_zero_without_stamina_waits() -> None:
    error = _slow_down(7.0)
    stamina.set_active(False)
    assert RULES.requested_wait(error) == 0.0
    stamina.set_active(True)
    with stamina.set_testing(True):
        assert RULES.requested_wait(error) == 0.0


def test_retry_causes_are_named() -> None:
    lost = Unreachable("no route")
    lost.cause = "time-out"
    causes = [retry_cause(error) for error in (_slow_down(1), ServiceDown("x"), lost)]
    assert causes == ["429", "500", "time-out"]
    assert retry_cause(AnswerDamaged("cut")) == "answer cut short"
