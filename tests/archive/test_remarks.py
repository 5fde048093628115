"""A refresh warns like fetching of data that the service does not have."""

import json
import warnings
from bisect import bisect_left

import httpx
import msgspec

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from tests.fetch.wire import session_over
from toolkit.archive import open as open_archive
from toolkit.errors import HistoryWarning
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

    return session_over(answer, now_ms=lambda: NOW)


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


def test_active_account_warns_over_two_refreshes(tmp_path):
    archive, fills = open_archive(tmp_path), make_fills(100_000)
    for rows in (fills[:60_000], fills):
        messages, _ = call_with_warnings(
            archive.refresh, tk.user_fills_by_time, USER, START, session=live_session(rows)
        )
    assert "one account has 100,000 fills here" in messages[0]
