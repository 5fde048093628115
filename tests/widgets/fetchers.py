"""Fetchers for tests of widgets: fixed answers, and a gate that blocks a call."""

import threading
from typing import Any


class CannedFetcher:
    """Returns the answer of a function name and records the call; a callable answer is called."""

    def __init__(self, answers):
        self.answers = dict(answers)
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, function, /, *arguments, **named):
        self.asked.append((function.__name__, arguments, named))
        answer = self.answers[function.__name__]
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments, **named) if callable(answer) else answer

    def names(self):
        return [name for name, _, _ in self.asked]


class Gate:
    """Blocks a call until the test opens the gate."""

    def __init__(self):
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self):
        self.reached.set()
        assert self.opened.wait(20)


def run_on_thread(call):
    """Run a call on another thread than the main one, like the kernel's subshells."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(call()))
    thread.start()
    thread.join(20)
    assert outcome, "the call did not end"
    return outcome[0]
