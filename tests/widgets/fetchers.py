"""What tests of widgets ask: a source with answers made by hand, or with a switch."""

import threading
from collections.abc import Callable, Mapping
from typing import Any


class CannedFetcher:
    """Answers by function name; what was asked is written down. A callable answer is called."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        self.asked.append((function.__name__, arguments, named))
        answer = self.answers[function.__name__]
        if isinstance(answer, Exception):
            raise answer
        return answer(*arguments, **named) if callable(answer) else answer

    def names(self) -> list[str]:
        return [name for name, _, _ in self.asked]


class Gate:
    """Lets a call wait until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        self.reached.set()
        assert self.opened.wait(20)


def run_on_thread(call: Callable[[], Any]) -> Any:
    """Run a call as the kernel's subshells do: not on the main thread."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(call()))
    thread.start()
    thread.join(20)
    assert outcome, "the call did not end"
    return outcome[0]
