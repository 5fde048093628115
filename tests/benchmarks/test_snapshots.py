"""Binary snapshots to frames, compared with typical code with `msgpack.unpackb` and pandas.

The target is 2.5 times the speed. TWAPs do not reach it: their 200 snapshots are decompressed and
decoded one by one, and each of their 115,000 values is a Python object before it is in a column.
"""

import random
import tracemalloc
from collections.abc import Callable

import msgpack
import pandas as pd
import pyarrow as pa
import pytest
import zstandard

from tests.benchmarks.side_by_side import side_by_side
from toolkit.contract.answers import decode
from toolkit.contract.fields import record_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import assemble, pack
from toolkit.frames import Collector

ACCOUNTS = OPERATIONS["accountValueSnapshots"]
TWAPS = OPERATIONS["perpTwapSnapshots"]
USERS = 500_000
Way = tuple[str, Callable[[], object]]


def account(draw):
    """One account: a third has whole numbers in it, one of twenty portfolio margin."""
    value = round(draw.lognormvariate(6, 3), 6)
    long = round(value * draw.random(), 6)
    short = 0 if draw.random() < 0.3 else round(value * draw.random(), 6)
    if draw.random() < 0.05:
        branches = [("USDC", value), ("USDH", long)]
        return value, long, short, False, 3, draw.random(), branches, value + long
    return value, long, short, draw.random() < 0.1, draw.randrange(3)


def twap(draw, market):
    size = round(draw.uniform(1, 1000), 4)
    done = round(size * draw.random(), 4)
    started = draw.randrange(10**8) + 1_756_684_800_000
    first = (f"0x{draw.randbytes(20).hex()}", draw.randrange(10**6), market, draw.random() < 0.5)
    sizes = (size, done, size - done, done * 7.5, 100 * done / size, 3_600, started)
    rest = (False, True, "2025-09-01T00:00:30Z", 12, None, None, None, None, None, False)
    return first + sizes + rest


@pytest.fixture(scope="module")
def accounts():
    draw = random.Random(7)
    users = {f"0x{draw.randbytes(20).hex()}": account(draw) for _ in range(USERS)}
    return pack("20250901_state_123456789", "USDC", users)


@pytest.fixture(scope="module")
def twaps():
    draw = random.Random(7)
    markets = [f"COIN{number}" for number in range(200)]
    return [
        pack("20250901_state_123456789", market, [twap(draw, market) for _ in range(25)])
        for market in markets
    ]


def names(operation):
    return [column.name for column in record_columns(operation.tables[0].record)]


def as_the_toolkit_does(operation, content):
    collector = Collector(operation, "float")
    collector.add((decode(operation, 200, {}, content),))
    return collector.frames({})[0]


def accounts_as_users_write_it(content):
    snapshot_id, token, users = msgpack.unpackb(zstandard.decompress(content))
    rows = [
        (snapshot_id, token, user, *values, *(None,) * (8 - len(values)))
        for user, values in users.items()
    ]
    return pd.DataFrame(rows, columns=names(ACCOUNTS))


def twaps_as_users_write_it(blobs):
    rows = []
    for blob in blobs:
        snapshot_id, market, entries = msgpack.unpackb(zstandard.decompress(blob))
        rows.extend((snapshot_id, market, *values) for values in entries)
    frame = pd.DataFrame(rows, columns=names(TWAPS))
    frame["start_time_ms"] = pd.to_datetime(frame["start_time_ms"], unit="ms", utc=True)
    frame["next_slice_time"] = pd.to_datetime(frame["next_slice_time"], utc=True)
    return frame


def test_accounts_to_a_frame(accounts, report):
    assert len(as_the_toolkit_does(ACCOUNTS, accounts)) == USERS
    slow: tuple[str, Callable[[], object]] = (
        "unpackb + pandas",
        lambda: accounts_as_users_write_it(accounts),
    )
    read = ("the codec", lambda: decode(ACCOUNTS, 200, {}, accounts))
    framed = ("toolkit", lambda: as_the_toolkit_does(ACCOUNTS, accounts))
    inflated = ("zstd alone", lambda: zstandard.decompress(accounts))
    what = f"{USERS:,} accounts"
    report(side_by_side(f"{what}, bytes -> frame", *slow, *framed, rounds=3, stated=2.5))
    report(side_by_side(f"{what}, bytes -> columns", *slow, *read, rounds=5))
    report(side_by_side(f"{what}, bytes -> bytes", *read, *inflated, rounds=7))


def test_twaps_to_a_frame(twaps, report):
    content = assemble(twaps)[1]
    assert len(as_the_toolkit_does(TWAPS, content)) == 5_000
    slow: tuple[str, Callable[[], object]] = (
        "unpackb + pandas",
        lambda: twaps_as_users_write_it(twaps),
    )
    framed = ("toolkit", lambda: as_the_toolkit_does(TWAPS, content))
    read = ("the codec", lambda: decode(TWAPS, 200, {}, content))
    what = "5,000 TWAPs in 200 snapshots"
    report(side_by_side(f"{what}, bytes -> frame", *slow, *framed, rounds=9, stated=1.5))
    report(side_by_side(f"{what}, bytes -> columns", *slow, *read, rounds=9))
    unzip = zstandard.ZstdDecompressor().decompress
    limit: Way = ("zstd alone", lambda: [unzip(blob) for blob in twaps])
    report(side_by_side(f"{what}, bytes -> bytes", *framed, *limit, rounds=9))


def test_memory_of_accounts(accounts, report):
    size = as_the_toolkit_does(ACCOUNTS, accounts).memory_usage(deep=True).sum()
    for what, way in {
        "columns": lambda: decode(ACCOUNTS, 200, {}, accounts),
        "frame": lambda: as_the_toolkit_does(ACCOUNTS, accounts),
    }.items():
        used = peak(way)
        report(f"{USERS:,} accounts, bytes -> {what}: peak {used / size:.2f} x the frame")


def peak(way):
    """Peak of Python's and numpy's memory, and of Arrow's: an upper bound for both together."""
    pool = pa.system_memory_pool()
    default = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    before = pool.max_memory()
    tracemalloc.start()
    try:
        way()
        return tracemalloc.get_traced_memory()[1] + pool.max_memory() - before
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)
