"""Arguments that `connect` refuses, and interrupts of a session."""

import importlib.util
import signal
import threading
import time

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import session_over
from toolkit.client import connect
from toolkit.local_service import application_of, simulated_store
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server

INVALID_NUMBERS = {
    "attempts": (0, -1, 1.5, True, "3", None, 10_000, float("nan")),
    "timeout": (0, -1, True, "9", None, float("nan"), float("inf")),
    "points_per_minute": (0, -5, 1.5, True, "9", float("nan")),
    "most_points": (0, -5, 1.5, True, "9"),
}


def test_connect_refuses_invalid_numbers():
    for name, values in INVALID_NUMBERS.items():
        for value in values:
            with pytest.raises(ValueError, match=rf"{name}.* not {value!r}$"):
                connect("http://service.test", default=False, **{name: value})


def test_connect_accepts_extreme_numbers():
    connect("http://service.test", attempts=1, timeout=0.1, most_points=1, default=False)
    connect("http://service.test", attempts=100, timeout=600, default=False)


def test_socks_proxy_needs_library(monkeypatch):
    for name in ("ALL_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("ALL_PROXY", "socks5://me:pass@127.0.0.1:1")
    connect("http://127.0.0.1:8787", default=False).close()  # this machine needs no proxy
    if importlib.util.find_spec("socksio") is None:
        with pytest.raises(tk.errors.MissingExtra, match="pip install socksio") as refused:
            connect("https://service.test", default=False)
        assert "pass" not in str(refused.value)
    monkeypatch.setenv("ALL_PROXY", "gopher://me:pass@127.0.0.1:1")
    with pytest.raises(tk.NotConnected, match=r"ALL_PROXY.* is not valid") as refused:
        connect("https://service.test", default=False)
    assert "pass" not in str(refused.value)


class Slow:
    """An application that interrupts the main thread and then answers."""

    def __init__(self, application):
        self.application = application
        self.hangs = threading.Event()

    def __getattr__(self, name):
        return getattr(self.application, name)

    def answer(self, *asked):
        if self.hangs.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.2)  # the client is interrupted while it waits for this answer
        return self.application.answer(*asked)


def test_interrupt_leaves_session_usable():
    """Interrupt more pulls than there are connections: no connection is lost."""
    store = simulated_store(7, "tiny")
    application = application_of(store, KeyQuotas([AcceptedKey("one", "s3cret")]))
    slow = Slow(application)
    with run_server(slow) as address, connect(address, "s3cret", default=False) as session:
        slow.hangs.set()
        for _ in range(10):
            begun = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                tk.meta(session=session)
            assert time.monotonic() - begun < 5
        slow.hangs.clear()
        assert tk.meta(session=session)["name"].iloc[0] == "BTC"
        users = [f"0x{number:040x}" for number in range(16)]
        assert len(tk.many(tk.user_fills, users, session=session)) == 0
        assert session.counts.retries == 0
    store.close()


def test_interrupt_has_rows_so_far():
    local = tk.local(seed=7, size="tiny", default=False)
    user = local.world["users"][0]
    asked = []

    def handler(request):
        asked.append(request)
        if len(asked) == 3:
            raise KeyboardInterrupt
        answer = local.client.post("/info", content=request.content)
        return httpx.Response(200, content=answer.content)

    session = session_over(handler)
    with pytest.raises(KeyboardInterrupt) as caught:
        tk.user_fills_by_time(user, 0, page_size=50, session=session)
    rows = caught.value.rows
    whole = tk.user_fills_by_time(user, 0, session=local)
    assert 50 < len(rows) <= 100
    assert rows["tid"].tolist() == whole["tid"].tolist()[: len(rows)]
    assert (tk.provenance(rows)["complete"], tk.provenance(rows)["pages"]) == ("no", 2)
