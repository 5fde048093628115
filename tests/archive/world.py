"""An exchange with made-up fills, with ties of each kind, behind the real service."""

import random

import httpx
import pyarrow as pa

from toolkit.client import open_session
from toolkit.contract.records import Fill
from toolkit.contract.source_tables import Sources
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas, build_store

USER = "0x" + "a" * 40
START = 1_756_684_800_000
CANARY = "canary-d41d8cd98f00b204"


def draw_keys(rows, *, storms=None, crowd=0):
    """Draw the time and the transaction of each row, with ties of each kind.

    Most rows share their transaction with a few rows and their millisecond with many.

    Parameters
    ----------
    rows : int
        The number of rows.
    storms : mapping of int to int, optional
        Row -> the number of rows of the first transaction from this row on.
    crowd : int
        The least number of rows of the millisecond that each 100,000th row begins.
    """
    draw = random.Random(5)
    keys: list[tuple[int, int]] = []
    waiting = sorted((storms or {}).items())
    time, tx, crowded = START, 0, 0
    while len(keys) < rows:
        if len(keys) < crowded or draw.random() < 0.4:
            tx += 1
        else:
            time, tx = time + draw.randint(1, 4_000), 0
            if len(keys) // 100_000 != crowded // 100_000:
                crowded = len(keys) + crowd
        size = draw.choice([1, 1, 1, 1, 2, 2, 3, 5, 9])
        if waiting and len(keys) >= waiting[0][0]:
            size = waiting.pop(0)[1]
        keys += [(time, tx)] * size
    return keys[:rows]


def make_fills_at(keys):
    """Return a fill for each time and transaction, numbered by `tid`."""
    return [_fill(number, time, tx) for number, (time, tx) in enumerate(keys)]


def make_fills(rows):
    """Return fills with ties: many in a millisecond, and many in a transaction."""
    return make_fills_at(draw_keys(rows))


def _fill(number, time, tx):
    return Fill(
        coin="BTC",
        px="64000.10",
        sz="1.0",
        side="B",
        time=time,
        start_position=f"{number}.0",
        dir="Open Long",
        closed_pnl="0.0",
        hash=f"0x{tx:064x}",
        oid=number // 3,
        crossed=True,
        fee="0.123456789012345678",
        tid=number,
        fee_token="USDC",
        twap_id=None,
        tx_index=tx,
    )


def store_session(store, *, inclusive=False, through=None, key=CANARY, now_ms=None, **options):
    """Return a session of a service on a store; `through` may wrap its transport."""
    keys = KeyQuotas([AcceptedKey("k", key)])
    application = application_of(store, keys, inclusive=inclusive)
    transport = InProcessTransport(application)
    return open_session(
        "http://local",
        key,
        transport=through(transport) if through else transport,
        now_ms=now_ms or application.now_ms,
        simulated=True,
        default=False,
        **options,
    )


def fill_session(fills, *, users=(USER,), **options):
    """Return a session of a service with these fills for each of the users."""
    store = fill_store(fills, users=users)
    session = store_session(store, label="test", attempts=1, **options)
    session.source.has_fixed_clock = True
    return session


def fill_store(fills, path=None, *, users=(USER,)):
    """Return a store with these fills for each of the users."""
    sources = Sources(
        start_ms=START,
        now_ms=fills[-1].time + 1_000,
        label="test",
        simulated=True,
        fills=[(user, fill) for user in users for fill in fills],
    )
    return build_store(sources, path)


class ChangedAnswers(httpx.BaseTransport):
    """A transport that changes the bytes of the answers."""

    def __init__(self, inner, change):
        self._inner = inner
        self._change = change

    def handle_request(self, request):
        answer = self._inner.handle_request(request)
        content = self._change(answer.read())
        return httpx.Response(answer.status_code, content=content, request=request)


class StopsAfter(httpx.BaseTransport):
    """A transport that answers some requests, and fails all later ones.

    They get a status, or the exception `failure` is raised.
    """

    def __init__(self, inner, after, failure=500):
        self._inner, self._failure = inner, failure
        self.left = after

    def handle_request(self, request):
        self.left -= 1
        if self.left >= 0:
            return self._inner.handle_request(request)
        if isinstance(self._failure, int):
            return httpx.Response(self._failure, json={"error": "An error occurred"})
        raise self._failure


def archived_rows(archive):
    """Return the text of every archived fill, sorted, so that two archives can be compared."""
    table = archive.scan("fills", columns=["_subject", "_json"], engine="pandas")
    return sorted(table.itertuples(index=False, name=None))


def error_kinds(archive):
    """Return the kinds of the errors that `verify` finds; notices are left out."""
    return {finding.kind for finding in archive.verify() if finding.severity == "error"}


def archived_words(archive):
    """Return every text and body of an archive, decompressed."""
    return [
        str(value)
        for name in archive.tables.table_names()
        for column in archive.tables.read_rows(archive.tables.open_table(name)).columns
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        for value in column.to_pylist()
    ]
