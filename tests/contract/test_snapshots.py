"""Binary snapshots: what is written is read, in every form; what is no snapshot is refused."""

import math
import struct
import warnings
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.answers import UnknownField
from toolkit.contract.columns import columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import (
    AccountValueSnapshot,
    TwapSnapshot,
    decode,
    encode,
    entries,
)
from toolkit.errors import AnswerInvalid

ACCOUNTS = OPERATIONS["accountValueSnapshots"]
TWAPS = OPERATIONS["perpTwapSnapshots"]
USER = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
PLAIN = (150.5, 100.0, 50.0, False, 0)
MARGIN = (1.5, 0.0, 2.0, False, 3, 0.25, [("USDC", 1.5), ("USDH", -2.0)], 9.0)
TWAP = (
    *(USER, 7, "BTC", True, 2.0, 0.5, 1.5, 30_000.0, 25.0, 3_600, 1_700_000_000_000),
    *(False, True, "2025-01-01T00:00:30Z", 12, None, None, None, 65_000.0, True, False),
)


def rows(columns: Any) -> list[dict[str, Any]]:
    """Columns as rows of plain values; what is missing is None."""
    plain = {
        name: [None if value != value else value for value in values.tolist()]
        for name, values in columns.items()
    }
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def read(operation: Any, *snapshots: Any) -> list[dict[str, Any]]:
    """Read snapshots written by a plain MessagePack encoder."""
    blobs = [zstandard.compress(msgpack.packb(one)) for one in snapshots]
    return rows(decode(operation, {}, multi(blobs)))


def multi(blobs: list[bytes]) -> bytes:
    parts = [struct.pack("<I", len(one)) + one for one in blobs]
    return struct.pack("<I", len(blobs)) + b"".join(parts)


@pytest.fixture(autouse=True)
def _warn_again() -> Iterator[None]:
    entries.forget_reported()
    yield
    entries.forget_reported()


# -- What is written is read ------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=20)
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
floats = st.floats(allow_nan=False)
pairs = st.lists(st.tuples(texts, floats), max_size=20)
plain_users = st.tuples(floats, floats, floats, st.booleans(), st.integers(0, 3))
margin_users = st.tuples(
    *(floats, floats, floats, st.booleans(), st.integers(0, 3), floats, pairs, floats)
)
account_snapshots = st.builds(
    AccountValueSnapshot,
    texts,
    texts,
    st.dictionaries(addresses, plain_users | margin_users, max_size=8),
)
whole = st.integers(0, 2**53)
twaps = st.tuples(
    *(addresses, whole, texts, st.booleans(), floats, floats, floats, floats, floats, whole),
    *(whole, st.booleans(), st.booleans(), texts, whole, st.none(), st.none()),
    *(st.none() | floats, st.none() | floats, st.none() | st.booleans(), st.booleans()),
)
twap_snapshots = st.builds(TwapSnapshot, texts, texts, st.lists(twaps, max_size=5))


def account_rows(snapshots: list[AccountValueSnapshot]) -> list[dict[str, Any]]:
    names = [one.name for one in columns(ACCOUNTS.tables[0].record)]
    return [
        dict(zip(names, (one.snapshot_id, one.collateral_token, user, *wide(values)), strict=True))
        for one in snapshots
        for user, values in one.users.items()
    ]


def wide(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(values) < 8:
        return (*values, None, None, None)
    named = [{"token": token, "available": amount} for token, amount in values[6]]
    return (*values[:6], named, values[7])


@given(st.lists(account_snapshots, min_size=1, max_size=4))
def test_written_account_values_are_read(snapshots: list[AccountValueSnapshot]) -> None:
    headers, content = encode(ACCOUNTS, snapshots)
    assert rows(decode(ACCOUNTS, headers, content)) == account_rows(snapshots)


@given(st.lists(twap_snapshots, min_size=1, max_size=4))
def test_written_twaps_are_read(snapshots: list[TwapSnapshot]) -> None:
    headers, content = encode(TWAPS, snapshots)
    names = [one.name for one in columns(TWAPS.tables[0].record)]
    assert rows(decode(TWAPS, headers, content)) == [
        dict(zip(names, (one.snapshot_id, one.market_name, *twap), strict=True))
        for one in snapshots
        for twap in one.twaps
    ]
