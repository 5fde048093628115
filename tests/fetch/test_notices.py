"""Remarks about missing data: once per call, and only if they are true."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import fill, session_over
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import HistoryWarning
from toolkit.times import to_ms

USER = "0x" + "a" * 40
NOW = to_ms("2026-01-01")


def live_session(rows=None, **options):
    answer = httpx.Response(200, json=rows or [])
    return session_over(lambda request: answer, now_ms=lambda: NOW, **options)


@pytest.fixture(scope="module")
def simulated():
    return tk.local(seed=7, size="tiny", default=False)


SINCE = [
    (tk.user_fills_by_time, "userFillsByTime"),
    (tk.builder_approved_fills_by_time, "builderApprovedFillsByTime"),
    (tk.builder_orders_by_time, "builderOrdersByTime"),
    (tk.validator_apr_history, "validatorAprHistory"),
]


def test_early_start_warns_once():
    for fetch, type_ in SINCE:
        since = OPERATIONS[type_].since
        with pytest.warns(HistoryWarning, match=since) as caught:
            frame = fetch(USER, start=to_ms(since) - 1, session=live_session())
        assert len(caught) == 1
        assert caught[0].filename == __file__  # the line of the caller, not one of the package
        assert f"first available day ({since})" in tk.provenance(frame)["history"]
    for fetch, _ in SINCE[:1] + SINCE[3:]:
        frame = fetch(USER, start="2025-08-04", session=live_session())
        assert "first available day" not in tk.provenance(frame).get("history", "")


def test_request_of_whole_history_does_not_warn(simulated):
    for session in (live_session(), simulated):
        frame = tk.user_fills_by_time(USER, 0, session=session)
        assert (
            "the requested start precedes the first available day (2025-07-28)"
            in (tk.provenance(frame)["history"])
        )
    ledger = tk.user_non_funding_ledger_updates(USER, session=live_session())
    assert "first available day (2025-07-28)" in tk.provenance(ledger)["history"]


# Specification, "Data availability": TWAP fills from 02-08-2025; orders of busy users between
# 7 August and 4 November 2025, both days included.
GAPS = [
    (tk.user_fills_by_time, "2025-07-28", "2025-08-01T23:59:59.999", ["TWAP fills"]),
    (tk.user_fills_by_time, "2025-08-01T23:59:59.999", None, ["TWAP fills"]),
    (tk.user_fills_by_time, "2025-08-02", None, []),
    (tk.builder_orders_by_time, "2025-08-07", "2025-08-07", ["2025-11-05"]),
    (tk.builder_orders_by_time, "2025-11-04T23:59:59.999", None, ["2025-11-05"]),
    (tk.builder_orders_by_time, "2025-11-05", None, []),
]


def test_known_gaps_warn():
    for fetch, start, end, named in GAPS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = fetch(USER, start, end, session=live_session())
        assert len(caught) == len(named)
        for warning, words in zip(caught, named, strict=True):
            assert words in str(warning.message)
            assert words in tk.provenance(frame)["history"]


def test_simulated_exchange_has_no_remarks(simulated):
    builder = simulated.world["builders"][0]
    orders = tk.builder_orders_by_time(builder, "2025-09-01", session=simulated)
    user = simulated.world["users"][0]
    fills = tk.user_fills_by_time(user, "2025-09-01", session=simulated)
    for frame in (orders, fills, tk.user_fills(user, session=simulated)):
        assert "history" not in tk.provenance(frame)


def test_very_active_account_warns():
    quiet = tk.user_fills_by_time(USER, "2025-08-02", session=live_session())
    assert "may be missing: the fills of some very active" in tk.provenance(quiet)["history"]

    def rows(request):
        asked = json.loads(request.content)
        start = int(asked.get("cursor", f"{asked.get('startTime')}_0").split("_")[0]) + 1
        return httpx.Response(200, json=[fill(start + number) for number in range(2_000)])

    session = session_over(rows, now_ms=lambda: NOW)
    with pytest.warns(HistoryWarning, match="100,000 fills"):
        tk.user_fills_by_time(USER, "2025-09-01", max_rows=100_000, session=session)


def test_impossible_range_warns():
    fills, session = tk.user_fills_by_time, live_session()
    with pytest.warns(HistoryWarning, match=r"2026-02-01.*present \(2026-01-01"):
        fills(USER, "2026-02-01", session=session)
    with pytest.warns(HistoryWarning, match=r"2025-09-01.*begins \(2025-10-01"):
        fills(USER, "2025-10-01", "2025-09-01", session=session)
    with pytest.warns(HistoryWarning, match="present"):
        list(tk.pages(fills, USER, "2026-02-01", session=session))


def test_unknown_dex_warns(simulated):
    empty = {"universe": [], "marginTables": []}
    for named, session in (
        ("'nope'; choose one of '', 'eqx', 'pre'$", simulated),
        ("dex 'nope'", live_session(empty)),
    ):
        with pytest.warns(HistoryWarning, match=named):
            tk.meta(dex="nope", session=session)
    with pytest.warns(HistoryWarning, match=r"dex 'nope'"):
        states = tk.batch_clearinghouse_states([USER], dex="nope", session=simulated)
    assert states.accounts["account_value"].tolist() == [0]
    for known in (
        tk.user_fills(USER, dex="main_dex", session=simulated),
        tk.user_fills(USER, dex="eqx", session=simulated),
        tk.batch_clearinghouse_states([USER], dex="ALL_DEXES", session=simulated).accounts,
    ):
        assert "there is no" not in tk.provenance(known).get("history", "")


def test_account_without_builder_rows_is_pointed_to_its_own(simulated):
    funding = tk.builder_approved_funding_by_time(USER, "2d", session=simulated)
    assert "tk.user_funding" in tk.provenance(funding)["history"]
    fills = tk.builder_approved_fills_by_time(USER, "2d", session=simulated)
    assert "tk.user_fills_by_time" in tk.provenance(fills)["history"]


def test_many_warns_once():
    users = [f"0x{number:040x}" for number in range(20)]
    for executor in (None, ThreadPoolExecutor(2)):
        options = {"executor": executor, "session": live_session()}
        with pytest.warns(HistoryWarning) as caught:
            frame = tk.many(tk.user_fills_by_time, users, "2025-07-01", **options)
        assert len(caught) == 1
        assert "first available day (2025-07-28)" in tk.provenance(frame)["history"]


def test_spot_pair_has_no_funding(simulated):
    with pytest.warns(HistoryWarning, match="only perps have funding"):
        rates = tk.funding_history("HYPE/USDC", "1d", session=simulated)
    assert rates.empty
