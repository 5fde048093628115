"""Paging: every row once, in order, however the service reads a cursor."""

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import reader
from toolkit.contract.requests import parse_cursor
from toolkit.errors import AnswerInvalid, Incomplete

FILLS = OPERATIONS["userFillsByTime"]
ORDERS = OPERATIONS["builderOrdersByTime"]
LEDGER = OPERATIONS["userNonFundingLedgerUpdates"]
SLIPPAGE = OPERATIONS["slippageHistory"]
WEEKS = OPERATIONS["validatorAprHistory"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row with every field that a key may name."""

    time: int
    tx_index: int
    number: int

    @property
    def status_timestamp(self) -> int:
        return self.time

    @property
    def timestamp(self) -> int:
        return self.time

    @property
    def week(self) -> int:
        return self.time


def rows_of(groups: list[tuple[int, int]]) -> list[Row]:
    """Make rows of groups given as (gap to the group before, number of rows)."""
    made: list[Row] = []
    time = tx_index = 0
    for gap, size in groups:
        time, tx_index = time + gap, (tx_index + 1 if gap == 0 else 0)
        made += [Row(time, tx_index, len(made) + i) for i in range(size)]
    return made


def pull(
    operation: Operation, serve: Callable[[dict[str, object]], list[Row]], **parameters: object
) -> tuple[list[Row], int]:
    """Read until the end; give the rows and how many requests it took."""
    current, kept, requests = dict(parameters), [], 0
    where = reader(operation, current)
    while True:
        requests += 1
        assert requests < 10_000
        page = serve(current)
        told = where.read(page)
        kept += page[told.start : told.stop]
        if told.after is None:
            return kept, requests
        current |= told.after


def by_cursor(rows: list[Row], *, inclusive: bool, size: int | None = None, operation=FILLS):
    def serve(asked: dict[str, object]) -> list[Row]:
        page = rows
        if "cursor" in asked:
            key = parse_cursor(operation, str(asked["cursor"]))
            page = [
                row
                for row in rows
                if (row.time, row.tx_index) > key or (inclusive and (row.time, row.tx_index) == key)
            ]
        return page[: size or asked["page_size"]]

    return serve


GROUPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=40)


@given(GROUPS, st.integers(1, 50), st.booleans())
def test_a_cursor_pull_has_every_row_once_in_order(groups, size, inclusive) -> None:
    rows = rows_of(groups)
    kept, _ = pull(FILLS, by_cursor(rows, inclusive=inclusive), page_size=size)
    assert kept == rows


@given(GROUPS, st.integers(19, 60), st.booleans())
def test_a_pull_without_page_size_has_every_row_once_in_order(groups, size, inclusive) -> None:
    """Pages of a size that nobody says, but larger than two groups."""
    rows = rows_of(groups)
    serve = by_cursor(rows, inclusive=inclusive, size=size, operation=ORDERS)
    kept, _ = pull(ORDERS, serve)
    assert kept == rows


@given(GROUPS, st.integers(10, 60), st.integers(0, 30), st.integers(0, 60))
def test_a_pull_by_time_has_every_row_once_in_order(groups, size, start, end) -> None:
    # Groups of one millisecond must fit a page: by time nothing leads past them.
    rows = rows_of([(gap + 1, rows) for gap, rows in groups])

    def serve(asked):
        low, high = asked.get("start", 0), asked["end"]
        return [row for row in rows if low <= row.time <= high][:size]

    kept, _ = pull(LEDGER, serve, start=start, end=end)
    assert kept == [row for row in rows if start <= row.time <= end]


@given(st.integers(0, 60), st.integers(1, 30), st.integers(0, 60), st.integers(0, 70))
def test_a_pull_backward_has_every_week_once_newest_first(weeks, size, start, end) -> None:
    rows = [Row(time, 0, time) for time in reversed(range(weeks))]

    def serve(asked):
        if asked["end"] < asked["start"]:
            raise AssertionError("400: endTime must be at or after startTime")
        inside = [row for row in rows if asked["start"] <= row.time <= asked["end"]]
        return inside[: asked["page_size"]]

    if start <= end:
        kept, _ = pull(WEEKS, serve, start=start, end=end, page_size=size)
        assert kept == [row for row in rows if start <= row.time <= end]


def test_continuing_after_the_last_row_would_lose_rows_and_from_it_would_repeat_them() -> None:
    """The two naive readers of the clarifications, against this one."""
    rows = rows_of([(1, 3)] * 40)
    for inclusive in (False, True):
        serve, naive, cursor = by_cursor(rows, inclusive=inclusive), [], {}
        for _ in range(12):
            page = serve({"page_size": 10} | cursor)
            naive += page
            cursor = {"cursor": f"{page[-1].time}_{page[-1].tx_index}"} if page else cursor
        assert naive != rows
        assert pull(FILLS, serve, page_size=10)[0] == rows


def test_a_group_larger_than_the_page_is_read_with_larger_pages() -> None:
    rows = rows_of([(1, 2), (1, 120), (1, 2)])
    for inclusive in (False, True):
        kept, requests = pull(FILLS, by_cursor(rows, inclusive=inclusive), page_size=7)
        assert kept == rows
        assert requests < 10


def test_a_group_larger_than_the_largest_page_is_an_error_that_says_so() -> None:
    rows = rows_of([(1, 2), (1, 2_001), (1, 2)])
    with pytest.raises(Incomplete, match=r"a full page of 2000 rows has one key, 2_0") as caught:
        pull(FILLS, by_cursor(rows, inclusive=False), page_size=2_000)
    assert caught.value.cursor == "1_0"


def test_rows_of_one_millisecond_that_fill_a_silent_page_are_an_error() -> None:
    rows = rows_of([(1, 600)])
    with pytest.raises(Incomplete, match="one key"):
        pull(LEDGER, lambda asked: rows[:500], start=0)


def test_a_page_shorter_than_the_limit_is_the_end() -> None:
    rows = rows_of([(1, 1)] * 9)
    assert pull(FILLS, by_cursor(rows, inclusive=False), page_size=10)[1] == 1


def test_without_a_limit_the_end_shows_only_by_asking_again() -> None:
    rows = rows_of([(1, 1)] * 9)
    kept, requests = pull(
        LEDGER, lambda asked: [r for r in rows if r.time >= asked["start"]], start=0
    )
    assert kept == rows
    assert requests == 2


def test_rows_out_of_order_are_an_error() -> None:
    rows = rows_of([(1, 1)] * 3)[::-1]
    with pytest.raises(AnswerInvalid, match="column time, row 1: rows are not in the order"):
        pull(FILLS, lambda asked: rows, page_size=10)


def test_slippage_pages_by_time_and_its_limit() -> None:
    rows = rows_of([(1, 1)] * 1_300)

    def serve(asked):
        return [row for row in rows if row.time >= asked["start"]][: asked["page_size"]]

    kept, requests = pull(SLIPPAGE, serve, start=0, page_size=500)
    assert kept == rows
    assert requests == 3
