"""A refresh warns like fetching of data that the service does not have."""

import json
import warnings
from bisect import bisect_left

import httpx
import msgspec

import toolkit as tk
from tests.archive.commands import run_command, serving
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.client import open_session
from toolkit.contract.source_tables import Sources
from toolkit.errors import HistoryWarning
from toolkit.service import build_store
from toolkit.times import to_ms

NOW = to_ms("2026-01-01")
FILLS = make_fills(300)


def live_session(rows=()):
    """Return a session of a service that is not simulated, with these fills and no other rows."""
    plain = [msgspec.to_builtins(row) for row in rows]
    keys = [(row["time"], row["txIndex"]) for row in plain]

    def answer(request):
        body = json.loads(request.content)
        cursor = str(body.get("cursor") or body["startTime"]).split("_")
        first = bisect_left(keys, tuple(map(int, cursor)))  # the fills of the cursor come again
        return httpx.Response(200, content=msgspec.json.encode(plain[first : first + 2_000]))

    transport = httpx.MockTransport(answer)
    return open_session(
        "http://service.test", transport=transport, now_ms=lambda: NOW, default=False
    )


def call_with_warnings(call, *arguments, **named):
    """Return the warnings of a call, which must point to lines of this file, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*arguments, **named)
    assert {warning.category for warning in caught} <= {HistoryWarning}
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught], result


CALLS = [
    (tk.user_fills_by_time, "2025-07-01", None),
    (tk.user_fills_by_time, "2025-08-01", "2025-09-01"),
    (tk.user_fills_by_time, "2026-02-01", None),
    (tk.user_fills_by_time, "2025-08-02", None),
    (tk.builder_approved_fills_by_time, "2025-07-01", None),
    (tk.builder_orders_by_time, "2025-10-01", None),
    (tk.builder_orders_by_time, 0, None),
    (tk.user_non_funding_ledger_updates, "2020-01-01", None),
    (tk.validator_apr_history, "2025-07-01", None),
]


def test_refresh_warns_like_fetch(tmp_path):
    for number, (fetch, start, end) in enumerate(CALLS):
        call = {"start": start, "end": end, "session": live_session()}
        fetched, frame = call_with_warnings(fetch, USER, **call)
        archive = open_archive(tmp_path / str(number))
        for _ in range(2):
            messages, done = call_with_warnings(archive.refresh, fetch, USER, **call)
            assert messages == fetched
            assert done.history == tk.provenance(frame).get("history", "")


def test_refresh_without_start_does_not_warn(tmp_path):
    archive = open_archive(tmp_path)
    done = archive.refresh(tk.user_fills_by_time, USER, session=live_session())
    assert "2025-08-02" in done.history  # TWAP fills from before are missing
    simulated = open_archive(tmp_path / "other")
    done = simulated.refresh(tk.user_fills_by_time, USER, START, session=fill_session(FILLS))
    assert done.history == ""


def test_refresh_state_warns_like_fetch(tmp_path, tiny):
    archive = open_archive(tmp_path)
    fetched, _ = call_with_warnings(tk.meta, dex="nope", session=tiny)
    messages, _ = call_with_warnings(archive.refresh, tk.meta, dex="nope", session=tiny)
    assert messages == fetched
    assert "'nope'" in messages[0]


def test_active_account_warns_over_two_refreshes(tmp_path):
    archive, fills = open_archive(tmp_path), make_fills(100_000)
    for rows in (fills[:60_000], fills):
        messages, _ = call_with_warnings(
            archive.refresh, tk.user_fills_by_time, USER, START, session=live_session(rows)
        )
    assert "one account has 100,000 fills here" in messages[0]
    # No account alone has 100,000 of the fills of a builder.
    rows = [
        {
            **msgspec.to_builtins(fill),
            "user": "0x" + "ab"[n % 2] * 40,
            "startPosition": f"{n // 2}.0",
        }
        for n, fill in enumerate(fills)
    ]
    call = (tk.builder_approved_fills_by_time, USER, "2025-09-01")
    messages, done = call_with_warnings(archive.refresh, *call, session=live_session(rows))
    assert (messages, done.total) == ([], 100_000)


def test_command_warns_once(tmp_path, monkeypatch):
    users = [USER, "0x" + "b" * 40]
    fills = [(user, fill) for user in users for fill in FILLS]
    sources = Sources(start_ms=0, now_ms=NOW, label="test", simulated=False, fills=fills)
    with serving(build_store(sources), monkeypatch):
        words, early = ("refresh", tmp_path, "userFillsByTime", *users), ("--start", "2025-07-01")
        result = run_command(*words, *early)
        assert result.stderr.count("(2025-07-01") == result.stderr.count("warning") == 1
        result = run_command(*words, *early, "--json")
        assert result.stderr.count("(2025-07-01") == 1
        for line in result.stdout.splitlines():
            assert "the first available day (2025-07-28)" in json.loads(line)["history"]
        assert run_command(*words).stderr == ""
