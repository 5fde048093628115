"""Pages of 2,000 fills.

We compare the service with the default of a web framework, in the same run: columns from SQLite,
one object for each row, and ``json``.

Over a port (docs/service.md), the first request for a page in gzip takes 2 ms. The service
decompresses its blocks (0.4 to 0.8 ms) and compresses them again (0.3 to 1.5 ms, depending on the
rows). The fastest level of Intel's library ISA-L takes the same time, and its result is 35 to 40 %
longer. Storing each block in both encodings would be faster, but needs nearly twice the disk space.
"""

import contextlib
import json
import random
import sqlite3
import time

import pytest

from tests.benchmarks.history import START, history_application, history_store
from tests.benchmarks.side_by_side import Ratio
from tests.benchmarks.web_framework import FIELDS, PAGE, write_columns

ROWS = 12_500
USERS = [f"0x{number:040x}" for number in range(40)]
KEY = {"authorization": "Bearer s3cret"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = history_store(tmp_path_factory.mktemp("bench") / "fills.db", ROWS, USERS)
    yield store
    store.close()


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """The usual way: a column for each field, an index on what is asked for."""
    path = tmp_path_factory.mktemp("bench") / "columns.db"
    write_columns(path, ROWS, USERS)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def pages_per_second(page, times):
    draw = random.Random(7)
    asked = [
        (draw.choice(USERS), START + 1_000 * draw.randrange(ROWS - PAGE - 1), 40)
        for _ in range(times)
    ]
    page(*asked[0])
    began = time.process_time()
    for item in asked:
        assert len(page(*item)) > 500_000
    return times / (time.process_time() - began)


def test_page_by_cursor_beside_sqlite(store, columns, report):
    application = history_application(store)

    def ours(user, time, tx):
        body = {"type": "userFillsByTime", "user": user, "cursor": f"{time}_{tx}"}
        return application.respond("POST", "/info", KEY, json.dumps(body).encode()).content

    def usual(user, time, tx):
        rows = columns.execute(
            f"SELECT {', '.join(FIELDS)} FROM fills WHERE account = ? AND (time, txIndex) > (?, ?) "
            "ORDER BY time, txIndex LIMIT ?",
            (user, time, tx, PAGE),
        ).fetchall()
        return json.dumps([dict(row) for row in rows]).encode()

    speed, beside = pages_per_second(ours, 600), pages_per_second(usual, 30)
    what = f"a page of {PAGE:,} fills of {ROWS * len(USERS):,}"
    report(Ratio(what, "SQLite columns and json", "the service", 1e3 / beside, 1e3 / speed, 20))
