"""Threads of widgets: of several requests the newest is shown; polling stops at once."""

import signal
import threading
from typing import NamedTuple

import pytest

from tests.widgets.fetchers import Gate, run_on_thread
from toolkit.widgets.live_monitor import LiveMonitor, MonitorRequest
from toolkit.widgets.panel import Explorer


def alive(name):
    """Return the threads of a name, after those that end have ended."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(20)
    return [thread for thread in threading.enumerate() if thread.name == name]


class View(NamedTuple):
    """A view of a request; its code is the name of the request."""

    code: str


def explorer_of(compute):
    """Return an explorer; a request is a list, so each is a new object."""
    return Explorer([], lambda request: (compute(request[0]), ""))


def test_newest_request_replaces_waiting():
    gate, answered = Gate(), []

    def compute(name):
        answered.append(name)
        if name == "first":
            gate.wait()
        return View(name)

    explorer = explorer_of(compute)
    assert explorer.settle()
    explorer._ask(["first"])
    assert gate.reached.wait(20)
    for name in ("second", "third", "fourth"):
        run_on_thread(lambda name=name: explorer._ask([name]) or True)
    assert not explorer.settle(0)
    assert explorer.view is None
    gate.opened.set()
    assert explorer.settle(20)
    assert alive("widget view") == []
    assert answered == ["first", "fourth"]
    assert explorer.code == "fourth"


def test_request_of_closed_explorer_is_not_shown():
    gate = Gate()
    explorer = explorer_of(lambda name: gate.wait() or View(name))
    explorer._ask(["a"])
    assert gate.reached.wait(20)
    explorer.close()
    gate.opened.set()
    assert explorer.settle(20)
    assert explorer.view is None


def test_settle_waits_after_interrupt():
    gate = Gate()
    explorer = explorer_of(lambda name: gate.wait() or View(name))
    explorer._ask(["a"])
    assert gate.reached.wait(20)
    main = threading.main_thread().ident
    threading.Timer(0.3, signal.pthread_kill, [main, signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        explorer.settle(20)
    assert not explorer.settle(0)
    gate.opened.set()
    assert explorer.settle(20)
    assert explorer.code == "a"


class Looks:
    """Counts updates; a test waits for as many as it needs."""

    def __init__(self):
        self.changed = threading.Condition()
        self.count = 0

    def __call__(self, function, /, *_, **__):
        if function.__name__ == "current_depth":
            with self.changed:
                self.count += 1
                self.changed.notify_all()
        raise OSError("no answer")

    def reach(self, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.count >= count, 20)


def monitor_of(fetch, every="60s", **options):
    return LiveMonitor(MonitorRequest("BTC"), ["BTC", "ETH"], every, fetch, lambda: 0, **options)


def test_monitor_repeats_until_stop():
    looks = Looks()
    with monitor_of(looks, "1s").start() as monitor:
        assert looks.reach(2)
        assert monitor.running
        assert not monitor.stop().running
    assert alive("poll") == []


def test_stop_does_not_wait():
    gate = Gate()

    def fetch(function, /, *_, **__):
        gate.wait()
        raise OSError("an answer")

    monitor = monitor_of(fetch).start()
    assert gate.reached.wait(20)
    assert run_on_thread(monitor.stop)  # returns, though an answer is awaited
    gate.opened.set()
    assert (alive("poll"), monitor.view) == ([], None)


def test_restart_uses_one_thread():
    looks = Looks()
    monitor = monitor_of(looks)
    for _ in range(3):
        assert monitor.start().start().running
        assert looks.reach(1)
        monitor.stop()
    assert alive("poll") == []


def test_monitor_ends_after_limit():
    looks = Looks()
    monitor = monitor_of(looks, "1s", most=2).start()
    assert alive("poll") == []
    assert looks.count == 2
    assert not monitor.running
    assert monitor._switch.description == "Start"
