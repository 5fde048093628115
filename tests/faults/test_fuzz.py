"""A sample of the random requests and answers of `tests.faults.fuzz`."""

import toolkit as tk
from tests.faults.fuzz import fuzz_answers, fuzz_requests, sample_bodies
from toolkit.contract.operations import OPERATIONS


def test_random_requests_never_fail():
    session = tk.local(seed=7, size="tiny", default=False)
    statuses = fuzz_requests(session, 400)
    assert max(map(int, statuses)) < 500
    assert {"200", "400"} <= set(statuses)


def test_random_answers_raise_our_errors():
    session = tk.local(seed=7, size="tiny", default=False)
    outcomes = fuzz_answers(session, 600)
    assert sum(outcomes.values()) == 600
    assert outcomes["AnswerInvalid"] > 100
    assert outcomes["frame"] > 100


def test_every_operation_is_fuzzed():
    session = tk.local(seed=7, size="tiny", default=False)
    bodies = sample_bodies()
    assert bodies.keys() > OPERATIONS.keys()
    for name in OPERATIONS:
        assert session.client.post("/info", json=bodies[name]).status_code == 200, name
