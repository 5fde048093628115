"""A refresh tells, as fetching does, what the service does not have or may not have."""

import json
import warnings
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

import toolkit as tk
from tests.archive.world import START, USER, fills_of, session_of
from toolkit import archive
from toolkit.cli.archive import archive_app
from toolkit.client import connect
from toolkit.contract.sources import Sources
from toolkit.errors import HistoryWarning
from toolkit.local_service import site_of
from toolkit.service import Access, Key, build_store
from toolkit.service.http import run_server
from toolkit.times import to_ms

NOW = to_ms("2026-01-01")
FILLS = fills_of(300)


def real(pages: list[bytes] | None = None) -> tk.Session:
    """Connect to a service that may be a live one: it has these pages, then nothing."""
    left = list(pages or [])
    answer = lambda _: httpx.Response(200, content=left.pop(0) if left else b"[]")  # noqa: E731
    transport = httpx.MockTransport(answer)
    return connect("http://service.test", transport=transport, now_ms=lambda: NOW, default=False)


def told(call: Any, *arguments: Any, **named: Any) -> tuple[list[str], Any]:
    """Call, and give what was warned of, all of it at this file's lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = call(*arguments, **named)
    assert {one.category for one in caught} <= {HistoryWarning}
    assert {one.filename for one in caught} <= {__file__}
    return [str(one.message) for one in caught], made


@pytest.mark.parametrize(
    ("fetch", "start", "end"),
    [
        (tk.user_fills_by_time, "2025-07-01", None),
        (tk.user_fills_by_time, "2025-08-01", "2025-09-01"),
        (tk.builder_approved_fills_by_time, "2025-07-01", None),
        (tk.builder_orders_by_time, "2025-10-01", None),
        (tk.builder_orders_by_time, 0, None),
        (tk.user_non_funding_ledger_updates, "2020-01-01", None),
        (tk.user_fills_by_time, "2026-02-01", None),
        (tk.validator_apr_history, "2025-07-01", None),
        (tk.user_fills_by_time, "2025-08-02", None),
    ],
)
def test_a_refresh_warns_as_fetching_does(tmp_path: Path, fetch: Any, start: Any, end: Any) -> None:
    fetched, frame = told(fetch, USER, start=start, end=end, session=real())
    kept = archive.open(tmp_path)
    for _ in range(2):
        said, done = told(kept.refresh, fetch, USER, start=start, end=end, session=real())
        assert said == fetched
        assert done.history == tk.provenance(frame).get("history", "")


def test_who_goes_on_gets_a_note_and_no_warning(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    done = kept.refresh(tk.user_fills_by_time, USER, session=real())
    assert "TWAP fills from before 2025-08-02 are missing" in done.history
    assert "some very active accounts" in done.history
    simulated = archive.open(tmp_path / "other")
    done = simulated.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS))
    assert done.history == ""


def test_states_are_told_of_too(tmp_path: Path) -> None:
    session, kept = tk.local(seed=7, size="tiny", default=False), archive.open(tmp_path)
    fetched, _ = told(tk.meta, dex="nope", session=session)
    said, _ = told(kept.refresh, tk.meta, dex="nope", session=session)
    assert said == fetched
    assert "there is no dex 'nope'" in said[0]


def test_very_active_accounts_are_counted_over_all_that_is_archived(tmp_path: Path) -> None:
    kept, fills, step = archive.open(tmp_path), fills_of(100_000), 2_000 - 50  # pages overlap
    again = next(n for n, one in enumerate(fills) if one.time == fills[59_999].time)
    for rows in (fills[:60_000], fills[again:]):
        pages = [msgspec.json.encode(rows[n : n + 2_000]) for n in range(0, len(rows), step)]
        said, _ = told(kept.refresh, tk.user_fills_by_time, USER, START, session=real(pages))
    assert "100,000 fills of one account came" in said[0]


def test_of_a_builder_the_fills_of_each_account_are_counted(tmp_path: Path) -> None:
    """50,001 fills of one account and 50,000 of another are not 100,000 of one."""
    kept, users = archive.open(tmp_path), (USER, "0x" + "b" * 40)
    rows = [
        {**msgspec.to_builtins(one), "user": users[n % 2]}
        for n, one in enumerate(fills_of(100_001))
    ]
    pages = [msgspec.json.encode(rows[n : n + 2_000]) for n in range(0, len(rows), 1_950)]
    asked = (tk.builder_approved_fills_by_time, USER, "2025-09-01")
    said, done = told(kept.refresh, *asked, session=real(pages))
    assert (said, done.total) == ([], 100_001)


def test_the_command_line_says_it_once_in_words_and_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = [USER, "0x" + "b" * 40]
    sources = Sources(
        start_ms=0,
        now_ms=NOW,
        label="test",
        simulated=False,
        fills=[(user, fill) for user in users for fill in FILLS],
    )
    store = build_store(sources)
    monkeypatch.setenv("TOOLKIT_API_KEY", "canary")
    with run_server(site_of(store, Access([Key("k", "canary")]))) as address:
        arguments = ["refresh", str(tmp_path), "userFillsByTime", *users, "--base-url", address]
        early = ["--start", "2025-07-01"]
        said = CliRunner().invoke(archive_app, [*arguments, *early])
        assert said.exit_code == 0, said.output
        words = "toolkit: warning: user_fills_by_time: the requested start (2025-07-01"
        assert said.stderr.count(words) == said.stderr.count("warning") == 1
        said = CliRunner().invoke(archive_app, [*arguments, *early, "--json"])
        assert said.stderr.count(words) == 1
        for line in said.stdout.splitlines():
            assert "precedes the first available day (2025-07-28)" in json.loads(line)["history"]
        assert CliRunner().invoke(archive_app, arguments).stderr == ""
    store.close()
