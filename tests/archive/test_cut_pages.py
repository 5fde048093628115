"""Of a recorded page that may be cut, the archive claims no more than it proves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, USER, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.client import Session, connect
from toolkit.local_service import InProcess, simulated_store, site_of
from toolkit.service import Access, Key

FILLS = fills_of(400)
# A page that ends inside a moment, and the moment after it.
CUT = next(n for n in range(100, 400) if FILLS[n - 1].time == FILLS[n].time > FILLS[n - 2].time)


class Recording(httpx.BaseTransport):
    """Passes requests on, and writes each with its answer into a file."""

    def __init__(self, inner: httpx.BaseTransport, folder: Path) -> None:
        self._inner = inner
        self._folder = folder
        folder.mkdir()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._inner.handle_request(request)
        asked, came = request.read().decode(), answer.read().decode()
        text = f'{{"request": {asked}, "status": {answer.status_code}, "response": {came}}}'
        (self._folder / f"{len(list(self._folder.iterdir())):04}.json").write_text(text)
        return answer


def asked_of(session: Session, **request: Any) -> dict[str, Any]:
    asked = {"type": "userFillsByTime", "user": USER, **request}
    return {"request": asked, "status": 200, "response": tk.info(asked, session=session)}


def ingest(kept: archive.Archive, folder: Path, *recordings: dict[str, Any]) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for number, one in enumerate(recordings):
        (folder / f"{number}.json").write_text(json.dumps(one, separators=(",", ":")))
    return kept.ingest(folder)


def covered(kept: archive.Archive) -> tuple[int, int, int]:
    (one,) = kept.status().itertuples()
    return one.covered_from.value // 1_000_000, one.covered_until.value // 1_000_000, one.gaps


def complete(frame: pd.DataFrame) -> str:
    return str(tk.provenance(frame)["complete"])


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_full_page_proves_what_lies_before_its_last_moment(
    tmp_path: Path, inclusive: bool
) -> None:
    session = session_of(FILLS, inclusive=inclusive)
    kept, last = archive.open(tmp_path / "kept"), FILLS[CUT].time
    page = asked_of(session, startTime=START, limit=CUT)
    assert ingest(kept, tmp_path / "pages", page)["kept"] == {"0.json": CUT}
    assert covered(kept) == (START, last - 1, 1)
    assert [(one.kind, one.severity) for one in kept.verify()] == [("gap", "notice")]
    assert complete(kept.frame(tk.user_fills_by_time, USER)) == "no"
    assert complete(kept.frame(tk.user_fills_by_time, USER, start=START)) == "no"
    assert complete(kept.frame(tk.user_fills_by_time, USER, end=last)) == "no"
    before = kept.frame(tk.user_fills_by_time, USER, end=last - 1)
    assert (complete(before), len(before)) == ("yes", CUT - 1)
    frozen = f"{tmp_path / 'kept'}@{kept.freeze()}"
    assert complete(archive.open(frozen).frame(tk.user_fills_by_time, USER)) == "no"
    offline = tk.local(archive=frozen, default=False)
    with pytest.raises(tk.Incomplete, match="of which some may be missing") as caught:
        tk.user_fills_by_time(USER, START, last, session=offline)
    pd.testing.assert_frame_equal(caught.value.rows, before)
    served = tk.user_fills_by_time(USER, START, last - 1, session=offline)
    assert complete(served) == "yes"
    pd.testing.assert_frame_equal(served, before)
    assert ingest(kept, tmp_path / "pages", page)["kept"] == {"0.json": 0}
    assert covered(kept) == (START, last - 1, 1)
    done = kept.refresh(tk.user_fills_by_time, USER, session=session)
    assert (done.rows, covered(kept)[2], kept.verify()) == (len(FILLS) - CUT, 0, [])
    whole = archive.open(tmp_path / "undisturbed")
    whole.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert rows_of(kept) == rows_of(whole)


def test_a_page_of_one_moment_proves_nothing_until_it_is_refreshed(tmp_path: Path) -> None:
    session, kept = session_of(FILLS), archive.open(tmp_path / "kept")
    ingest(kept, tmp_path / "pages", asked_of(session, startTime=FILLS[CUT].time, limit=1))
    (one,) = kept.status().itertuples()
    assert (one.rows, one.gaps, one.covered_until) == (1, 1, pd.NaT)
    assert complete(kept.frame(tk.user_fills_by_time, USER)) == "no"
    kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert len(rows_of(kept)) == len(set(rows_of(kept))) == len(FILLS)
    assert kept.verify() == []


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_page_that_follows_the_last_row_joins_on_only_if_it_shows_that_row_again(
    tmp_path: Path, inclusive: bool
) -> None:
    """As the specification pages: rows cut off a transaction are lost to exclusive cursors."""
    session, kept = session_of(FILLS, inclusive=inclusive), archive.open(tmp_path / "kept")
    first = asked_of(session, startTime=START, limit=CUT)
    row = first["response"][-1]
    second = asked_of(session, cursor=f"{row['time']}_{row['txIndex']}")
    found = ingest(kept, tmp_path / "pages", first, second)
    if inclusive:
        assert (found["left"], len(rows_of(kept)), covered(kept)[2]) == ({}, len(FILLS), 0)
    else:
        assert "gap between: refresh instead" in found["left"]["1.json"]
        assert (len(rows_of(kept)), covered(kept)[2]) == (CUT, 1)
    kept.refresh(tk.user_fills_by_time, USER, session=session)
    assert len(set(rows_of(kept))) == len(FILLS)
    assert kept.verify() == []


def test_a_page_after_a_cursor_is_whole_from_the_next_moment_on(tmp_path: Path) -> None:
    session, kept = session_of(FILLS), archive.open(tmp_path / "kept")
    cursor = FILLS[CUT]
    after = asked_of(session, cursor=f"{cursor.time}_{cursor.tx_index}")
    ingest(kept, tmp_path / "pages", after)
    assert covered(kept) == (cursor.time + 1, FILLS[-1].time, 0)
    early = asked_of(session, startTime=START, limit=50)
    assert (
        "Ingest the oldest page first" in ingest(kept, tmp_path / "pages", early)["left"]["0.json"]
    )
    kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert len(rows_of(kept)) == len(set(rows_of(kept))) == len(FILLS)
    assert kept.verify() == []


CALLS: list[tuple[Callable[..., Any], str, tuple[Any, ...], int | None]] = [
    (tk.user_fills_by_time, "users", (), 999),
    (tk.builder_approved_fills_by_time, "builders", (), 501),
    (tk.builder_approved_funding_by_time, "builders", (), 199),
    (tk.builder_orders_by_time, "builders", (), None),
    (tk.user_non_funding_ledger_updates, "users", (), None),
    (tk.slippage_history, "perp_coins", (1_000,), 120),
]


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize(("fetch", "subjects", "more", "size"), CALLS)
def test_consecutive_pages_of_every_kind_of_paging_join_up(
    tmp_path: Path, fetch: Any, subjects: str, more: Any, size: int | None, inclusive: bool
) -> None:
    store = simulated_store(7, "tiny")
    site = site_of(store, Access([Key("k", "key")]), inclusive=inclusive)
    through = Recording(InProcess(site), tmp_path / "pages")
    session = connect(
        "http://local", "key", transport=through, now_ms=site.now_ms, simulated=True, default=False
    )
    subject = store.about["world"][subjects][0]
    paged = {} if size is None else {"page_size": size}
    fetched = fetch(subject, *more, 0, session=session, **paged)
    pages = sorted((tmp_path / "pages").iterdir())
    assert len(pages) > 1
    kept = archive.open(tmp_path / "kept")
    for number, page in enumerate(pages, 1):
        assert kept.ingest(page)["left"] == {}
        archived = kept.frame(fetch, subject, *more)
        assert complete(archived) == ("yes" if number == len(pages) else "no")
    pd.testing.assert_frame_equal(archived, fetched)
    again = kept.ingest(tmp_path / "pages")
    assert (sum(again["kept"].values()), again["left"]) == (0, {})
    assert [one for one in kept.verify() if one.kind in ("gap", "run", "order")] == []
    assert kept.refresh(fetch, subject, *more, session=session).rows == 0


def test_a_full_page_of_a_state_is_refused(tmp_path: Path) -> None:
    session, kept = tk.local(seed=7, size="tiny", default=False), archive.open(tmp_path / "kept")
    request = {"type": "validatorAprHistory", "validator": session.world["validators"][0]}
    weeks = len(tk.info(request, session=session))
    for limit, why in ((weeks, "the page is full"), (weeks + 1, "")):
        asked = request | {"limit": limit}
        recorded = {"request": asked, "response": tk.info(asked, session=session)}
        left = ingest(kept, tmp_path / "pages", recorded)["left"]
        assert why in left.get("0.json", "")
        assert bool(left) is bool(why)
