"""Threads of widgets: of several requests the newest is shown; polling stops at once."""

import threading

from tests.widgets.fetchers import Gate, run_on_thread
from toolkit.widgets.threads import NewestRequestWorker, Poller


def alive(name):
    """Return the threads of a name, after those that end have ended."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(20)
    return [thread for thread in threading.enumerate() if thread.name == name]


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
    assert alive("widget view") == []


class Looks:
    """Counts looks; a test waits for as many as it needs."""

    def __init__(self):
        self.changed = threading.Condition()
        self.count = 0
        self.ended = threading.Event()

    def __call__(self, wanted):
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def reach(self, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.count >= count, 20)


def poller(look, seconds=0.001, most=10**6, on_end=lambda: None):
    return Poller(look, lambda: seconds, most=most, on_end=on_end)


def test_poller_repeats_until_stop():
    looks = Looks()
    polling = poller(looks)
    polling.start()
    assert looks.reach(5)
    assert polling.running
    polling.stop()
    assert not polling.running


def test_stop_does_not_wait():
    gate, shown = Gate(), []

    def look(wanted):
        gate.wait()
        if wanted():
            shown.append("an answer")

    polling = poller(look, seconds=3_600)
    polling.start()
    assert gate.reached.wait(20)
    assert run_on_thread(lambda: polling.stop() or True)  # returns, though an answer is awaited
    gate.opened.set()
    assert (alive("poll"), shown) == ([], [])


def test_restart_uses_one_thread():
    looks = Looks()
    polling = poller(looks, seconds=3_600)
    for _ in range(3):
        polling.start()
        polling.start()
        assert looks.reach(1)
        polling.stop()
    polling.start()
    assert len([t for t in threading.enumerate() if t.name == "poll" and t.is_alive()]) <= 4
    polling.stop()


def test_wake_ends_pause():
    looks = Looks()
    polling = poller(looks, seconds=3_600)
    polling.start()
    assert looks.reach(1)
    polling.wake()
    assert looks.reach(2)
    polling.stop()


def test_poller_ends_after_limit():
    looks = Looks()
    polling = poller(looks, most=3, on_end=looks.ended.set)
    polling.start()
    assert looks.ended.wait(20)
    assert looks.count == 3
    assert not polling.running
