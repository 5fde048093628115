"""Bytes to frames, compared with typical code with `json` and pandas.

The targets are 5 times the speed for a page, and 3 times for exact numbers and for text. Exact
numbers reach their target. A pull of 100 pages reaches 4 to 5 times on a machine with little
load. A single page and text do not reach their targets. Each of the 34,000 values of a page is a
Python object, which is made, moved into a column and freed. Most of this time is waiting for
memory.

We tried two scanners that create no Python objects. Both find all quotes of a page with numpy, and
cut the columns out by position. The first one has 500 lines and reads the page 40 times: it is not
faster. The second one has 300 lines. It makes one Arrow array of the page, checks the text between
the values in one step, and casts many columns together. Its results equal those of the reader. With
2,000 rows and one process for each way, floats took the same time; text and exact numbers took 20 %
less. With at most 1,000 rows, it was mostly slower, because each of its 90 calls of Arrow and numpy
takes 5 to 10 microseconds. A pull over a port took 10 % less time. This does not justify a second
reader. (Arrays for a whole answer caused 900 memory page faults, which took 2.3 ms. Blocks of 64 KB
with 32-bit offsets avoid them.)

We also tried these changes. None was faster:

- blocks of 50 to 400 KB
- one column after the other
- other kinds of arrays
- other ways from records to columns
- the low-level constructor of pandas

msgspec makes all records of a page in 1 ms. Compiled readers take longer: `pyarrow.json` 5.5 ms,
Polars 3.1 ms, and Arrow's CSV reader with the quote as separator 2.5 ms without types. The next
step would be one compiled pass over the bytes. A prototype in numba was 5.5 times as fast as `json`
and pandas.
"""

import json
import random
import tracemalloc
from collections.abc import Callable
from decimal import Decimal

import pandas as pd
import pytest

from tests.benchmarks.side_by_side import side_by_side
from toolkit.contract.answers import decode
from toolkit.contract.operations import OPERATIONS
from toolkit.frames import Collector

Way = tuple[str, Callable[[], object]]

FILLS = OPERATIONS["userFillsByTime"]
NUMBERS = ("px", "sz", "startPosition", "closedPnl", "fee")


def page_of_fills(rows, first=0):
    """A page as the service writes it, with half of the optional fields."""
    draw = random.Random(first)
    return json.dumps([_fill(draw, first + i) for i in range(rows)], separators=(",", ":")).encode()


def _fill(draw, number):
    return {
        "coin": draw.choice(["BTC", "ETH", "SOL", "kPEPE", "flx:TSLA"]),
        "px": f"{draw.uniform(1, 70000):.2f}",
        "sz": f"{draw.uniform(0, 10):.5f}",
        "side": draw.choice("AB"),
        "time": 1756684800000 + number * 37,
        "startPosition": f"{draw.uniform(-10, 10):.5f}",
        "dir": "Open Long",
        "closedPnl": f"{draw.uniform(-100, 100):.6f}",
        "hash": "0x" + draw.randbytes(32).hex(),
        "oid": 100_000_000 + number,
        "crossed": True,
        "fee": f"{draw.uniform(0, 1):.6f}",
        "tid": 10**14 + number,
        "cloid": "0x" + draw.randbytes(16).hex(),
        "feeToken": "USDC",
        "twapId": None,
        "txIndex": number % 100,
    }


def as_users_write_it(pages, numbers="float"):
    rows: list[dict[str, object]] = []
    for page in pages:
        rows.extend(json.loads(page))
    frame = pd.DataFrame(rows)
    for column in () if numbers == "text" else NUMBERS:
        is_exact = numbers == "exact"
        frame[column] = frame[column].map(Decimal) if is_exact else frame[column].astype(float)
    frame["time"] = pd.to_datetime(frame["time"], unit="ms", utc=True)
    return frame


def as_the_toolkit_does(pages, numbers="float"):
    collector = Collector(FILLS, numbers)
    for page in pages:
        collector.add((decode(FILLS, 200, {}, page, numbers=numbers),))
    return collector.frames({})[0]


@pytest.mark.parametrize(("pages", "rounds"), [(1, 40), (100, 3)], ids=["2,000", "200,000"])
def test_fills_to_a_frame(pages, rounds, report):
    content = [page_of_fills(2_000, 2_000 * i) for i in range(pages)]
    assert len(as_users_write_it(content)) == len(as_the_toolkit_does(content)) == 2_000 * pages
    report(
        side_by_side(
            f"{2_000 * pages:,} fills, bytes -> frame",
            "json + pandas",
            lambda: as_users_write_it(content),
            "toolkit",
            lambda: as_the_toolkit_does(content),
            rounds=rounds,
            stated=2.0,
        )
    )


@pytest.mark.parametrize("numbers", ["exact", "text"])
def test_fills_with_other_numbers(numbers, report):
    content = [page_of_fills(2_000)]
    report(
        side_by_side(
            f"2,000 fills, numbers={numbers!r}",
            "json + pandas",
            lambda: as_users_write_it(content, numbers),
            "toolkit",
            lambda: as_the_toolkit_does(content, numbers),
            rounds=40,
            stated={"exact": 3.0, "text": 1.8}[numbers],
        )
    )


def test_memory_of_many_pages(report):
    content = [page_of_fills(2_000, 2_000 * i) for i in range(50)]
    tracemalloc.start()
    frame = as_the_toolkit_does(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = frame.memory_usage(deep=True).sum()
    report(f"100,000 fills, pages -> frame: peak of Python memory {peak / size:.2f} x the frame")
