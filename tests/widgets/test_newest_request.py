"""Of several requests the newest one is shown, from any thread."""

import threading

from tests.widgets.fetchers import Gate, run_on_thread
from toolkit.widgets.threads import NewestRequestWorker


def test_request_is_answered_on_thread():
    seen = []
    newest = NewestRequestWorker(
        lambda request, wanted: seen.append((request, threading.current_thread()))
    )
    newest.ask("a")
    assert newest.settle(20)
    assert [request for request, _ in seen] == ["a"]
    assert seen[0][1] is not threading.current_thread()


def test_newest_request_replaces_waiting():
    gate, answered, shown = Gate(), [], []

    def answer(request, wanted):
        answered.append(request)
        if request == "first":
            gate.wait()
        if wanted():
            shown.append(request)

    newest = NewestRequestWorker(answer)
    newest.ask("first")
    assert gate.reached.wait(20)
    for request in ("second", "third", "fourth"):
        run_on_thread(lambda request=request: newest.ask(request) or True)
    gate.opened.set()
    assert newest.settle(20)
    assert answered == ["first", "fourth"]
    assert shown == ["fourth"]


def test_dropped_request_is_not_shown():
    gate, shown = Gate(), []

    def answer(request, wanted):
        gate.wait()
        if wanted():
            shown.append(request)

    newest = NewestRequestWorker(answer)
    newest.ask("a")
    assert gate.reached.wait(20)
    newest.drop()
    gate.opened.set()
    assert newest.settle(20)
    assert shown == []


def test_thread_ends_without_requests():
    newest = NewestRequestWorker(lambda request, wanted: None)
    for number in range(50):
        newest.ask(number)
    assert newest.settle(20)
    for thread in threading.enumerate():
        if thread.name == "widget view":
            thread.join(20)
    assert [t for t in threading.enumerate() if t.name == "widget view"] == []
