"""Pages of 2,000 fills.

We compare the service with the default of a web framework, in the same run: columns from SQLite,
one object for each row, and ``json``.

Over a port (docs/service.md), the first request for a page in gzip takes 2 ms. The service
decompresses its blocks (0.4 to 0.8 ms) and compresses them again (0.3 to 1.5 ms, depending on the
rows). The fastest level of Intel's library ISA-L takes the same time, and its result is 35 to 40 %
longer. Storing each block in both encodings would be faster, but needs nearly twice the disk space.
"""

import json
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.side_by_side import Ratio
from toolkit.contract.records import Fill
from toolkit.contract.source_tables import Sources
from toolkit.service import AcceptedKey, Application, KeyQuotas, build_store

ROWS, ACCOUNTS, PAGE = 500_000, 40, 2_000
START = 1_756_684_800_000
KEY = {"authorization": "Bearer s3cret"}
FIELDS = [
    "coin",
    "px",
    "sz",
    "side",
    "time",
    "startPosition",
    "dir",
    "closedPnl",
    "hash",
    "oid",
    "crossed",
    "fee",
    "tid",
    "cloid",
    "feeToken",
    "twapId",
    "txIndex",
]


def address(number):
    return f"0x{number:040x}"


def fills():
    usual: dict[str, Any] = {
        "coin": "BTC",
        "px": "112345.5",
        "side": "B",
        "dir": "Open Long",
        "closed_pnl": "0.0",
        "crossed": True,
        "fee": "0.123456",
        "fee_token": "USDC",
        "twap_id": None,
    }
    for row in range(ROWS):
        yield (
            address(row % ACCOUNTS),
            Fill(
                **usual,
                sz=f"{row % 977}.01234",
                time=START + row // 120 * 100,
                start_position=f"{row % 1013}.2345",
                hash=f"0x{row // 3:064x}",
                oid=row // 3,
                tid=10**14 + row,
                cloid=f"0x{row:032x}",
                tx_index=row // 40 % 3,
            ),
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    sources = Sources(
        start_ms=START, now_ms=START + 10**10, label="bench", simulated=True, fills=fills()
    )
    store = build_store(sources, tmp_path_factory.mktemp("bench") / "fills.db")
    yield store
    store.close()


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """The usual way: a column for each field, an index on what is asked for."""
    path: Path = tmp_path_factory.mktemp("bench") / "columns.db"
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE fills (user, {', '.join(FIELDS)})")
    names = ["start_position", "closed_pnl", "fee_token", "twap_id", "tx_index"]
    snake = {name.replace("_", ""): name for name in names}
    read = [snake.get(name.lower(), name) for name in FIELDS]
    connection.executemany(
        f"INSERT INTO fills VALUES ({', '.join('?' * (len(FIELDS) + 1))})",
        ((user, *(getattr(fill, name) for name in read)) for user, fill in fills()),
    )
    connection.execute("CREATE INDEX by_user ON fills (user, time, txIndex)")
    connection.commit()
    connection.row_factory = sqlite3.Row
    return connection


def pages_per_second(page, times):
    draw = random.Random(7)
    asked = [
        (address(draw.randrange(ACCOUNTS)), START + draw.randrange(ROWS // 120 - 1_000) * 100, 1)
        for _ in range(times)
    ]
    page(*asked[0])
    began = time.process_time()
    for item in asked:
        assert len(page(*item)) > 500_000
    return times / (time.process_time() - began)


def test_page_by_cursor_beside_sqlite(store, columns, report):
    application = Application(
        store,
        KeyQuotas([AcceptedKey("all", "s3cret")]),
        now_ms=lambda: START + 10**10,
        at_ms=lambda: 0,
    )

    def ours(user, time, tx):
        body = {"type": "userFillsByTime", "user": user, "cursor": f"{time}_{tx}"}
        return application.respond("POST", "/info", KEY, json.dumps(body).encode()).content

    def usual(user, time, tx):
        rows = columns.execute(
            f"SELECT {', '.join(FIELDS)} FROM fills WHERE user = ? AND (time, txIndex) > (?, ?) "
            "ORDER BY time, txIndex LIMIT ?",
            (user, time, tx, PAGE),
        ).fetchall()
        return json.dumps([dict(row) for row in rows]).encode()

    speed, beside = pages_per_second(ours, 600), pages_per_second(usual, 30)
    what = f"a page of {PAGE:,} fills of {ROWS:,}"
    report(Ratio(what, "SQLite columns and json", "the service", 1e3 / beside, 1e3 / speed, 20))
