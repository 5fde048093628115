"""Paging: every row once and in order, for inclusive and exclusive cursors and any page end."""

import random
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.operations import OPERATIONS
from toolkit.contract.paging import PageDecision, key_getter, page_reader
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import AnswerInvalid, Incomplete

FILLS = "userFillsByTime"
CURSORS = [FILLS, "builderApprovedFillsByTime", "builderApprovedFundingByTime"]
PAYMENTS = OPERATIONS["builderApprovedFundingByTime"]
Rows = list[Any]
READINGS = pytest.mark.parametrize("inclusive", [False, True], ids=["exclusive", "inclusive"])


def make_rows(row, keys):
    """Return numbered rows with these keys, in the order of the operation."""
    parts = []
    for number, key in enumerate(sorted(keys, reverse=row.paging == "backward")):
        one = SimpleNamespace(number=number, delta=SimpleNamespace())
        for path, part in zip(row.key, key, strict=True):
            *inner, name = path.split(".")
            target = one.delta if inner else one
            setattr(target, name, _key_part(path, part))
        parts.append(one)
    return parts


def _key_part(path, part):
    return {"user": f"0x{part:040x}", "delta.coin": f"C{part}"}.get(path, part)


def row_key(row, one):
    return tuple(attrgetter(path)(one) for path in row.key)


def serve_page(row, rows, asked, cut, inclusive):
    """Return one page of a service that cuts answers at `cut` rows."""
    if cursor := asked.get("cursor"):
        last = parse_cursor(row, cursor)
        found = [
            item
            for item in rows
            if row_key(row, item) > last or (inclusive and row_key(row, item) == last)
        ]
    else:
        start = asked.get("start") or 0
        found = [item for item in rows if row_key(row, item)[0] >= start]
    if (end := asked.get("end")) is not None:
        found = [item for item in found if row_key(row, item)[0] <= end]
    return found[: min(cut, asked.get("page_size") or cut)]


def read_all_pages(row, rows, asked, *, cut=2000, inclusive=False, confirm_pages=None):
    """Return the numbers of the rows, and the number of requests."""
    where, got, requests = page_reader(row, asked), [], 0
    if confirm_pages is not None:
        where.confirm_until, where.confirm_pages = 9, confirm_pages
    while True:
        page = serve_page(row, rows, asked, cut, inclusive)
        requests += 1
        assert requests <= 4 * len(rows) + 10, "reading does not come to an end"
        kept = where.read(page)
        # Rows after the certain ones come once more.
        stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
        got += [item.number for item in page[kept.first_row : stop]]
        if kept.after is None:
            return got, requests
        asked = {**asked, **kept.after}
        if kept.after.get("cursor") is not None:
            asked.pop("start", None)


def tied_keys(parts):
    """Return keys with many ties."""
    return st.lists(st.tuples(*[st.integers(1, 6)] * parts), max_size=60)


@pytest.mark.parametrize("type_", CURSORS)
@READINGS
@given(data=st.data(), size=st.integers(1, 12))
def test_pages_have_every_row_once(type_, inclusive, data, size):
    row = OPERATIONS[type_]
    rows = make_rows(row, data.draw(tied_keys(len(row.key))))
    got, _ = read_all_pages(row, rows, {"start": 0, "page_size": size}, inclusive=inclusive)
    assert got == list(range(len(rows)))


@pytest.mark.parametrize("type_", CURSORS)
@READINGS
@given(data=st.data(), size=st.integers(2, 6), confirm_pages=st.sampled_from([1, 2, 10]))
def test_confirmed_pages_have_every_row_once(type_, inclusive, data, size, confirm_pages):
    row = OPERATIONS[type_]
    rows = make_rows(row, data.draw(tied_keys(len(row.key))))
    asked = {"start": 0, "page_size": size}
    got, _ = read_all_pages(row, rows, asked, inclusive=inclusive, confirm_pages=confirm_pages)
    assert got == list(range(len(rows)))


@pytest.mark.parametrize("type_", CURSORS)
@READINGS
@given(data=st.data(), size=st.integers(1, 12))
def test_range_includes_both_ends(type_, inclusive, data, size):
    row = OPERATIONS[type_]
    rows = make_rows(row, data.draw(tied_keys(len(row.key))))
    start, end = sorted(data.draw(st.tuples(st.integers(1, 6), st.integers(1, 6))))
    asked = {"start": start, "end": end, "page_size": size}
    got, _ = read_all_pages(row, rows, asked, inclusive=inclusive)
    assert got == [row.number for row in rows if start <= row.time <= end]


@READINGS
@pytest.mark.parametrize("size", [7, 2000])
def test_pages_of_many_tied_fills_are_complete(inclusive, size):
    row, draw = OPERATIONS["userFillsByTime"], random.Random(7)
    parts: list[tuple[int, ...]] = []
    time = 0
    while len(parts) < 20_000 // (10 if size == 7 else 1):
        time += draw.choice((0, 1, 5))
        burst = draw.choice((1, 1, 1, 2, 3, 9, draw.randint(1, 120)))
        parts += [(time, draw.randint(0, 3))] * burst
    rows = make_rows(row, parts)
    got, requests = read_all_pages(row, rows, {"start": 0, "page_size": size}, inclusive=inclusive)
    assert got == list(range(len(rows)))
    assert requests < 3 * len(rows) / size + 10


def _without_index(rows, every):
    """Return copies of rows, some of them without a transaction index."""
    return [
        SimpleNamespace(**{**vars(row), "tx_index": None if at % every == 0 else row.tx_index})
        for at, row in enumerate(rows)
    ]


@pytest.mark.parametrize("every", [1, 3], ids=["all lack it", "some lack it"])
def test_rows_without_index_page_by_time(every):
    row, asked = OPERATIONS["userFillsByTime"], {"start": 0, "page_size": 4}
    rows = make_rows(row, [(1, 1), (1, 2), (2, 1), (3, 5), (3, 6), (3, 7), (4, 1), (9, 2), (9, 3)])
    where, got = page_reader(row, asked), []
    while True:
        page = _without_index(serve_page(row, rows, asked, 2000, inclusive=False), every)
        kept = where.read(page)
        got += [item.number for item in page[kept.first_row : kept.end_row]]
        if kept.after is None:
            break
        asked |= kept.after
    assert got == list(range(9))
    assert (where.by_time, asked.get("cursor")) == (True, None)


def test_later_page_without_index_is_refused():
    row, asked = OPERATIONS["userFillsByTime"], {"start": 0, "page_size": 3}
    rows = make_rows(row, [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)])
    where = page_reader(row, asked)
    where.read(rows[:3])
    with pytest.raises(AnswerInvalid, match="lacks a part of time, tx_index"):
        where.read(_without_index(rows[2:], 1))


@READINGS
def test_large_tie_doubles_page_size(inclusive):
    row = OPERATIONS["userFillsByTime"]
    rows = make_rows(row, [(1, 1)] * 3 + [(2, 2)] * 40 + [(3, 3)] * 5)
    got, _ = read_all_pages(row, rows, {"start": 0, "page_size": 4}, inclusive=inclusive)
    assert got == list(range(48))


@READINGS
def test_tie_larger_than_any_page_raises(inclusive):
    row = OPERATIONS["userFillsByTime"]
    rows = make_rows(row, [(1, 1)] * 3 + [(2, 2)] * 2001 + [(3, 3)])
    with pytest.raises(Incomplete, match=r"2_2\. No cursor leads past it") as caught:
        read_all_pages(row, rows, {"start": 0, "page_size": 2000}, inclusive=inclusive)
    assert caught.value.cursor == "1_1"


@READINGS
def test_two_ties_of_one_page_are_complete(inclusive):
    row = OPERATIONS["userFillsByTime"]
    rows = make_rows(row, [(1, 1)] * 1_500 + [(2, 2)] * 1_200 + [(3, 3)] * 7)
    got, _ = read_all_pages(row, rows, {"start": 0, "page_size": 2000}, inclusive=inclusive)
    assert got == list(range(len(rows)))


@READINGS
@pytest.mark.parametrize("seed", range(5))
def test_orders_of_unknown_page_size_are_complete(inclusive, seed):
    row, draw = OPERATIONS["builderOrdersByTime"], random.Random(seed)
    parts: list[tuple[int, ...]] = []
    while len(parts) < 2_500:
        key = (len(parts) // 3, draw.randint(0, 2))
        parts += [key] * draw.choice((1, 1, 2, draw.randint(1, 300)))
    rows = make_rows(row, parts)
    for cut in (500, 777, 2000, 10_000):
        got, _ = read_all_pages(row, rows, {"start": 0}, cut=cut, inclusive=inclusive)
        assert got == list(range(len(rows)))


@pytest.mark.parametrize("cut", [500, 2000])
@pytest.mark.parametrize("seed", range(5))
def test_silently_cut_ledger_is_complete(cut, seed):
    row, draw = OPERATIONS["userNonFundingLedgerUpdates"], random.Random(seed)
    rows = make_rows(row, [(draw.randint(0, 400),) for _ in range(3_000)])
    got, _ = read_all_pages(row, rows, {"start": 0}, cut=cut)
    assert got == list(range(3_000))
    got, _ = read_all_pages(row, rows, {"start": 100, "end": 300}, cut=cut)
    assert got == [row.number for row in rows if 100 <= row.time <= 300]


def test_full_page_of_one_time_raises():
    row = OPERATIONS["userNonFundingLedgerUpdates"]
    rows = make_rows(row, [(1,)] * 10 + [(2,)] * 600 + [(3,)])
    with pytest.raises(Incomplete, match="userNonFundingLedgerUpdates"):
        read_all_pages(row, rows, {"start": 0}, cut=500)


@given(st.sets(st.integers(0, 5_000), max_size=40), st.integers(1, 12))
def test_slippage_pages_have_every_row(times, size):
    row = OPERATIONS["slippageHistory"]
    rows = make_rows(row, [(time,) for time in times])
    got, _ = read_all_pages(row, rows, {"start": 0, "end": 5_000, "page_size": size})
    assert got == list(range(len(rows)))


@given(st.sets(st.integers(0, 300), max_size=40), st.integers(1, 12), st.integers(0, 100))
def test_weeks_page_backward_to_start(weeks, size, start):
    row = OPERATIONS["validatorAprHistory"]
    rows = make_rows(row, [(week,) for week in weeks])
    got, _ = read_all_pages(row, rows, {"start": start, "page_size": size})
    assert got == [row.number for row in rows if row.week >= start]


@pytest.mark.parametrize("type_", ["userFills", "historicalOrders", "delegations", "meta"])
def test_unpaged_operation_is_one_page(type_):
    row = OPERATIONS[type_]
    page = page_reader(row, {}).read([object()] * 5)
    assert (page.first_row, page.end_row, page.after) == (0, 5, None)


@pytest.mark.parametrize("type_", [*CURSORS, "builderOrdersByTime", "slippageHistory"])
def test_empty_page_is_last(type_):
    page = page_reader(OPERATIONS[type_], {"start": 0}).read([])
    assert (page.first_row, page.end_row, page.after) == (0, 0, None)


def test_unordered_rows_are_refused():
    row = OPERATIONS["userFillsByTime"]
    rows = make_rows(row, [(1, 1), (2, 2), (3, 3)])
    rows[1], rows[2] = rows[2], rows[1]
    with pytest.raises(AnswerInvalid, match="not in the order of time, tx_index") as caught:
        page_reader(row, {"start": 0}).read(rows)
    assert (caught.value.column, caught.value.row) == ("time", 2)


def test_short_page_is_last():
    row = OPERATIONS["userFillsByTime"]
    rows = make_rows(row, [(1, 1), (2, 2)])
    page = page_reader(row, {"start": 0, "page_size": 3}).read(rows)
    assert (page.end_row, page.after) == (2, None)


ORDERS, LEDGER, WEEKS = "builderOrdersByTime", "userNonFundingLedgerUpdates", "validatorAprHistory"


@pytest.mark.parametrize(
    ("type_", "asked", "keys", "after"),
    [
        (ORDERS, {}, [(5, 1)] * 3, {"cursor": "5_1"}),
        (LEDGER, {}, [(5,)] * 3, {"start": 6}),
        (LEDGER, {"end": 6}, [(5,)] * 3, {"start": 6}),
        (LEDGER, {"end": 5}, [(5,)] * 3, None),
        (LEDGER, {"end": 0}, [(0,)] * 3, None),
        (WEEKS, {}, [(5,)], {"end": 4}),
        (WEEKS, {"start": 4}, [(5,)], {"end": 4}),
        (WEEKS, {"start": 5}, [(5,)], None),
        (WEEKS, {"end": 5}, [(5,)], {"end": 4}),
    ],
)
def test_first_key_decides_request_after_single_tie(type_, asked, keys, after):
    operation = OPERATIONS[type_]
    where = page_reader(operation, asked)
    assert where.read(make_rows(operation, keys)) == PageDecision(0, len(keys), after)
    assert where.last_kept_key == keys[0]


@pytest.mark.parametrize(
    ("type_", "keys", "after"),
    [
        (ORDERS, [(1, 1), (1, 2), (2, 1), (2, 1)], {"cursor": "1_2"}),
        (LEDGER, [(1,), (1,), (2,), (2,)], {"start": 2}),
        (WEEKS, [(4,), (3,), (2,), (2,)], {"end": 2}),
    ],
)
def test_cut_tie_is_requested_again(type_, keys, after):
    operation = OPERATIONS[type_]
    where = page_reader(operation, {})
    assert where.read(make_rows(operation, keys)) == PageDecision(0, 2, after)
    assert (where.last_kept_key, where.ties) == (keys[1], 1)


def test_times_replace_cursors_without_index():
    """The cursor of an earlier request would win over the time, so it is removed."""
    operation = OPERATIONS[ORDERS]
    rows = _without_index(make_rows(operation, [(1, 1), (1, 2), (2, 1), (2, 2)]), 1)
    assert page_reader(operation, {}).read(rows).after == {"start": 2, "cursor": None}
    assert page_reader(operation, {}).read(rows[:2]).after == {"start": 2, "cursor": None}


def test_silent_cut_is_500_rows():
    operation = OPERATIONS[LEDGER]
    rows = make_rows(operation, [(7,)] * 500)
    assert page_reader(operation, {}).read(rows[:499]) == PageDecision(0, 499, {"start": 8})
    with pytest.raises(Incomplete, match="all 500 rows of a full page have the key 7"):
        page_reader(operation, {}).read(rows)


def test_inclusive_tie_begins_next_page():
    """The row of the cursor came again, so that a page of 3 has only 2 rows of the tie."""
    operation = OPERATIONS["userFillsByTime"]
    rows = make_rows(operation, [(1, 1), *[(2, 2)] * 5])
    where = page_reader(operation, {"page_size": 3})
    assert where.read(rows[:3]) == PageDecision(0, 1, {"cursor": "1_1"})
    assert where.read(rows[:3]) == PageDecision(1, 1, {"cursor": make_cursor((2, 2))})
    assert where.read(rows[1:4]) == PageDecision(0, 0, {"page_size": 6})
    # A service that sends at most 5 rows would send the same page: one with more rows is the proof.
    proof = {"start": 1, "cursor": None, "page_size": 2000}
    assert where.read(rows[1:]) == PageDecision(0, 0, proof)
    assert where.read(rows) == PageDecision(1, 6, None)


@pytest.mark.parametrize(("size", "next_size"), [(4, 8), (1500, 2000)])
def test_page_size_doubles_up_to_most(size, next_size):
    operation = OPERATIONS["userFillsByTime"]
    where = page_reader(operation, {"page_size": size})
    rows = make_rows(operation, [(2, 2)] * size)
    assert where.read(rows) == PageDecision(0, 0, {"page_size": next_size})
    assert where.size == next_size


def test_unordered_row_is_named():
    operation = OPERATIONS["userFillsByTime"]
    rows = make_rows(operation, [(1, 1), (2, 2), (3, 3)])
    with pytest.raises(AnswerInvalid, match="2_2 follows 3_3") as refused:
        page_reader(operation, {}).read([rows[0], rows[2], rows[1]])
    assert (refused.value.operation, refused.value.column, refused.value.row) == (
        "userFillsByTime",
        "time",
        2,
    )


def test_unordered_week_is_named():
    operation = OPERATIONS[WEEKS]
    with pytest.raises(AnswerInvalid, match="10 follows 8") as refused:
        page_reader(operation, {}).read([SimpleNamespace(week=week) for week in (9, 8, 10)])
    assert refused.value.row == 2


def test_reader_starts_with_given_page_size():
    assert page_reader(OPERATIONS["userFillsByTime"], {}).size == 2000
    assert page_reader(OPERATIONS["userFillsByTime"], {"page_size": 7}).size == 7
    assert page_reader(OPERATIONS[LEDGER], {"end": 9}).parameters == {"end": 9}
    assert page_reader(OPERATIONS["meta"], {"end": 9}).size is None


@pytest.mark.parametrize(
    ("type_", "keys", "again", "decision"),
    [
        (LEDGER, [(1,), (1,), (2,), (2,)], [(2,), (2,)], PageDecision(0, 2, None)),
        (ORDERS, [(1, 1), (1, 2), (2, 1)], [(1, 2), (2, 1)], PageDecision(1, 2, None)),
        (LEDGER, [(1,), (1,), (2,)], [(2,), (2,)], PageDecision(0, 2, {"start": 3})),
        # Pages of equal length may have been cut.
        (ORDERS, [(1, 1), (2, 1)], [(1, 1), (2, 1)], PageDecision(1, 1, {"cursor": "2_1"})),
        (LEDGER, [(1,), (2,), (2,)], [(2,), (2,), (2,)], PageDecision(0, 0, {"start": 1})),
    ],
)
def test_only_last_tie_ends_paging(type_, keys, again, decision):
    """The page of a cut tie has no other new rows: it is the last one, unless the tie grew."""
    operation = OPERATIONS[type_]
    where = page_reader(operation, {})
    where.read(make_rows(operation, keys))
    assert where.read(make_rows(operation, again)) == decision


class WrongService:
    """A service that sends at most `cap` rows, and answers with a fault.

    - ``index``: it reads a cursor as its time only
    - ``first``, ``previous``, ``second``: it sends the first page; the page before; the page before
      for every second request
    """

    def __init__(self, row, rows, cap, fault):
        self.row = row
        self.rows = rows
        self.cap = cap
        self.fault = fault
        self.requests: list[dict[str, Any]] = []

    def serve(self, asked, inclusive):
        self.requests.append(dict(asked))
        if self.fault == "first":
            asked = self.requests[0]
        elif self.fault == "previous" or (self.fault == "second" and len(self.requests) % 2 == 0):
            asked = self.requests[-2:][0]
        cursor = asked.get("cursor")
        if cursor and self.fault == "index":
            time = parse_cursor(self.row, cursor)[0] + (not inclusive)
            asked = {**asked, "cursor": None, "start": time}
        return serve_page(self.row, self.rows, asked, self.cap, inclusive)


@pytest.mark.parametrize("type_", [*CURSORS, ORDERS, LEDGER])
@pytest.mark.parametrize("fault", ["none", "index", "first", "previous", "second"])
@READINGS
@given(
    data=st.data(),
    size=st.integers(1, 9),
    cap=st.one_of(st.integers(1, 9), st.just(2000)),
    pages=st.sampled_from([1, 2]),
)
def test_wrong_pages_are_never_silently_complete(type_, fault, inclusive, data, size, cap, pages):
    """Rows may be missing only if no other row of the range shows it: see docs/faults.md."""
    row = OPERATIONS[type_]
    rows = make_rows(row, data.draw(tied_keys(len(row.key))))
    asked = {"start": 0} if row.page is None else {"start": 0, "page_size": size}
    service = WrongService(row, rows, cap, fault)
    first_page = len(serve_page(row, rows, asked, cap, inclusive))
    where, got = page_reader(row, dict(asked), 9, confirm_pages=pages), []
    try:
        while True:
            page = service.serve(where.parameters, inclusive)
            kept = where.read(page)
            stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
            got += [item.number for item in page[kept.first_row : stop]]
            if kept.after is None:
                break
    except (AnswerInvalid, Incomplete):
        assert (fault, cap) != ("none", 2000), "this service answers correctly"
        return
    is_one_page = pages == 2 and row.page is not None and first_page < size
    is_one_time = len({row_key(row, item)[0] for item in rows}) == 1
    assert got == list(range(len(rows))) or is_one_page or is_one_time


class OtherCollation:
    """A service of payments that sorts the texts of a key in its own order.

    `serve` returns at most `cap` rows after the cursor, or from its row on.
    """

    def __init__(self, rows, seed, *, inclusive, cap):
        places = {row_key(PAYMENTS, item)[1:] for item in rows}
        ranks = random.Random(seed).sample(range(len(places)), len(places))
        rank = dict(zip(sorted(places), ranks, strict=True))
        self.rows = sorted(rows, key=lambda item: (item.time, rank[row_key(PAYMENTS, item)[1:]]))
        self.inclusive, self.cap = inclusive, cap

    def serve(self, asked):
        if cursor := asked.get("cursor"):
            keys = [make_cursor(row_key(PAYMENTS, item)) for item in self.rows]
            found = self.rows[keys.index(cursor) + (not self.inclusive) :]
        else:
            found = [item for item in self.rows if item.time >= asked["start"]]
        return found[: min(asked["page_size"], self.cap)]


def read_payments(service, asked, confirm_pages):
    """Return the numbers of the rows that a reader keeps."""
    where, got = page_reader(PAYMENTS, dict(asked), 9, confirm_pages=confirm_pages), []
    for _ in range(4 * len(service.rows) + 10):
        page = service.serve(where.parameters)
        kept = where.read(page)
        stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
        got += [item.number for item in page[kept.first_row : stop]]
        if kept.after is None:
            return got
    raise AssertionError("reading does not come to an end")


PAYMENT_KEYS = st.lists(st.tuples(*[st.integers(1, 4)] * 3), max_size=40, unique=True)


@READINGS
@given(
    keys=PAYMENT_KEYS,
    seed=st.integers(0, 99),
    size=st.integers(2, 9),
    cap=st.one_of(st.integers(2, 9), st.just(2000)),
    confirm_pages=st.sampled_from([1, 2]),
)
def test_texts_of_one_time_have_any_order(inclusive, keys, seed, size, cap, confirm_pages):
    rows = make_rows(PAYMENTS, keys)
    service = OtherCollation(rows, seed, inclusive=inclusive, cap=cap)
    asked = {"start": 0, "page_size": size}
    try:
        got = read_payments(service, asked, confirm_pages)
    except (AnswerInvalid, Incomplete):
        assert cap < size, "this service answers correctly"
        return
    is_one_page = confirm_pages == 2 and cap < size
    assert got == [item.number for item in service.rows] or is_one_page


@READINGS
@given(
    keys=PAYMENT_KEYS.filter(bool), seed=st.integers(0, 99), size=st.integers(2, 9), data=st.data()
)
def test_cursor_continues_in_order_of_service(inclusive, keys, seed, size, data):
    """A cursor names a place in the order of the service, also in the middle of an hour."""
    rows = make_rows(PAYMENTS, keys)
    service = OtherCollation(rows, seed, inclusive=inclusive, cap=2000)
    place = data.draw(st.integers(0, len(rows) - 1))
    cursor = make_cursor(row_key(PAYMENTS, service.rows[place]))
    asked = {"cursor": cursor, "page_size": size}
    got = read_payments(service, asked, data.draw(st.sampled_from([1, 2])))
    assert got == [item.number for item in service.rows[place + 1 :]]


def test_changed_order_of_texts_is_refused():
    """A row that comes again after new rows shows that the service has no fixed order."""
    where = page_reader(PAYMENTS, {"start": 0, "page_size": 3})
    first = [(1, 1, 3), (1, 1, 2), (1, 1, 4)]
    where.read([row for key in first for row in make_rows(PAYMENTS, [key])])
    with pytest.raises(AnswerInvalid, match="comes again, after rows that are new"):
        where.read([*make_rows(PAYMENTS, [(1, 1, 4)]), *make_rows(PAYMENTS, [(1, 1, 3)])])


def test_times_of_payments_stay_in_order():
    pages = make_rows(PAYMENTS, [(2, 1, 1)]), make_rows(PAYMENTS, [(1, 1, 2)])
    with pytest.raises(AnswerInvalid, match="not in the order of time: 1_0x"):
        page_reader(PAYMENTS, {"start": 0}).read([*pages[0], *pages[1]])


def serve_whole_ties(row, rows, asked, cap, inclusive):
    """Return one page of a service that splits no tie that fits into a page."""
    page = serve_page(row, rows, asked, cap, inclusive)
    more = serve_page(row, rows, {**asked, "page_size": len(page) + 1}, len(page) + 1, inclusive)
    end = len(page)
    # Without a cursor, rows of one time belong together.
    parts = len(row.key) if row.paging.endswith("cursor") else 1
    keys = [row_key(row, item)[:parts] for item in more]
    while 0 < end < len(more) and keys[end - 1] == keys[end]:
        end -= 1
    return page[: end or len(page)]


@pytest.mark.parametrize("type_", [FILLS, "builderApprovedFillsByTime", ORDERS, LEDGER])
@READINGS
@given(data=st.data(), size=st.integers(2, 12), cap=st.integers(2, 12))
def test_transaction_that_does_not_fit_is_not_lost(type_, inclusive, data, size, cap):
    """With confirm_end=True: the rows after the last tie are requested without the tie."""
    row = OPERATIONS[type_]
    rows = make_rows(row, data.draw(tied_keys(len(row.key))))
    asked = {"start": 0} if row.page is None else {"start": 0, "page_size": size}
    where, got = page_reader(row, dict(asked), 9, confirm_pages=1), []
    try:
        while True:
            page = serve_whole_ties(row, rows, where.parameters, cap, inclusive)
            kept = where.read(page)
            stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
            got += [item.number for item in page[kept.first_row : stop]]
            if kept.after is None:
                break
    except (AnswerInvalid, Incomplete):
        return
    is_one_time = len({row_key(row, item)[0] for item in rows}) == 1
    assert got == list(range(len(rows))) or is_one_time


@pytest.mark.parametrize(
    ("counts", "confirm_pages", "requests"),
    [
        ((3, 6, 5), 1, 5), ((3, 6, 5), 2, 1),
        # The last tie has few of the rows of the page: by default one request confirms it.
        ((95, 5), 1, 3), ((95, 5), 2, 2), ((85, 15), 2, 3), ((85, 15, 95), 2, 4),
    ],
)  # fmt: skip
def test_end_before_large_transaction(counts, confirm_pages, requests):
    """A page of whole transactions ends before one that does not fit."""
    row, cap = OPERATIONS[FILLS], 10 if sum(counts) < 50 else 100
    rows = make_rows(row, [(at, 0) for at, count in enumerate(counts) for _ in range(count)])
    where, got = page_reader(row, {"start": 0}, 9, confirm_pages=confirm_pages), []
    sent, is_at_end = 0, False
    while not is_at_end:
        page = serve_whole_ties(row, rows, where.parameters, cap, inclusive=False)
        kept, sent = where.read(page), sent + 1
        stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
        got += [item.number for item in page[kept.first_row : stop]]
        is_at_end = kept.after is None
    assert sent == requests
    assert (got == list(range(len(rows)))) == (requests > 1)


def read_with_arrivals(
    row, keys, *, arrivals=(), arrive_before=0, size=2000, cap=2000, inclusive, confirm_pages=2
):
    """Return the numbers of the rows, and the number of requests; rows arrive before one."""
    rows, all_rows = make_rows(row, keys), make_rows(row, [*keys, *arrivals])
    where = page_reader(row, {"start": 0, "page_size": size}, 100, confirm_pages=confirm_pages)
    got: list[int] = []
    for request in range(1, 30):
        now = all_rows if request >= arrive_before else rows
        page = serve_page(row, now, where.parameters, cap, inclusive)
        kept = where.read(page)
        stop = kept.end_row if kept.certain_end_row is None else kept.certain_end_row
        got += [item.number for item in page[kept.first_row : stop]]
        if kept.after is None:
            return got, request
    raise AssertionError("reading does not come to an end")


@pytest.mark.parametrize("confirm_pages", [1, 2])
@READINGS
def test_proof_ending_before_tie_loses_nothing(inclusive, confirm_pages):
    """The proof of the last tie begins so early that one page does not contain the tie."""
    keys = [(time, 0) for time in range(10, 49)] + [(50, index) for index in range(12)]
    got, _ = read_with_arrivals(
        OPERATIONS[FILLS],
        [*keys, *[(50, 99)] * 45],
        size=40,
        cap=50,
        inclusive=inclusive,
        confirm_pages=confirm_pages,
    )
    assert got == list(range(39 + 12 + 45))


@pytest.mark.parametrize("arrive_before", range(2, 7))
@pytest.mark.parametrize("count", range(3996, 4001))
@READINGS
def test_rows_arriving_after_large_hour_lose_nothing(inclusive, count, arrive_before):
    """A page cannot contain all rows of the hour: as a proof it ends before the last of them."""
    hour = [(10, user, 0) for user in range(count)]
    later = [(20, user, 0) for user in range(count)]
    got, _ = read_with_arrivals(
        OPERATIONS["builderApprovedFundingByTime"],
        hour,
        arrivals=later,
        arrive_before=arrive_before,
        inclusive=inclusive,
    )
    assert got in (list(range(count)), list(range(2 * count)))


@pytest.mark.parametrize("confirm_pages", [1, 2])
@READINGS
def test_arrival_that_fills_proof_loses_nothing(inclusive, confirm_pages):
    """One row that arrived is the last of a full proof page: it may be cut, and comes again."""
    keys = [(10, user, 0) for user in range(1999)]
    for arrive_before in range(2, 6):
        got, _ = read_with_arrivals(
            OPERATIONS["builderApprovedFundingByTime"],
            keys,
            arrivals=[(20, 0, 0)],
            arrive_before=arrive_before,
            size=1500,
            inclusive=inclusive,
            confirm_pages=confirm_pages,
        )
        assert got in (list(range(1999)), list(range(2000)))


@pytest.mark.parametrize("confirm_pages", [1, 2])
@pytest.mark.parametrize("size", [1000, 1500, 1998, 1999])
@pytest.mark.parametrize("before", [1, 5])
@READINGS
def test_last_transaction_of_page_size_is_complete(inclusive, before, size, confirm_pages):
    keys = [(time, 0) for time in range(10, 10 + before)] + [(50, 1)] * size
    got, _ = read_with_arrivals(
        OPERATIONS[FILLS],
        keys,
        size=size,
        inclusive=inclusive,
        confirm_pages=confirm_pages,
    )
    assert got == list(range(before + size))


@pytest.mark.parametrize(
    ("size", "count", "requests"),
    [
        (2000, 1799, 1), (2000, 1801, 2), (2000, 1999, 2), (20, 18, 1), (20, 19, 2),
        (2000, 100, 2), (2000, 300, 2), (2000, 101, 1), (2000, 250, 1),
    ],
)  # fmt: skip
def test_nearly_full_first_page_is_confirmed(size, count, requests):
    """A transaction may not have fitted into the page; hundreds may be the service's limit."""
    keys = [(10, index) for index in range(count)]
    got = read_with_arrivals(OPERATIONS[FILLS], keys, size=size, inclusive=False)
    assert got == (list(range(count)), requests)


def test_largest_page_of_one_tie_is_incomplete():
    operation = OPERATIONS["userFillsByTime"]
    where = page_reader(operation, {})
    where.read(make_rows(operation, [(1, 1), *[(2, 2)] * 1999]))
    with pytest.raises(Incomplete) as cut:
        where.read(make_rows(operation, [(2, 2)] * 2000))
    assert cut.value.cursor == "1_1"
    assert str(cut.value).startswith(
        "userFillsByTime: all 2000 rows of a full page have the key 2_2. No cursor leads past it, "
        "so the rows after it cannot be fetched. Fetch the times before and after it separately"
    )
    with pytest.raises(Incomplete) as first:
        page_reader(operation, {}).read(make_rows(operation, [(2, 2)] * 2000))
    assert first.value.cursor is None


def read_keys(where, *pages):
    """Return the decision on each page, from the keys of its rows."""
    return [where.read(make_rows(where.operation, keys)) for keys in pages]


def test_end_of_single_tie_is_confirmed():
    """The short third page seems to be the end; the empty fourth page confirms it."""
    where = page_reader(OPERATIONS["userFillsByTime"], {"start": 0, "page_size": 4}, 10)
    first, second, last = (1, 0), (1, 1), (2, 0)
    assert read_keys(where, [*[first] * 3, second], [*[second] * 3, last], [last], []) == [
        PageDecision(0, 3, {"cursor": "1_0"}),
        PageDecision(0, 3, {"cursor": "1_1"}),
        PageDecision(0, 1, {"cursor": "2_0"}, certain_end_row=1),
        PageDecision(0, 0, None, is_confirmed=True),
    ]
    assert (where.last_kept_key, where.ties) == (last, 2)


def test_end_of_two_ties_is_confirmed():
    """The last tie of the short page came again with the same rows."""
    where = page_reader(OPERATIONS["userFillsByTime"], {"page_size": 5, "end": 99}, 10)
    pages = [
        [(1, 1), (1, 1), (1, 2), (1, 3), (2, 1)],
        [(2, 1), (3, 1), (3, 1)],
        [(3, 1), (3, 1)],
        [],
    ]
    assert read_keys(where, *pages) == [
        PageDecision(0, 4, {"cursor": "1_3"}),
        PageDecision(0, 3, {"cursor": "2_1"}, certain_end_row=1),
        PageDecision(0, 2, {"cursor": "3_1"}, certain_end_row=2),
        PageDecision(0, 0, None, is_confirmed=True),
    ]
    assert where.last_kept_key == (3, 1)


def test_new_rows_lead_to_another_confirmation():
    """The end is not confirmed: the same tie grew, and the pull asks again."""
    where = page_reader(OPERATIONS["userFillsByTime"], {"page_size": 5}, 10)
    pages = [[(1, 1), (1, 1), (1, 2), (1, 3), (2, 1)], [(2, 1), (3, 1)], [(3, 1), (3, 1)], []]
    assert read_keys(where, *pages)[1:] == [
        PageDecision(0, 2, {"cursor": "2_1"}, certain_end_row=1),
        PageDecision(0, 2, {"cursor": "3_1"}, certain_end_row=2),
        PageDecision(0, 0, None, is_confirmed=True),
    ]


def read_fills(size, *pages, confirm_pages=2, **asked):
    """Return the decision on each page of fills; the pull began at 10."""
    asked = {"page_size": size, **asked}
    return read_keys(page_reader(OPERATIONS[FILLS], asked, 10, confirm_pages=confirm_pages), *pages)


def proof_from(time):
    return PageDecision(0, 0, {"start": time, "cursor": None, "page_size": 2000})


def test_rows_after_single_tie_need_one_proof():
    """The page with the tie and the rows after it shows all rows, and is kept like any other."""
    tie, later = [(1, 7)] * 3, [(4, 2), (4, 3)]
    full = [*[(0, 0)] * 4, (1, 7)]
    assert read_fills(5, full, tie, later, tie + later, start=0) == [
        PageDecision(0, 4, {"cursor": "0_0"}),
        PageDecision(0, 3, {"cursor": "1_7"}, certain_end_row=3),
        PageDecision(0, 0, {"start": 1, "cursor": None, "page_size": 2000}),
        PageDecision(3, 5, {"cursor": "4_2"}, certain_end_row=4),
    ]


def test_full_page_of_cursor_rows_requests_next_key():
    """They may have filled the page: the next request begins with the next possible key."""
    tie = [(1, 7)] * 3
    pages = [tie, tie, tie, [(4, 2)], [*tie, (4, 2)]]
    assert read_fills(5, *pages, confirm_pages=1, start=0)[1:] == [
        PageDecision(0, 3, {"cursor": "1_7"}, certain_end_row=3),
        PageDecision(3, 3, {"cursor": "1_8"}),
        proof_from(1),
        PageDecision(3, 4, {"page_size": 1999}, certain_end_row=3),
    ]
    last = read_fills(5, *pages[:3], [], confirm_pages=1, start=0, end=1)[-1]
    assert last == PageDecision(0, 0, None)


def test_full_page_of_payments_requests_next_time():
    """The cursor of a payment ends in a text, which has no next one."""
    operation = OPERATIONS["builderApprovedFundingByTime"]
    payments = make_rows(operation, [(1, 7, 1)] * 3)
    for end, after in ((9, {"start": 2, "cursor": None}), (1, None)):
        reader = page_reader(
            operation, {"start": 0, "end": end, "page_size": 5}, 9, confirm_pages=1
        )
        decisions = [reader.read(payments) for _ in range(3)]
        assert decisions[-1].after == after


@pytest.mark.parametrize("rows_per_page", [1, 2, 3])
def test_first_tie_hides_no_row(rows_per_page):
    """The service sends fewer rows than it should, and each page begins with the cursor's rows."""
    operation = OPERATIONS[ORDERS]
    rows = make_rows(operation, [(1, 7)] * rows_per_page + [(1, 8)])
    with pytest.raises(Incomplete, match="may be missing"):
        read_all_pages(operation, rows, {"start": 0}, cut=rows_per_page, inclusive=True)


@pytest.mark.parametrize(("end", "last"), [(9, {"start": 2, "cursor": None}), (1, None)])
def test_service_that_reads_time_of_cursor_ends(end, last):
    """It sends the rows of the key again, so that the next request begins 1 ms after them."""
    tie = [(1, 7)] * 3
    decisions = read_keys(page_reader(OPERATIONS[ORDERS], {"start": 0, "end": end}), *[tie] * 3)
    assert decisions[1:] == [
        PageDecision(3, 3, {"cursor": "1_8"}),
        PageDecision(3, 3, last, is_confirmed=decisions[-1].is_confirmed),
    ]


def test_tie_that_began_page_requests_next_key():
    """Its cursor was requested before, so that the next request begins after it."""
    page = [(1, 1), (1, 1), (2, 7)]
    for end in (9, 2):
        assert read_fills(3, page, page, [(2, 7)], end=end) == [
            PageDecision(0, 2, {"cursor": "1_1"}),
            PageDecision(2, 2, {"cursor": "2_7"}),
            PageDecision(0, 1, {"cursor": "2_8"}, certain_end_row=1),
        ]


def test_proof_of_single_row_starts_earlier():
    """The tie has one row: the row before it is that of the cursor."""
    first, second, last = (1, 1), (2, 7), (3, 1)
    pages = [[(0, 0), (0, 0), first, second], [first, second], [second, last], [second, last]]
    assert read_fills(4, *pages) == [
        PageDecision(0, 3, {"cursor": "1_1"}),
        PageDecision(1, 2, {"cursor": "2_7"}, certain_end_row=2),
        PageDecision(1, 1, {"start": 2, "cursor": None, "page_size": 2000}),
        PageDecision(1, 2, {"cursor": "3_1"}, certain_end_row=2),
    ]


def test_full_proof_requests_followers_again():
    """The proof is full before the rows that follow in the same millisecond."""
    many, tie, later = [(10, 0)] * 1997, [(10, 1)] * 3, [(10, 2)]
    proof = PageDecision(0, 0, {"start": 10, "cursor": None, "page_size": 2000})
    for size, again in ((1998, 2000), (2000, 1999)):
        first = [*many, *tie][:size] if size == 1998 else [(9, 0), *many, (10, 1), (10, 1)]
        pages = [first, tie, later, [*many, *tie], later]
        assert read_fills(size, *pages)[1:] == [
            PageDecision(0, 3, {"cursor": "10_1"}, certain_end_row=3),
            proof,
            PageDecision(0, 0, {"cursor": "10_1", "page_size": again}),
            PageDecision(0, 1, {"cursor": "10_2"}, certain_end_row=1),
        ]


def test_full_proof_of_last_tie_begins_later():
    """The proof from 1 is full before the tie, so that the next one begins at the tie."""
    first, tie = [(1, 0), (1, 1), (5, 7)], [(5, 7)] * 3
    proof = [(1, 0)] * 1999 + [(1, 1)]
    assert read_fills(5, first, tie, proof, tie, confirm_pages=1) == [
        PageDecision(0, 3, {"cursor": "1_1"}, certain_end_row=2),
        proof_from(1),
        proof_from(5),
        PageDecision(0, 3, {"page_size": 1999}, certain_end_row=0),
    ]


def test_proof_without_the_tie_is_refused():
    """A tie that is requested again comes with all of its rows."""
    first, tie = [(1, 0), (1, 1), (5, 7)], [(5, 7)] * 3
    proof = [(1, 0)] * 1999 + [(1, 1)]
    with pytest.raises(AnswerInvalid, match=r"3 rows with the key 5_7 .* page has 2 of them"):
        read_fills(5, first, tie, proof, tie[1:], confirm_pages=1)
    full, later = [*[(0, 0)] * 4, (1, 7)], [(4, 2), (4, 3)]
    with pytest.raises(
        Incomplete, match=r"rows after 1_7 may be missing.* such as this one with 4"
    ):
        read_fills(5, full, [(1, 7)] * 3, later, [*[(1, 7)] * 2, *later])


def test_600_rows_of_known_page_are_not_full():
    """The page size is known, so that only a page of 2000 rows is full."""
    first, tie, later = [*[(9, 0)] * 699, (10, 1)], [(10, 1)] * 600, [(10, 2)]
    assert read_fills(700, first, tie, later, [*tie, *later])[2:] == [
        proof_from(10),
        PageDecision(600, 601, {"cursor": "10_2"}, certain_end_row=601),
    ]


def test_proof_starts_before_first_request():
    """The request from 5 was the first one, so that the proof begins 1 ms earlier."""
    where = page_reader(OPERATIONS[LEDGER], {"start": 5})
    tie, later = [(5,), (5,)], [(7,), (8,)]
    assert read_keys(where, tie, later, [(4,), *tie, *later]) == [
        PageDecision(0, 2, {"start": 6}),
        PageDecision(0, 0, {"start": 4}),
        PageDecision(3, 4, {"start": 8}),
    ]


@pytest.mark.parametrize(("count", "after"), [(7, {"page_size": 10}), (8, {"cursor": "6_1"})])
def test_only_tie_of_nearly_full_page_is_uncertain(count, after):
    where = page_reader(OPERATIONS[FILLS], {"start": 5, "page_size": 9}, 10, confirm_pages=1)
    certain = 0 if "page_size" in after else count
    assert read_keys(where, [(6, 1)] * count) == [
        PageDecision(0, count, after, certain_end_row=certain)
    ]


@pytest.mark.parametrize(
    ("confirm_until", "keys"),
    [(2, [(1, 1), (3, 1)]), (None, [(1, 1), (3, 1)]), (None, [(0, 1)] * 2)],
)
def test_late_end_needs_no_confirmation(confirm_until, keys):
    where = page_reader(OPERATIONS["userFillsByTime"], {"page_size": 3}, confirm_until)
    before = [(0, 0), (0, 0), keys[0]]
    assert read_keys(where, before, keys)[1] == PageDecision(0, 2, None)


def test_only_page_needs_no_confirmation():
    where = page_reader(OPERATIONS["userFillsByTime"], {"page_size": 3}, 10)
    assert read_keys(where, [(1, 1), (2, 1)]) == [PageDecision(0, 2, None)]


@pytest.mark.parametrize("chosen", [{"dex": "flx"}, {"aggregate_by_time": True}])
def test_only_page_with_filter_is_confirmed(chosen):
    """A service may apply a filter after its limit; an empty page shows no row to continue from."""
    asked = {"page_size": 9, "start": 0, **chosen}
    where = page_reader(OPERATIONS[FILLS], asked, 10)
    assert read_keys(where, [(1, 1), (2, 1)], [(2, 1)]) == [
        PageDecision(0, 2, {"cursor": "1_1"}, certain_end_row=1),
        PageDecision(0, 1, None, is_confirmed=True),
    ]
    assert page_reader(OPERATIONS[FILLS], asked, 10).read([]) == PageDecision(0, 0, None)
    assert (
        page_reader(OPERATIONS[FILLS], asked).read(make_rows(OPERATIONS[FILLS], [(1, 1)])).after
        is None
    )


def test_rows_without_index_need_no_confirmation():
    operation = OPERATIONS["userFillsByTime"]
    rows = _without_index(make_rows(operation, [(1, 1), (2, 1)]), 1)
    where = page_reader(operation, {"page_size": 2}, 10)
    assert where.read(rows).after == {"start": 2, "cursor": None}
    assert where.read(rows[1:]) == PageDecision(0, 1, None)


def test_cursor_replaces_start_in_next_request():
    """A cursor replaces the start; a time replaces a cursor; the end stays."""
    where = page_reader(OPERATIONS["userFillsByTime"], {"start": 1, "end": 9, "page_size": 2})
    read_keys(where, [(1, 1), (2, 1)])
    assert where.parameters == {"cursor": "1_1", "end": 9, "page_size": 2}
    operation = OPERATIONS["userFillsByTime"]
    where = page_reader(operation, {"start": 1, "end": 9, "page_size": 2})
    where.read(_without_index(make_rows(operation, [(1, 1), (2, 1)]), 1))
    assert where.parameters == {"start": 2, "end": 9, "page_size": 2, "cursor": None}


_EPOCH = "1970-01-01T00:00:00"


@pytest.mark.parametrize(
    ("type_", "asked", "keys", "row", "place"),
    [
        (LEDGER, {"start": 5}, [(4,), (5,), (6,)], 0, f"before the requested start {_EPOCH}.005Z"),
        (LEDGER, {"end": 9}, [(6,), (10,), (11,)], 2, f"after the requested end {_EPOCH}.009Z"),
        (
            ORDERS,
            {"cursor": "5_2"},
            [(5, 1), (6, 0)],
            0,
            rf"before the requested cursor 5_2 \({_EPOCH}.005Z\)",
        ),
        (ORDERS, {"cursor": "5_2", "start": 7}, [(5, 1), (8, 0)], 0, "requested cursor 5_2"),
        (WEEKS, {"end": 9}, [(10,), (9,), (8,)], 0, f"after the requested end {_EPOCH}.009Z"),
        (WEEKS, {"start": 9}, [(10,), (9,), (8,)], 2, f"before the requested start {_EPOCH}.009Z"),
    ],
)
def test_row_outside_of_request_is_refused(type_, asked, keys, row, place):
    operation = OPERATIONS[type_]
    with pytest.raises(AnswerInvalid, match=place) as refused:
        page_reader(operation, asked).read(make_rows(operation, keys))
    assert (refused.value.column, refused.value.row) == (operation.key[0], row)


@pytest.mark.parametrize(
    ("type_", "asked", "keys"),
    [
        (LEDGER, {"start": 5, "end": 9}, [(5,), (6,), (9,)]),
        (ORDERS, {"cursor": "5_2"}, [(5, 2), (5, 3)]),
        (WEEKS, {"start": 7, "end": 9}, [(9,), (7,)]),
    ],
)
def test_rows_at_bounds_of_request_are_kept(type_, asked, keys):
    operation = OPERATIONS[type_]
    assert page_reader(operation, asked).read(make_rows(operation, keys)).after is not None


@pytest.mark.parametrize(
    ("again", "count"), [([], 0), ([(2, 1)], 1), ([(2, 1), (2, 2)], 1), ([(2, 2), (2, 3)], 0)]
)
def test_lost_rows_of_cut_tie_are_refused(again, count):
    where = page_reader(OPERATIONS[ORDERS], {})
    with pytest.raises(AnswerInvalid, match=f"2 rows .* 2_1 .* has {count} of them"):
        read_keys(where, [(1, 1), (2, 1), (2, 1)], again)


def test_rows_arriving_before_tie_cut_it_again():
    """Rows that arrive before the cut tie fill the page, so that it is cut earlier."""
    where = page_reader(OPERATIONS["userFillsByTime"], {"page_size": 3})
    pages = [[(1, 1), (2, 1), (2, 1)], [(1, 2), (1, 3), (2, 1)]]
    assert read_keys(where, *pages)[1] == PageDecision(0, 2, {"cursor": "1_3"})


@pytest.mark.parametrize(
    ("type_", "asked", "until", "after"),
    [
        (FILLS, {"start": 5}, 10, {"end": 10}),
        (FILLS, {"start": 5, "end": 11}, 10, {"end": 10}),
        (FILLS, {"start": 5, "end": 10}, 10, {"start": 4}),
        (FILLS, {"start": 5, "end": 9}, 10, {"start": 4}),
        (FILLS, {"start": 0, "end": 9}, 10, {"start": 1}),
        (FILLS, {"cursor": "5_2", "end": 9}, 10, {"start": 5, "cursor": None}),
        (FILLS, {"cursor": "5_2"}, 10, {"end": 10}),
        (FILLS, {"cursor": "10_2"}, 10, None),
        (FILLS, {"start": 9}, 10, {"end": 10}),
        (FILLS, {"start": 10}, 10, None),
        (FILLS, {"start": 5}, None, None),
        (LEDGER, {}, 10, {"end": 10}),
        (LEDGER, {}, 1, {"end": 1}),
        (LEDGER, {"end": 9}, 10, None),
        (WEEKS, {"start": 5}, 10, {"end": 10}),
        (WEEKS, {"start": 5, "end": 9}, 10, None),
    ],
)
def test_empty_range_is_confirmed_by_another_request(type_, asked, until, after):
    where = page_reader(OPERATIONS[type_], asked, until, confirm_pages=1)
    certain = None if after is None else 0
    assert where.read([]) == PageDecision(0, 0, after, certain_end_row=certain)
    if after is not None:
        assert where.read([]) == PageDecision(0, 0, None, is_confirmed=True)


def test_rows_before_range_are_dropped():
    """The range was empty at first. It is requested from 1 ms earlier, and a row comes."""
    where = page_reader(OPERATIONS[FILLS], {"start": 5, "end": 9}, 10, confirm_pages=1)
    tie = [(4, 1), (5, 0)]
    assert read_keys(where, [], tie, tie, []) == [
        PageDecision(0, 0, {"start": 4}, certain_end_row=0),
        PageDecision(1, 2, {"page_size": 1999}, certain_end_row=1),  # the tie may be cut
        PageDecision(1, 2, {"cursor": "5_0"}, certain_end_row=2),
        PageDecision(0, 0, None, is_confirmed=True),
    ]


def test_cut_tie_at_the_end_is_found():
    """The only tie of the last page was cut: with another page size more of its rows come."""
    asked = {"start": 5, "page_size": 9}
    where = page_reader(OPERATIONS[FILLS], asked, 10, confirm_pages=1)
    pages = [[(6, 1)] * 3, [(6, 1)] * 4, []]
    assert read_keys(where, *pages) == [
        PageDecision(0, 3, {"page_size": 10}, certain_end_row=0),
        PageDecision(0, 4, {"cursor": "6_1"}, certain_end_row=4),
        PageDecision(0, 0, None, is_confirmed=True),
    ]


def test_end_at_present_is_confirmed():
    where = page_reader(OPERATIONS[FILLS], {"start": 5}, 7, confirm_pages=1)
    (decision,) = read_keys(where, [(6, 1), (7, 1)])
    assert decision == PageDecision(0, 2, {"cursor": "6_1"}, certain_end_row=1)


def test_first_page_is_confirmed_on_demand():
    where = page_reader(OPERATIONS[FILLS], {"start": 5}, 10, confirm_pages=1)
    assert read_keys(where, [(6, 1), (7, 1)], [(7, 1)], []) == [
        PageDecision(0, 2, {"cursor": "6_1"}, certain_end_row=1),
        PageDecision(0, 1, {"cursor": "7_1"}, certain_end_row=1),
        PageDecision(0, 0, None, is_confirmed=True),
    ]
    assert read_keys(page_reader(OPERATIONS[FILLS], {"start": 5}, 10), []) == [
        PageDecision(0, 0, None)
    ]


def test_rows_of_users_cursor_are_dropped():
    asked = {"cursor": "5_2"}
    assert read_keys(page_reader(OPERATIONS[FILLS], asked), [(5, 2), (5, 3)])[0].first_row == 1
    alone = page_reader(OPERATIONS[FILLS], asked, 10, confirm_pages=1)
    assert read_keys(alone, [(5, 2)]) == [PageDecision(1, 1, None)]


def test_page_of_users_cursor_rows_raises():
    """With 500 of them the service may have cut the page, and no cursor leads past them."""
    operation, tie = OPERATIONS[ORDERS], [(5, 2)] * 499
    assert read_keys(page_reader(operation, {"cursor": "5_2"}), tie) == [
        PageDecision(499, 499, None)
    ]
    with pytest.raises(Incomplete, match="all 500 rows of a full page have the key 5_2"):
        read_keys(page_reader(operation, {"cursor": "5_2"}), [*tie, (5, 2)])


def test_key_of_row_by_operation():
    row = SimpleNamespace(time=3, tx_index=7, user="0xa", week=9, delta=SimpleNamespace(coin="C"))
    keys = {"meta": (), LEDGER: (3,), WEEKS: (9,), FILLS: (3, 7)}
    keys["builderApprovedFundingByTime"] = (3, "0xa", "C")
    assert {type_: key_getter(OPERATIONS[type_])(row) for type_ in keys} == keys
