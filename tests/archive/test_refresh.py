"""A refresh fetches what is missing, once, as it came."""

import warnings
from collections.abc import Callable
from pathlib import Path

import httpx
import msgspec
import pandas as pd
import pytest

import toolkit as tk
from tests.archive.world import START, USER, Changed, Stops, fills_of, rows_of, session_of
from toolkit import archive
from toolkit.contract.operations import OPERATIONS
from toolkit.errors import AnswerInvalid, ArchiveError, ServiceDown

FILLS = fills_of(1_500)
MIDDLE = FILLS[700].time


@pytest.mark.parametrize("inclusive", [False, True])
def test_every_row_is_archived_once_under_both_readings_of_cursors(
    tmp_path: Path, inclusive: bool
) -> None:
    kept = archive.open(tmp_path)
    early, late = (
        session_of(FILLS[:900], inclusive=inclusive),
        session_of(FILLS, inclusive=inclusive),
    )
    counts = [
        kept.refresh(tk.user_fills_by_time, USER, start, page_size=31, session=asked, **more).rows
        for asked, start, more in (
            (early, MIDDLE, {"rows_per_commit": 50}),
            (late, MIDDLE, {}),
            (late, START, {}),  # the beginning, afterwards
            (late, START, {}),
        )
    ]
    assert sum(counts) == len(FILLS)
    assert counts[-1] == 0
    for numbers in ("float", "exact", "text"):
        archived = kept.frame(tk.user_fills_by_time, USER, numbers=numbers)
        fetched = tk.user_fills_by_time(USER, START, numbers=numbers, session=late)
        pd.testing.assert_frame_equal(archived, fetched)
    assert tk.provenance(archived)["complete"] == "yes"


def test_a_range_is_read_back_as_it_is_fetched(tmp_path: Path) -> None:
    kept, session = archive.open(tmp_path), session_of(FILLS)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    archived = kept.frame(tk.user_fills_by_time, USER, start=MIDDLE, end=MIDDLE + 60_000)
    fetched = tk.user_fills_by_time(USER, MIDDLE, MIDDLE + 60_000, session=session)
    pd.testing.assert_frame_equal(archived, fetched)


def test_what_was_read_before_a_failure_is_kept(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    failing = session_of(FILLS, through=lambda inner: Stops(inner, 12))
    with pytest.raises(ServiceDown):
        kept.refresh(tk.user_fills_by_time, USER, START, page_size=31, session=failing)
    before = len(rows_of(kept))
    assert before > 300
    done = kept.refresh(tk.user_fills_by_time, USER, page_size=31, session=session_of(FILLS))
    assert done.rows == len(FILLS) - before
    assert done.total == len(rows_of(kept)) == len(FILLS)


def test_unknown_fields_and_the_text_of_numbers_come_back(tmp_path: Path) -> None:
    def add(content: bytes) -> bytes:
        return content.replace(b'"coin":', b'"nSamples": [1.50, {"a":null}],"coin":')

    kept = archive.open(tmp_path)
    session = session_of(FILLS[:50], through=lambda inner: Changed(inner, add))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept.refresh(tk.user_fills_by_time, USER, START, session=session)
        raw = session.ask(OPERATIONS["userFillsByTime"], {"user": USER, "start": START}).content
        assert [text for _, text in rows_of(kept)] == sorted(
            bytes(one).decode() for one in msgspec.json.decode(raw, type=list[msgspec.Raw])
        )
        # The field is dropped again, or added to archived rows: a refresh still joins on.
        kept.refresh(tk.user_fills_by_time, USER, session=session_of(FILLS))
        assert len(kept.frame(tk.user_fills_by_time, USER, numbers="exact")) == len(FILLS)


def with_field(value: bytes) -> Callable[[httpx.BaseTransport], httpx.BaseTransport]:
    """Give each row an unknown field of this value."""
    change = lambda page: page.replace(b'"coin":', b'"n":%b,"coin":' % value)  # noqa: E731
    return lambda inner: Changed(inner, change)


@pytest.mark.parametrize(
    "value", [b"1e400", b"-1e-400", b"1" * 400, b"[" * 50 + b"]" * 50], ids=repr
)
@pytest.mark.filterwarnings("ignore::toolkit.contract.deviations.UnknownField")
def test_unknown_fields_of_any_value_are_kept_and_joined_on_to(
    tmp_path: Path, value: bytes
) -> None:
    kept, through = archive.open(tmp_path), with_field(value)
    for rows in (50, 100):
        session = session_of(FILLS[:rows], through=through)
        kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert len(rows_of(kept)) == 100
    assert all(f'"n":{value.decode()},' in text for _, text in rows_of(kept))
    assert len(kept.frame(tk.user_fills_by_time, USER, numbers="exact")) == 100
    assert kept.verify() == []
    served = tk.local(archive=str(tmp_path), default=False)
    assert len(tk.user_fills_by_time(USER, START, session=served)) == 100


@pytest.mark.parametrize(
    "value", [b"1" * 5_000, b'"\xff"', b'"\\ud800"'], ids=["digits", "bytes", "half"]
)
def test_what_could_not_be_read_again_is_not_let_in(tmp_path: Path, value: bytes) -> None:
    kept, session = archive.open(tmp_path), session_of(FILLS[:50], through=with_field(value))
    with pytest.raises(AnswerInvalid, match="cannot be read"):
        kept.refresh(tk.user_fills_by_time, USER, START, session=session)
    assert rows_of(kept) == []


def test_another_history_is_refused_and_nothing_is_appended(tmp_path: Path) -> None:
    kept = archive.open(tmp_path)
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS[:900]))
    other = session_of(
        FILLS,
        through=lambda inner: Changed(inner, lambda all: all.replace(b"64000.10", b"64000.20")),
    )
    with pytest.raises(ArchiveError, match="did not come again"):
        kept.refresh(tk.user_fills_by_time, USER, session=other)
    assert len(rows_of(kept)) == 900


def test_states_keep_every_answer_and_show_the_last(tmp_path: Path) -> None:
    kept, session = archive.open(tmp_path), tk.local(seed=7, size="tiny", default=False)
    users = session.world["users"][:4]
    calls = [
        (tk.meta, ()),
        (tk.meta_and_asset_ctxs, ()),
        (tk.historical_orders, (users[0],)),
        (tk.user_fills, (users[0],)),
        (tk.batch_clearinghouse_states, (users,)),
        (tk.account_value_snapshots, (["ALL"],)),
        (tk.perp_twap_snapshots, (["ALL:ALL_DEXES"],)),
        (tk.perp_dex_limits, ("native",)),
        (tk.validator_apr_history, (session.world["validators"][0],)),
    ]
    for fetch, arguments in calls:
        kept.refresh(fetch, *arguments, session=session)
        archived, fetched = kept.frame(fetch, *arguments), fetch(*arguments, session=session)
        one, two = ((x,) if isinstance(x, pd.DataFrame) else x for x in (archived, fetched))
        for a, b in zip(one, two, strict=True):
            pd.testing.assert_frame_equal(a, b)
    assert len(kept.scan("answers", engine="pandas")) == len(calls)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas"])
def test_engines_read_the_same(tmp_path: Path, engine: str) -> None:
    kept, session = archive.open(tmp_path), session_of(FILLS, users=(USER, "0x" + "b" * 40))
    for user in (USER, "0x" + "b" * 40):
        kept.refresh(tk.user_fills_by_time, user, START, session=session)
    found = kept.scan(
        "fills",
        subject=USER,
        operation=tk.user_fills_by_time,
        start=MIDDLE,
        columns=["px", "time", "builder"],
        engine=engine,
    )
    read = {
        "duckdb": lambda: found.to_arrow_table().to_pandas(),
        "polars": lambda: found.collect().to_arrow().to_pandas(),
        "pandas": lambda: found,
    }[engine]()
    assert len(read) == sum(one.time >= MIDDLE for one in FILLS)
    assert read["px"].sum() == pytest.approx(64000.1 * len(read))


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    kept, session = archive.open(tmp_path), session_of(FILLS[:10])
    with pytest.raises(ArchiveError, match="refresh it first"):
        kept.frame(tk.user_fills_by_time, USER)
    with pytest.raises(ArchiveError, match="filter when you read it"):
        kept.refresh(tk.user_fills_by_time, USER, START, dex="xyz", session=session)
    with pytest.raises(ArchiveError, match="no operation"):
        kept.frame("nothing")
    with pytest.raises(ValueError, match="engine"):
        kept.scan("fills", engine="spark")  # type: ignore[arg-type]


def test_a_page_gives_its_rows_as_they_came() -> None:
    seen = []

    class Watch(httpx.BaseTransport):
        def __init__(self, inner: httpx.BaseTransport) -> None:
            self._inner = inner

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = self._inner.handle_request(request)
            seen.append(answer.read())
            return answer

    from toolkit.fetch.pages import read_pages
    from toolkit.fetch.request import prepare_request

    session = session_of(FILLS[:200], through=Watch, inclusive=True)
    request = prepare_request(
        "userFillsByTime", user=USER, start=START, page_size=31, session=session
    )
    texts = [text for page in read_pages(request) for text in page.texts()]
    assert len(texts) == 200
    assert {text for page in seen for text in page[1:-1].replace(b"},{", b"}\n{").split(b"\n")} == {
        *texts
    }


@pytest.mark.parametrize("page", [1, 3])
@pytest.mark.parametrize(("mine", "other"), [(MIDDLE, START), (START, MIDDLE), (START, START)])
def test_of_two_refreshes_at_once_the_later_goes_on_where_the_other_stands(
    tmp_path: Path, mine: int, other: int, page: int
) -> None:
    """Another process refreshes the same account, from elsewhere on, while we read a page."""
    kept, requests = archive.open(tmp_path), []

    class Meanwhile(httpx.BaseTransport):
        def __init__(self, inner: httpx.BaseTransport) -> None:
            self._inner = inner

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            requests.append(request)
            if len(requests) == page:
                theirs, asked = archive.open(tmp_path), session_of(FILLS)
                theirs.refresh(tk.user_fills_by_time, USER, other, page_size=500, session=asked)
            return self._inner.handle_request(request)

    session = session_of(FILLS, through=Meanwhile)
    kept.refresh(
        tk.user_fills_by_time, USER, mine, page_size=250, rows_per_commit=250, session=session
    )
    kept.refresh(tk.user_fills_by_time, USER, START, session=session_of(FILLS))
    assert len(set(rows_of(kept))) == len(rows_of(kept)) == len(FILLS)
    assert [one for one in kept.verify() if one.severity == "error"] == []
