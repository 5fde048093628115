"""Paging: a pull against a model service has every row once and in order, or raises an error.

Only `pull` knows how the product reads pages; all other code here speaks of requests and rows.
"""

import random
from operator import attrgetter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.contract.operations import OPERATIONS
from toolkit.contract.paging import read_pages, row_keys
from toolkit.contract.requests import parse_cursor
from toolkit.errors import AnswerInvalid, Incomplete

FILLS, BUILDER_FILLS = "userFillsByTime", "builderApprovedFillsByTime"
PAYMENTS, ORDERS = "builderApprovedFundingByTime", "builderOrdersByTime"
LEDGER, SLIPPAGE = "userNonFundingLedgerUpdates", "slippageHistory"
WEEKS = "validatorAprHistory"
CURSORS = [FILLS, BUILDER_FILLS, PAYMENTS]
READINGS = [False, True]  # exclusive and inclusive cursors
CONFIRM = st.sampled_from([None, True, False])


def make_row(operation, key, number):
    """Return a row with a key; texts of the key begin with a letter, and sort like its numbers."""
    row = SimpleNamespace(number=number, delta=SimpleNamespace())
    for path, part in zip(operation.key, key, strict=True):
        *inner, name = path.split(".")
        text = {"user": f"0x{part:040x}", "delta.coin": f"C{part}"}.get(path, part)
        setattr(row.delta if inner else row, name, text)
    return row


class Service:
    """A service that has rows with given keys.

    - ``inclusive``: whether a page begins with the rows of the cursor
    - ``cap``: the largest number of rows that it sends
    - ``collation``: a seed for the order of the texts in keys
    - ``arrivals``, ``arrive_before``: keys of later rows, and the request before which they arrive
    - ``lacking``: each row of so many lacks its transaction index; 0: no row does
    - ``fault``: ``index``: it reads a cursor as its time only. ``first``, ``previous``, ``second``:
      it sends the first page; the page before; the page before for every second request.
    """

    def __init__(self, type_, keys, *, inclusive=False, cap=2000, **options):
        self.operation, self.inclusive, self.cap = OPERATIONS[type_], inclusive, cap
        self.options = options
        self.requests = []
        is_backward = self.operation.paging == "backward"
        arrivals = sorted(options.get("arrivals", ()))
        ordered = sorted(keys, reverse=is_backward) + arrivals
        self.rows = [make_row(self.operation, key, n) for n, key in enumerate(ordered)]
        self.early = self.rows[: len(keys)]
        self.ranks = {}
        if (seed := options.get("collation")) is not None:
            texts = sorted({self.key(row)[1:] for row in self.rows})
            random.Random(seed).shuffle(texts)
            self.ranks = {text: rank for rank, text in enumerate(texts)}
            self.early = self.rows = sorted(self.rows, key=lambda row: self.place(self.key(row)))

    def key(self, row):
        return tuple(attrgetter(path)(row) for path in self.operation.key)

    def place(self, key):
        return (key[0], self.ranks[key[1:]]) if self.ranks else key

    def serve(self, asked):
        assert asked not in self.requests, "a request was sent twice"
        self.requests.append(asked)
        fault, count = self.options.get("fault"), len(self.requests)
        if fault == "first":
            asked = self.requests[0]
        elif fault == "previous" or (fault == "second" and count % 2 == 0):
            asked = self.requests[-2:][0]
        asked = {name: value for name, value in asked.items() if value is not None}
        limit = min(self.cap, asked.get("page_size", self.cap))
        page = self.select(asked)[:limit]
        if every := self.options.get("lacking"):
            page = [
                SimpleNamespace(**vars(row) | {"tx_index": row.tx_index if n % every else None})
                for n, row in enumerate(page)
            ]
        return page

    def select(self, asked):
        """Return the rows of a request without a limit."""
        is_late = len(self.requests) >= self.options.get("arrive_before", 0)
        rows, cursor = self.rows if is_late else self.early, asked.get("cursor")
        start, end = asked.get("start", 0), asked.get("end", 2**53)
        if cursor:
            start, last = 0, parse_cursor(self.operation, cursor)
            if self.options.get("fault") == "index":
                start = last[0] + (not self.inclusive)
            elif self.inclusive:
                rows = [row for row in rows if self.place(self.key(row)) >= self.place(last)]
            else:
                rows = [row for row in rows if self.place(self.key(row)) > self.place(last)]
        return [row for row in rows if start <= self.key(row)[0] <= end]

    def numbers(self, start=0, end=2**53):
        """Return the numbers of all rows in a range, in the order of the service."""
        return [row.number for row in self.rows if start <= self.key(row)[0] <= end]


class Scripted:
    """A service that sends these pages of keys, whatever the requests are."""

    def __init__(self, type_, *pages):
        self.operation, self.pages, self.requests = OPERATIONS[type_], list(pages), []
        self.rows = range(100)

    def serve(self, asked):
        self.requests.append(asked)
        return [make_row(self.operation, key, key) for key in self.pages.pop(0)]


def pull(service, asked, until=9, confirm_end=None):
    """Return the numbers of the rows that a pull keeps; `until` is the time of the call."""

    def ask(parameters):
        assert len(service.requests) < 4 * len(service.rows) + 10, "the pull comes to no end"
        return (page := service.serve(parameters)), page

    got = []
    pages = read_pages(service.operation, asked, ask, asked_ms=until, confirm_end=confirm_end)
    for kept in pages:
        got += [row.number for row in kept.page[kept.first : kept.stop]]
    assert kept.is_last
    return got


def request(service, size=None, **asked):
    """Return the parameters of a pull; a page size if the operation has one."""
    sized = {"page_size": size} if size and service.operation.page else {}
    return asked | sized


def tied_keys(type_, most=6):
    """Return keys with many ties; samples and weeks have none."""
    keys = st.tuples(*[st.integers(1, most)] * len(OPERATIONS[type_].key))
    return st.lists(keys, max_size=60, unique=type_ in (SLIPPAGE, WEEKS))


# -- Every row once, in order -----------------------------------------------------------------


@pytest.mark.parametrize("type_", [*CURSORS, ORDERS, LEDGER, SLIPPAGE, WEEKS])
@settings(max_examples=150)
@given(
    data=st.data(),
    inclusive=st.booleans(),
    size=st.integers(1, 12),
    bounds=st.lists(st.integers(1, 6), min_size=2, max_size=2).map(sorted),
    confirm_end=CONFIRM,
)
def test_range_has_every_row_once(type_, data, inclusive, size, bounds, confirm_end):
    service = Service(type_, data.draw(tied_keys(type_)), inclusive=inclusive)
    start, end = bounds if data.draw(st.booleans()) else (0, 2**53)
    asked = request(service, size, start=start, **({"end": end} if end < 9 else {}))
    assert pull(service, asked, 9, confirm_end) == service.numbers(start, end)


def bursts(count, largest, seed=7):
    """Return keys of fills and orders: single ones, and transactions of up to `largest`."""
    draw, keys, time = random.Random(seed), [], 0
    while len(keys) < count:
        time += draw.choice((0, 1, 5))
        keys += [(time, draw.randint(0, 3))] * draw.choice((1, 1, 1, 2, 3, 9, largest))
    return keys


EARLY = [(time, 0) for time in range(10, 49)]
LARGE = [
    # operation, keys, page size, cap of the service
    (FILLS, bursts(2_000, 120), 7, 2000),
    (FILLS, bursts(10_000, 120), 2000, 2000),
    (FILLS, [(1, 1)] * 3 + [(2, 2)] * 40 + [(3, 3)] * 5, 4, 2000),
    (FILLS, [(1, 1)] * 1_500 + [(2, 2)] * 1_200 + [(3, 3)] * 7, 2000, 2000),
    *[(ORDERS, bursts(2_500, 300, cut), None, cut) for cut in (500, 777, 2000, 10_000)],
    *[(LEDGER, [(n * n % 401,) for n in range(3_000)], None, cut) for cut in (500, 2000)],
    # The proof of the last tie begins so early that one page does not contain the tie.
    (FILLS, [*EARLY, *[(50, n) for n in range(12)], *[(50, 99)] * 45], 40, 50),
    # The last transaction is as large as a page.
    *[(FILLS, EARLY[:1] + [(50, 1)] * size, size, 2000) for size in (1000, 1500, 1998, 1999)],
    *[(FILLS, EARLY[:5] + [(50, 1)] * size, size, 2000) for size in (1000, 1500, 1998, 1999)],
]


@pytest.mark.parametrize("inclusive", READINGS)
@pytest.mark.parametrize("confirm_end", [None, True, False])
def test_large_ties_are_complete(inclusive, confirm_end):
    wrong = []
    for type_, keys, size, cap in LARGE:
        service = Service(type_, keys, inclusive=inclusive, cap=cap)
        got = pull(service, request(service, size, start=0), 100, confirm_end)
        most = 3 * len(keys) / (size or cap) + 10
        if got != service.numbers() or len(service.requests) > most:
            wrong.append((type_, len(keys), size, cap, len(got), len(service.requests)))
    assert wrong == []


@pytest.mark.parametrize(
    ("type_", "keys", "asked", "cursor"),
    [
        (FILLS, [(1, 1)] * 3 + [(2, 2)] * 2001 + [(3, 3)], {"page_size": 2000}, "1_1"),
        (FILLS, [(2, 2)] * 2001, {}, None),
        (LEDGER, [(1,)] * 10 + [(2,)] * 600 + [(3,)], {}, None),
    ],
)
def test_tie_larger_than_page_is_incomplete(type_, keys, asked, cursor):
    for inclusive in READINGS:
        service = Service(type_, keys, inclusive=inclusive, cap=500 if type_ != FILLS else 2000)
        with pytest.raises(Incomplete, match=type_) as caught:
            pull(service, {"start": 0} | asked)
        assert caught.value.cursor == cursor


@pytest.mark.parametrize("lacking", [1, 3], ids=["all lack it", "some lack it"])
def test_rows_without_index_page_by_time(lacking):
    keys = [(1, 1), (1, 2), (2, 1), (3, 5), (3, 6), (3, 7), (4, 1), (9, 2), (9, 3)]
    service = Service(FILLS, keys, lacking=lacking)
    assert pull(service, {"start": 0, "page_size": 4}) == service.numbers()
    assert all(asked.get("cursor") is None for asked in service.requests)


def test_unpaged_operation_is_one_page():
    for type_ in ("userFills", "historicalOrders", "delegations", "meta"):
        service = Scripted(type_)
        service.serve = lambda asked: [SimpleNamespace(number=number) for number in range(5)]
        assert pull(service, {}) == [*range(5)]


# -- Texts in keys have any order -------------------------------------------------------------

PAYMENT_KEYS = st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=1, max_size=40, unique=True)


@settings(max_examples=100)
@given(
    keys=PAYMENT_KEYS,
    seed=st.integers(0, 99),
    inclusive=st.booleans(),
    size=st.integers(2, 9),
    cap=st.integers(2, 9) | st.just(2000),
    confirm_end=st.sampled_from([None, True]),
)
def test_texts_of_one_time_have_any_order(keys, seed, inclusive, size, cap, confirm_end):
    service = Service(PAYMENTS, keys, inclusive=inclusive, cap=cap, collation=seed)
    try:
        got = pull(service, {"start": 0, "page_size": size}, 9, confirm_end)
    except (AnswerInvalid, Incomplete):
        assert cap < size, "this service answers correctly"
        return
    is_one_page = confirm_end is None and cap < size
    assert got == service.numbers() or is_one_page


@settings(max_examples=100)
@given(keys=PAYMENT_KEYS, seed=st.integers(0, 99), inclusive=st.booleans(), data=st.data())
def test_cursor_continues_in_order_of_service(keys, seed, inclusive, data):
    """A cursor names a place in the order of the service, also in the middle of an hour."""
    service = Service(PAYMENTS, keys, inclusive=inclusive, collation=seed)
    place = data.draw(st.integers(0, len(keys) - 1))
    cursor = "_".join(map(str, service.key(service.rows[place])))
    asked = {"cursor": cursor, "page_size": data.draw(st.integers(2, 9))}
    got = pull(service, asked, 9, data.draw(CONFIRM))
    assert got == service.numbers()[place + 1 :]


# -- Wrong pages are never silent -------------------------------------------------------------


@pytest.mark.parametrize("fault", ["none", "index", "first", "previous", "second"])
@settings(max_examples=200)
@given(
    data=st.data(),
    type_=st.sampled_from([*CURSORS, ORDERS, LEDGER, SLIPPAGE, WEEKS]),
    inclusive=st.booleans(),
    size=st.integers(1, 9),
    cap=st.integers(1, 9) | st.just(2000),
    confirm_end=st.sampled_from([None, True]),
)
def test_wrong_pages_are_never_silently_complete(
    fault, data, type_, inclusive, size, cap, confirm_end
):
    """Rows may be missing only if no other row of the range shows it: see docs/faults.md."""
    keys = data.draw(tied_keys(type_))
    service = Service(type_, keys, inclusive=inclusive, cap=cap, fault=fault)
    asked = request(service, size, start=0)
    try:
        got = pull(service, asked, 9, confirm_end)
    except (AnswerInvalid, Incomplete):
        assert (fault, cap) != ("none", 2000), "this service answers correctly"
        return
    is_one_page = confirm_end is None and "page_size" in asked and min(len(keys), cap) < size
    is_one_time = len({key[0] for key in keys}) == 1
    assert got == service.numbers() or is_one_page or is_one_time


def test_first_tie_hides_no_row():
    """The service sends fewer rows than it should, and each page begins with the cursor's rows."""
    for count in (1, 2, 3):
        service = Service(ORDERS, [(1, 7)] * count + [(1, 8)], inclusive=True, cap=count)
        with pytest.raises(Incomplete, match="1_7"):
            pull(service, {"start": 0})


def test_later_page_without_index_is_refused():
    service = Service(FILLS, [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)])
    pages = iter([service.rows[:3], [SimpleNamespace(time=2, tx_index=None)]])
    service.serve = lambda asked: next(pages)
    with pytest.raises(AnswerInvalid, match="start=2, end=2") as caught:
        pull(service, {"start": 0, "page_size": 3})
    assert caught.value.row == 0


ORDER_PAGE = [(1, 1), (2, 1), (2, 1)]
WRONG_ROWS = [
    # operation, parameters, keys of the pages, the row that the error names, text that it names
    (FILLS, {}, [[(1, 1), (3, 3), (2, 2)]], 2, "2_2 follows 3_3"),
    (WEEKS, {}, [[(9,), (8,), (10,)]], 2, "10 follows 8"),
    (PAYMENTS, {}, [[(2, 1, 1), (1, 1, 2)]], 1, "1_0x"),
    # A row that comes again after new rows shows that the service has no fixed order.
    (PAYMENTS, {"page_size": 2}, [[(1, 1, 3), (1, 1, 2)], [(1, 1, 4), (1, 1, 3)]], 1, "C3"),
    (LEDGER, {"start": 5}, [[(4,), (5,), (6,)]], 0, "00.005Z"),
    (LEDGER, {"end": 9}, [[(6,), (10,), (11,)]], 2, "00.009Z"),
    (ORDERS, {"cursor": "5_2"}, [[(5, 1), (6, 0)]], 0, "cursor 5_2"),
    (ORDERS, {"cursor": "5_2", "start": 7}, [[(5, 1), (8, 0)]], 0, "cursor 5_2"),
    (WEEKS, {"end": 9}, [[(10,), (9,), (8,)]], 0, "00.009Z"),
    (WEEKS, {"start": 9}, [[(10,), (9,), (8,)]], 2, "00.009Z"),
    # The tie that was cut does not come completely.
    (ORDERS, {}, [ORDER_PAGE, []], None, "2_1"),
    (ORDERS, {}, [ORDER_PAGE, [(2, 1)]], None, "2_1"),
    (ORDERS, {}, [ORDER_PAGE, [(2, 1), (2, 2)]], None, "2_1"),
    (ORDERS, {}, [ORDER_PAGE, [(2, 2), (2, 3)]], None, "2_1"),
]


def test_wrong_rows_are_refused():
    wrong = []
    for type_, asked, pages, row, named in WRONG_ROWS:
        place = (type_, OPERATIONS[type_].key[0], row)
        try:
            wrong.append((type_, asked, pages, pull(Scripted(type_, *pages), asked)))
        except AnswerInvalid as error:
            if (error.operation, error.column, error.row) != place or named not in str(error):
                wrong.append((type_, asked, pages, error))
    assert wrong == []


# -- Rows arrive during the pull --------------------------------------------------------------


@pytest.mark.parametrize("inclusive", READINGS)
def test_arriving_rows_lose_nothing(inclusive):
    hours = [
        # rows of the hour, rows that arrive, page size, confirm_end, before which request
        *[(count, count, 2000, None, before) for count in (3_998, 4_000) for before in (2, 5)],
        *[(1999, 1, 1500, confirm, before) for confirm in (True, None) for before in range(2, 6)],
    ]
    wrong = []
    for count, later, size, confirm_end, before in hours:
        service = Service(
            PAYMENTS,
            [(10, user, 0) for user in range(count)],
            inclusive=inclusive,
            arrivals=[(20, user, 0) for user in range(later)],
            arrive_before=before,
        )
        got = pull(service, {"start": 0, "page_size": size}, 100, confirm_end)
        if got not in (list(range(count)), list(range(count + later))):
            wrong.append((count, later, size, confirm_end, before, len(got)))
    assert wrong == []


# -- How many requests ------------------------------------------------------------------------

REQUESTS = [
    # Keys of fills, parameters, time of the call, confirm_end, requests. A page of 2,000 rows is
    # the default. One short page is the end, unless `confirm_end=True`.
    ([(1, 1), (2, 2)], {"page_size": 3}, 9, None, 1),
    ([(6, 1), (7, 1)], {}, 9, True, 2),
    ([(6, 1), (7, 1)], {}, 7, True, 2),
    ([(6, 1), (7, 1)], {}, 6, True, 1),  # later rows arrived during the pull
    ([(6, 1), (7, 1)], {}, 9, False, 1),
    ([(n, 1) for n in range(5)], {"page_size": 3}, 9, None, 4),
    ([(n, 1) for n in range(5)], {"page_size": 3}, 9, False, 3),
    ([(n, 1) for n in range(4)], {"page_size": 3}, 9, None, 3),
    ([(n, 1) for n in range(4)], {"page_size": 3}, 9, False, 2),
    ([(n, 1) for n in range(3)], {"page_size": 3}, 9, None, 3),  # after a full page
    ([(6, 1)] * 3, {"page_size": 9}, 9, True, 2),  # the only tie of a page
    ([(6, 1)] * 3, {"page_size": 2}, 9, None, 3),  # it fills a page: a larger one
    # A service may apply a filter after its limit.
    ([(1, 1), (2, 1)], {"page_size": 9, "dex": "flx"}, 9, None, 2),
    ([(1, 1), (2, 1)], {"page_size": 9, "aggregate_by_time": True}, 9, None, 2),
    ([(1, 1), (2, 1)], {"page_size": 9, "aggregate_by_time": False}, 9, None, 1),
    ([], {"page_size": 9, "dex": "flx"}, 9, None, 1),
    # A transaction may not have fitted into a nearly full page; hundreds may be a limit.
    *[
        ([(10, n) for n in range(count)], {"page_size": size}, 100, None, requests)
        for size, count, requests in [
            *((2000, 1799, 1), (2000, 1801, 2), (2000, 1999, 2), (20, 18, 1), (20, 19, 2)),
            *((2000, 100, 2), (2000, 300, 2), (2000, 101, 1), (2000, 250, 1)),
        ]
    ],
]


def test_first_page_decides_number_of_requests():
    wrong = []
    for keys, asked, until, confirm_end, requests in REQUESTS:
        service = Service(FILLS, keys)
        got = pull(service, {"start": 0} | asked, until, confirm_end)
        if (got, len(service.requests)) != (service.numbers(), requests):
            wrong.append((keys[:3], asked, until, confirm_end, len(service.requests)))
    assert wrong == []


def test_empty_range_is_requested_in_other_words():
    """With confirm_end=True: a cache would answer the same request with the same page."""
    table = [
        # operation, parameters, time of the call, parameters that the second request changes
        (FILLS, {"start": 5}, 10, {"end": 10}),
        (FILLS, {"start": 5, "end": 11}, 10, {"end": 10}),
        (FILLS, {"start": 5, "end": 10}, 10, {"page_size": 1999}),
        (FILLS, {"cursor": "5_2", "end": 9, "page_size": 1}, 10, {"page_size": 2}),
        (FILLS, {"cursor": "5_2"}, 10, {"end": 10}),
        (LEDGER, {}, 1, {"end": 1}),
        (LEDGER, {"end": 9}, 10, None),
        (WEEKS, {"start": 5}, 10, {"end": 10}),
    ]
    wrong = []
    for type_, asked, until, change in table:
        service = Scripted(type_, [], [])
        pull(service, asked, until, confirm_end=True)
        if service.requests != [asked, *([] if change is None else [asked | change])]:
            wrong.append((type_, asked, until, service.requests))
    assert wrong == []


def test_rows_of_users_cursor_are_dropped():
    for inclusive in READINGS:
        for keys in ([(5, 2)] * 499, [(5, 2), (5, 3), (6, 0)]):
            service = Service(ORDERS, keys, inclusive=inclusive)
            got = pull(service, {"cursor": "5_2"})
            assert got == [n for n, key in enumerate(keys) if key > (5, 2)]


def test_key_of_row_by_operation():
    row = SimpleNamespace(time=3, tx_index=7, user="0xa", week=9, delta=SimpleNamespace(coin="C"))
    keys = {LEDGER: (3,), WEEKS: (9,), FILLS: (3, 7), PAYMENTS: (3, "0xa", "C")}
    assert {type_: row_keys(OPERATIONS[type_], [row]) for type_ in keys} == {
        type_: [key] for type_, key in keys.items()
    }
