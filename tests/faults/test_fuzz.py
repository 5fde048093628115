"""A sample of the random requests and answers of `tests.faults.fuzz`."""

import toolkit as tk
from tests.faults.fuzz import fuzz_answers, fuzz_requests


def test_random_requests_never_fail() -> None:
    session = tk.local(seed=7, size="tiny", default=False)
    statuses = fuzz_requests(session, 400)
    assert max(statuses) < 500
    assert {200, 400} <= set(statuses)


def test_random_answers_raise_our_errors() -> None:
    session = tk.local(seed=7, size="tiny", default=False)
    outcomes = fuzz_answers(session, 150)
    assert sum(outcomes.values()) == 150
    assert outcomes["AnswerInvalid"] > 50
