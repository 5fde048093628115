"""The data source: the user's choices, the headers of a service, and the look at /healthz."""

import time
from dataclasses import replace
from urllib.parse import quote

import httpx
import pytest

import toolkit as tk
from toolkit.archive.refresh import SeriesPull, prepare_refresh
from toolkit.client import open_session
from toolkit.client.session import DataSource

NOW = 1_759_276_800_000  # 2025-10-01
TOLD = {
    "x-toolkit-now": str(NOW),
    "x-toolkit-clock": "fixed",
    "x-toolkit-source": quote("invented, größer"),
    "x-toolkit-simulated": "true",
}
USER = "0x" + "1" * 40


class Service:
    """A service that answers with empty lists and records its requests."""

    def __init__(self, headers, health=200):
        self.headers, self.health = headers, health
        self.asked = []

    def __call__(self, request):
        self.asked.append(request)
        if request.url.path == "/healthz":
            if self.health == 0:
                raise httpx.ConnectError("nobody")
            return httpx.Response(self.health, headers=self.headers, json={"status": "ok"})
        return httpx.Response(200, headers=self.headers, json=[])

    @property
    def paths(self):
        return [request.url.path for request in self.asked]


def session_of(service, address):
    return open_session(address, "s3cret", transport=httpx.MockTransport(service))


def test_local_service_gets_one_health_request():
    for address in ("http://127.0.0.1:8787", "http://localhost:8787", "http://[::1]:8787"):
        service = Service(TOLD)
        session = session_of(service, address)
        assert service.asked == []
        assert [session.now_ms(), session.now_ms()] == [NOW, NOW]
        assert service.paths == ["/healthz"]
        assert "authorization" not in service.asked[0].headers
        assert (session.label, session.simulated) == ("invented, größer", True)
        assert session.counts.requests == 0


def test_remote_service_gets_no_health_request():
    service = Service({})
    session = session_of(service, "https://service.test")
    tk.user_fills_by_time(USER, "7d", session=session)
    assert service.paths == ["/info"]
    assert abs(session.now_ms() - time.time() * 1_000) < 60_000
    assert (session.label, session.simulated) == ("https://service.test", False)


def test_answer_headers_replace_health_request():
    service = Service(TOLD)
    session = session_of(service, "http://127.0.0.1:8787")
    tk.delegations(USER, session=session)
    assert session.now_ms() == NOW
    assert service.paths == ["/info"]


def test_present_without_health_is_wall_clock():
    for health in (0, 404, 500):
        service = Service({}, health)
        session = session_of(service, "http://127.0.0.1:8787")
        assert abs(session.now_ms() - time.time() * 1_000) < 60_000
        session.now_ms()
        assert service.paths == ["/healthz"]
        assert session.label == "http://127.0.0.1:8787"


def test_age_from_wrong_present_warns():
    session = session_of(Service(TOLD), "https://service.test")
    with pytest.warns(tk.HistoryWarning, match="2025-10-01"):
        fills = tk.user_fills_by_time(USER, "7d", session=session)
    assert "2025-10-01" in tk.provenance(fills)["history"]
    tk.user_fills_by_time(USER, "7d", session=session)  # counted from there: no warning
    session = session_of(Service(TOLD), "https://service.test")
    with pytest.warns(tk.HistoryWarning, match="2025-10-01"):
        tk.many(tk.user_fills_by_time, [USER], "7d", session=session)


def test_malformed_present_is_ignored():
    for now in ("", "soon", "-1", "1e3", "²", "9" * 16):
        source = DataSource("given", simulated=False)
        source.update_from_headers({**TOLD, "x-toolkit-now": now})
        assert (source.stated_now_ms(), source.label, source.simulated) == (None, "given", False)


def test_source_label_has_one_short_line():
    source = DataSource("given", simulated=False)
    source.update_from_headers({**TOLD, "x-toolkit-source": "one%0Atwo"})
    assert source.label == "given"
    source.update_from_headers({**TOLD, "x-toolkit-source": "a" * 1_000})
    assert len(source.label) == 200


def test_live_clock_advances():
    source = DataSource("given", simulated=False)
    source.update_from_headers({**TOLD, "x-toolkit-clock": "live"})
    first, second = source.stated_now_ms(), source.stated_now_ms()
    assert first is not None
    assert second is not None
    assert NOW <= first <= second < NOW + 60_000


def test_simulated_source_stays_simulated():
    source = DataSource("given", simulated=True)
    source.update_from_headers({**TOLD, "x-toolkit-simulated": "false"})
    assert source.simulated


def refresh_gap(session, start):
    """Return the milliseconds between the present and the end of a refresh."""
    request = prepare_refresh(tk.user_fills_by_time, (USER, start), {}, session.now_ms())
    pull = SeriesPull(request, session)
    assert SeriesPull(replace(request, end_ms=NOW - 500), session).until_ms == NOW - 500
    return pull.origin.fetched_ms - pull.until_ms


def test_refresh_ends_before_running_present():
    for clock, later in (("fixed", 0), ("live", 1), (None, 1)):
        headers = {} if clock is None else {**TOLD, "x-toolkit-clock": clock}
        session = session_of(Service(headers), "http://127.0.0.1:8787")
        assert refresh_gap(session, NOW - 1_000) == later
        if clock:
            local = tk.local(seed=7, size="tiny", clock=clock, default=False)
            assert refresh_gap(local, 0) == later


def test_refresh_with_users_clock_ends_before_present():
    service = httpx.MockTransport(Service({}))
    session = open_session("http://s", "key", transport=service, now_ms=lambda: NOW)
    request = prepare_refresh(tk.user_fills_by_time, (USER, 0), {}, NOW)
    assert SeriesPull(request, session).until_ms == NOW - 1
