"""Ingest of recorded pages that may be cut: the covered range is only what a page proves."""

import json

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.archive import world
from toolkit.archive import open as open_archive
from toolkit.local_service import simulated_store
from toolkit.times import HOUR

FILLS = world.make_fills(400)
# The length of a page that ends between two rows of one time.
CUT = next(n for n in range(100, 400) if FILLS[n - 1].time == FILLS[n].time > FILLS[n - 2].time)


class Recording(httpx.BaseTransport):
    """A transport that writes each request with its answer into a file."""

    def __init__(self, inner, folder):
        self._inner = inner
        self._folder = folder
        folder.mkdir()

    def handle_request(self, request):
        answer = self._inner.handle_request(request)
        sent, body = request.read().decode(), answer.read().decode()
        text = f'{{"request": {sent}, "status": {answer.status_code}, "response": {body}}}'
        (self._folder / f"{len(list(self._folder.iterdir())):04}.json").write_text(text)
        return answer


def recorded_page(session, **request):
    sent = {"type": "userFillsByTime", "user": world.USER, **request}
    return {"request": sent, "status": 200, "response": tk.info(sent, session=session)}


def ingest(archive, folder, *recordings):
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for number, recording in enumerate(recordings):
        (folder / f"{number}.json").write_text(json.dumps(recording, separators=(",", ":")))
    return archive.ingest(folder)


def covered_range(archive):
    (row,) = archive.status().itertuples()
    return row.covered_from.value // 1_000_000, row.covered_until.value // 1_000_000, row.gaps


def completeness(frame):
    return str(tk.provenance(frame)["complete"])


@pytest.mark.parametrize("inclusive", [False, True])
def test_full_page_is_covered_before_last_time(tmp_path, inclusive):
    session = world.fill_session(FILLS, inclusive=inclusive)
    archive, last = open_archive(tmp_path / "kept"), FILLS[CUT].time
    page = recorded_page(session, startTime=world.START, limit=CUT)
    assert ingest(archive, tmp_path / "pages", page)["kept"] == {"0.json": CUT}
    assert covered_range(archive) == (world.START, last - 1, 1)
    assert [(finding.kind, finding.severity) for finding in archive.verify()] == [("gap", "notice")]
    assert completeness(archive.frame(tk.user_fills_by_time, world.USER)) == "no"
    assert completeness(archive.frame(tk.user_fills_by_time, world.USER, start=world.START)) == "no"
    assert completeness(archive.frame(tk.user_fills_by_time, world.USER, end=last)) == "no"
    before = archive.frame(tk.user_fills_by_time, world.USER, end=last - 1)
    assert (completeness(before), len(before)) == ("yes", CUT - 1)
    frozen = f"{tmp_path / 'kept'}@{archive.freeze()}"
    assert completeness(open_archive(frozen).frame(tk.user_fills_by_time, world.USER)) == "no"
    offline = tk.local(archive=frozen, default=False)
    with pytest.raises(tk.Incomplete) as caught:
        tk.user_fills_by_time(world.USER, world.START, last, session=offline)
    pd.testing.assert_frame_equal(caught.value.rows, before)
    served = tk.user_fills_by_time(world.USER, world.START, last - 1, session=offline)
    assert completeness(served) == "yes"
    pd.testing.assert_frame_equal(served, before)
    assert ingest(archive, tmp_path / "pages", page)["kept"] == {"0.json": 0}
    assert covered_range(archive) == (world.START, last - 1, 1)
    done = archive.refresh(tk.user_fills_by_time, world.USER, session=session)
    assert (done.rows, covered_range(archive)[2], archive.verify()) == (len(FILLS) - CUT, 0, [])
    whole = open_archive(tmp_path / "undisturbed")
    whole.refresh(tk.user_fills_by_time, world.USER, world.START, session=session)
    assert world.archived_rows(archive) == world.archived_rows(whole)


def test_page_of_one_time_covers_nothing(tmp_path):
    session, archive = world.fill_session(FILLS), open_archive(tmp_path / "kept")
    ingest(archive, tmp_path / "pages", recorded_page(session, startTime=FILLS[CUT].time, limit=1))
    (row,) = archive.status().itertuples()
    assert (row.rows, row.gaps, row.covered_until) == (1, 1, pd.NaT)
    assert completeness(archive.frame(tk.user_fills_by_time, world.USER)) == "no"
    archive.refresh(tk.user_fills_by_time, world.USER, world.START, session=session)
    assert len(world.archived_rows(archive)) == len(set(world.archived_rows(archive))) == len(FILLS)
    assert archive.verify() == []


@pytest.mark.parametrize("inclusive", [False, True])
def test_only_inclusive_next_page_leaves_no_gap(tmp_path, inclusive):
    """With exclusive cursors, the second page lacks rows of the cut transaction: a gap."""
    session, archive = (
        world.fill_session(FILLS, inclusive=inclusive),
        open_archive(tmp_path / "kept"),
    )
    first = recorded_page(session, startTime=world.START, limit=CUT)
    row = first["response"][-1]
    second = recorded_page(session, cursor=f"{row['time']}_{row['txIndex']}")
    found = ingest(archive, tmp_path / "pages", first, second)
    assert found["left"] == {}
    rows, gaps = len(world.archived_rows(archive)), covered_range(archive)[2]
    assert (rows == len(FILLS), gaps) == ((True, 0) if inclusive else (False, 1))
    archive.refresh(tk.user_fills_by_time, world.USER, session=session)
    assert len(set(world.archived_rows(archive))) == len(FILLS)
    assert archive.verify() == []


def test_first_page_by_cursor_covers_after_cursor(tmp_path):
    session, archive = world.fill_session(FILLS), open_archive(tmp_path / "kept")
    cursor = FILLS[CUT]
    after = recorded_page(session, cursor=f"{cursor.time}_{cursor.tx_index}")
    ingest(archive, tmp_path / "pages", after)
    assert covered_range(archive) == (cursor.time + 1, FILLS[-1].time, 0)
    early = recorded_page(session, startTime=world.START, limit=50)
    left = ingest(archive, tmp_path / "pages", early)["left"]
    assert "in the order of their times" in left["0.json"]
    archive.refresh(tk.user_fills_by_time, world.USER, world.START, session=session)
    assert len(world.archived_rows(archive)) == len(set(world.archived_rows(archive))) == len(FILLS)
    assert archive.verify() == []


CALLS = [  # fetch function, its subjects, its further arguments, and rows of a page
    (tk.user_fills_by_time, "users", (), 999),
    (tk.builder_approved_fills_by_time, "builders", (), 501),
    (tk.builder_approved_funding_by_time, "builders", (), 199),
    (tk.builder_orders_by_time, "builders", (), None),
    (tk.user_non_funding_ledger_updates, "users", (), None),
    (tk.slippage_history, "perp_coins", (1_000,), 120),
]


@pytest.mark.parametrize("inclusive", [False, True])
def test_consecutive_pages_join_without_gap(tmp_path, inclusive):
    store = simulated_store(7, "tiny")
    for number, (fetch, subjects, more, size) in enumerate(CALLS):
        folder, archive = tmp_path / f"{number}", open_archive(tmp_path / f"kept {number}")
        session = world.store_session(
            store,
            inclusive=inclusive,
            through=lambda inner, folder=folder: Recording(inner, folder),
            confirm_end=False,  # each recorded page brings new rows
        )
        subject, paged = store.about["world"][subjects][0], {"page_size": size} if size else {}
        fetched = fetch(subject, *more, 0, session=session, **paged)
        pages = sorted(folder.iterdir())
        assert len(pages) > 1
        for page in pages:
            assert archive.ingest(page)["left"] == {}
            archived = archive.frame(fetch, subject, *more)
            assert completeness(archived) == ("yes" if page == pages[-1] else "no")
        pd.testing.assert_frame_equal(archived, fetched)
        again = archive.ingest(folder)
        assert (sum(again["kept"].values()), again["left"]) == (0, {})
        assert not {"gap", "run", "order"} & {finding.kind for finding in archive.verify()}
        assert archive.refresh(fetch, subject, *more, session=session).rows == 0


def test_ingest_refuses_full_latest_page(tmp_path, tiny):
    archive = open_archive(tmp_path / "kept")
    request = {"type": "validatorAprHistory", "validator": tiny.world["validators"][0]}
    weeks = len(tk.info(request, session=tiny))
    for limit, is_left in ((weeks, True), (weeks + 1, False)):
        limited = request | {"limit": limit}
        recorded = {"request": limited, "response": tk.info(limited, session=tiny)}
        assert bool(ingest(archive, tmp_path / "pages", recorded)["left"]) is is_left


def test_payments_come_in_any_text_order(tmp_path):
    """The specification names no collation for the coins of one hour."""
    builder, hour = "0x" + "b" * 40, world.START - world.START % HOUR + HOUR
    rows = [
        {
            "user": world.USER,
            "time": hour + n // 4 * HOUR,
            "hash": "0x0",
            "delta": {"type": "funding", "coin": coin, "usdc": "1", "szi": "1", "fundingRate": "0"},
        }
        for n, coin in enumerate(["kPEPE", "XRP", "kBONK", "BTC"] * 2)
    ]
    asked = {"type": "builderApprovedFundingByTime", "builder": builder}
    first = asked | {"startTime": hour, "limit": 6}
    then = asked | {"cursor": f"{hour + HOUR}_{world.USER}_kPEPE", "limit": 6}
    pages = [(first, rows[:6]), (then, rows[5:])]
    archive = open_archive(tmp_path / "kept")
    sources = [{"request": request, "status": 200, "response": page} for request, page in pages]
    kept = ingest(archive, tmp_path / "pages", *sources)
    assert kept["kept"] == {"0.json": 6, "1.json": 2}
    assert world.error_kinds(archive) == set()
    frame = archive.frame(tk.builder_approved_funding_by_time, builder)
    assert sorted(frame["coin"]) == sorted(row["delta"]["coin"] for row in rows)


def test_history_beyond_specification_needs_no_own_code(tmp_path, tiny):
    archive, file = open_archive(tmp_path / "kept"), tmp_path / "page.json"
    start, end = tiny.now_ms() - 30 * HOUR, tiny.now_ms()
    request = {"type": "fundingHistory", "coin": "BTC", "startTime": start, "endTime": end}
    rows = tk.info(request, session=tiny)
    file.write_text(json.dumps({"request": request, "status": 200, "response": rows}))
    for expected in (len(rows), 0):
        assert archive.ingest(file) == {"kept": {"page.json": expected}, "left": {}}
    times = [row["time"] for row in rows]
    frame = archive.frame("fundingHistory", "BTC", start=start, end=times[-1] - 1)
    assert (tk.provenance(frame)["complete"], len(frame)) == ("yes", len(rows) - 1)
    expected = [float(row["fundingRate"]) for row in rows]
    assert archive.frame("fundingHistory", "BTC")["funding_rate"].tolist() == expected
    assert archive.scan("fundingHistory", engine="pandas")["coin"].unique().tolist() == ["BTC"]
    assert archive.status()["table"].tolist() == ["funding_rate"]
    assert {finding.severity for finding in archive.verify()} <= {"notice"}
    archive.compact()
    served = tk.local(archive=tmp_path / "kept", default=False)
    some = request | {"startTime": times[1], "endTime": times[-2]}
    assert tk.info(some, session=served) == rows[1:-1]
    lines = tmp_path / "rates.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)))
    other = open_archive(tmp_path / "bulk")
    done = other.ingest_bulk(lines, tk.funding_history, start, end)
    assert done == {"kept": {"fundingHistory BTC": len(rows)}, "left": {}}
    fetched = tk.funding_history("BTC", start, end, session=tiny)
    pd.testing.assert_frame_equal(other.frame(tk.funding_history, "BTC"), fetched)
    assert other.ingest(fetched)["kept"] == {"fundingHistory BTC": 0}
    assert other.refresh(tk.funding_history, "BTC", session=tiny).rows == 0
