"""Binary snapshots: `decode_snapshots` inverts `encode` in every form; it refuses invalid bytes."""

import gzip
import random
import struct
import tracemalloc
import warnings
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.columns import record_columns
from toolkit.contract.compression import decompress
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import (
    WireAccountSnapshot,
    WireTwapSnapshot,
    decode_snapshots,
    encode,
)
from toolkit.contract.snapshots.account_scan import scan_accounts
from toolkit.contract.snapshots.account_values import entry_spans, read_one_by_one
from toolkit.contract.snapshots.arrays import join_columns
from toolkit.contract.snapshots.entry_reader import SLACK
from toolkit.contract.snapshots.messagepack import read_head
from toolkit.contract.snapshots.twap_scan import scan_twaps
from toolkit.contract.snapshots.twaps import read_twaps_one_by_one, twap_columns
from toolkit.contract.snapshots.unknown_values import LazyColumns, value_text
from toolkit.errors import AnswerDamaged, AnswerInvalid, MissingField, UnknownField

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


def rows(columns):
    """Return columns as rows of plain values; a missing value is None."""
    plain = {
        name: [None if value != value else value for value in values.tolist()]
        for name, values in columns.items()
    }
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def type_name(values):
    return str(values.dtype if isinstance(values, np.ndarray) else values.type)


def read_rows(operation, *snapshots):
    """Return the rows of snapshots from a plain MessagePack encoder."""
    blobs = [zstandard.compress(msgpack.packb(snapshot)) for snapshot in snapshots]
    return rows(decode_snapshots(operation, {}, join_blobs(blobs)))


def join_blobs(blobs):
    parts = [struct.pack("<I", len(blob)) + blob for blob in blobs]
    return struct.pack("<I", len(blobs)) + b"".join(parts)


@pytest.fixture(autouse=True)
def _warn_again():
    forget_deviations()
    yield
    forget_deviations()


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
    WireAccountSnapshot,
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
twap_snapshots = st.builds(WireTwapSnapshot, texts, texts, st.lists(twaps, max_size=5))


def account_rows(snapshots):
    names = [column.name for column in record_columns(ACCOUNTS.tables[0].record)]
    return [
        dict(
            zip(
                names,
                (snapshot.snapshot_id, snapshot.collateral_token, user, *account_tuple(values)),
                strict=True,
            )
        )
        for snapshot in snapshots
        for user, values in snapshot.users.items()
    ]


def account_tuple(values):
    if len(values) < 8:
        return (*values, None, None, None)
    named = [{"token": token, "available": amount} for token, amount in values[6]]
    return (*values[:6], named, values[7])


@given(st.lists(account_snapshots, min_size=1, max_size=4))
def test_account_values_round_trip(snapshots):
    headers, content = encode(ACCOUNTS, snapshots)
    assert rows(decode_snapshots(ACCOUNTS, headers, content)) == account_rows(snapshots)


@given(st.lists(twap_snapshots, min_size=1, max_size=4))
def test_twaps_round_trip(snapshots):
    headers, content = encode(TWAPS, snapshots)
    names = [column.name for column in record_columns(TWAPS.tables[0].record)]
    assert rows(decode_snapshots(TWAPS, headers, content)) == [
        dict(zip(names, (snapshot.snapshot_id, snapshot.market_name, *twap), strict=True))
        for snapshot in snapshots
        for twap in snapshot.twaps
    ]


def test_headers_differ_for_several_snapshots():
    one = WireAccountSnapshot("s", "USDC", {USER: PLAIN})
    headers, content = encode(ACCOUNTS, [one])
    assert headers["x-payload-format"] == "msgpack"
    assert headers["Content-Encoding"] == "zstd"
    assert msgpack.unpackb(zstandard.decompress(content)) == ["s", "USDC", {USER: [*PLAIN]}]
    headers, content = encode(ACCOUNTS, [one, one])
    assert headers["x-payload-format"] == "multi-zstd"
    assert headers["x-compression"] == "inner-zstd"
    assert "Content-Encoding" not in headers
    assert content[:4] == b"\x02\0\0\0"


def test_encode_refuses_invalid_entries():
    with pytest.raises(ValueError, match="5 or 8 values, not 4"):
        encode(ACCOUNTS, [WireAccountSnapshot("s", "USDC", {USER: (1.0, 2.0, 3.0, True)})])
    with pytest.raises(ValueError, match="21 values, not 17"):
        encode(TWAPS, [WireTwapSnapshot("s", "BTC", [TWAP[:17]])])
    with pytest.raises(TypeError, match="needs WireTwapSnapshots, not WireAccountSnapshot"):
        encode(TWAPS, [WireAccountSnapshot("s", "USDC", {})])
    with pytest.raises(ValueError, match="404"):
        encode(ACCOUNTS, [])


@pytest.mark.parametrize("operation", [ACCOUNTS, TWAPS], ids=lambda one: one.type)
def test_empty_snapshots_have_same_column_types(operation):
    some = {"accountValueSnapshots": {USER: MARGIN}, "perpTwapSnapshots": [TWAP]}[operation.type]
    full = decode_snapshots(operation, {}, msgpack.packb(["s", "n", some]))
    empty = decode_snapshots(operation, {}, msgpack.packb(["s", "n", type(some)()]))
    none = decode_snapshots(operation, {"x-payload-format": "multi-zstd"}, join_blobs([]))
    names = [column.name for column in record_columns(operation.tables[0].record)]
    assert list(full) == list(empty) == list(none) == names
    kinds = [[type_name(values) for values in item.values()] for item in (full, empty, none)]
    assert kinds[0] == kinds[1] == kinds[2]


# -- Every form of the bytes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{}, {"X-Payload-Format": "msgpack"}, {"x-payload-format": "?"}]
)
@pytest.mark.parametrize("decoded", [False, True])
def test_uncompressed_snapshots_are_read(headers, decoded):
    raw = msgpack.packb(["s", "USDC", {USER: PLAIN}])
    content = raw if decoded else zstandard.compress(raw)
    assert rows(decode_snapshots(ACCOUNTS, headers, content))[0]["account_value"] == 150.5


@pytest.mark.parametrize("headers", [{}, {"x-payload-format": "multi-zstd"}])
def test_several_snapshots_are_detected(headers):
    blobs = [zstandard.compress(msgpack.packb([f"s{i}", "USDC", {USER: PLAIN}])) for i in range(3)]
    assert [
        row["snapshot_id"] for row in rows(decode_snapshots(ACCOUNTS, headers, join_blobs(blobs)))
    ] == [*("s0", "s1", "s2")]


def test_concatenated_zstd_frames_are_read():
    raw = msgpack.packb(["s", "USDC", {USER: PLAIN}])
    writer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    content = writer.compress(raw[:30]) + writer.compress(raw[30:])
    assert rows(decode_snapshots(ACCOUNTS, {}, content)) == read_rows(
        ACCOUNTS, ["s", "USDC", {USER: PLAIN}]
    )


SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"notes"
EMPTY_SKIPPABLE = struct.pack("<II", 0x184D2A50, 0)


@pytest.mark.parametrize("skippable", [SKIPPABLE, EMPTY_SKIPPABLE])
@pytest.mark.parametrize("headers", [{}, {"x-payload-format": "msgpack"}])
def test_skippable_frames_are_read(skippable, headers):
    """Skippable frames before, between and behind; the first can look like a list of snapshots."""
    first, second = (zstandard.compress(part) for part in (GOOD[:30], GOOD[30:]))
    whole = zstandard.compress(GOOD)
    expected = rows(decode_snapshots(ACCOUNTS, headers, GOOD))
    for parts in (
        [skippable, whole],
        [whole, skippable],
        [skippable, first, skippable, skippable, second, skippable],
    ):
        assert rows(decode_snapshots(ACCOUNTS, headers, b"".join(parts))) == expected
    several = join_blobs([skippable + whole, whole + skippable])
    assert rows(decode_snapshots(ACCOUNTS, {}, several)) == expected * 2


@pytest.mark.parametrize("declares", [False, True])
@pytest.mark.parametrize("followed", [b"", EMPTY_SKIPPABLE, SKIPPABLE])
def test_every_cut_of_zstd_raises(declares, followed):
    """Any cut is found, also one in the checksum or in a skippable frame at the end."""
    writer = zstandard.ZstdCompressor(write_content_size=declares, write_checksum=True)
    frame = writer.compress(GOOD)
    content = frame + followed
    for length in range(4, len(content)):
        if length != len(frame):
            with pytest.raises(AnswerDamaged):
                decode_snapshots(ACCOUNTS, {}, content[:length])


def test_object_form_has_same_rows():
    names = ("v", "l", "s", "m", "am", "pm", "pa", "pt")
    users = {USER: PLAIN, OTHER: MARGIN}
    objects = {user: dict(zip(names, values, strict=False)) for user, values in users.items()}
    expected = read_rows(ACCOUNTS, ["s", "USDC", users])
    assert read_rows(ACCOUNTS, {"i": "s", "t": "USDC", "u": objects}) == expected
    assert read_rows(ACCOUNTS, {"u": objects, "t": "USDC", "i": "s"}) == expected
    turned = {user: dict(reversed(values.items())) for user, values in objects.items()}
    assert read_rows(ACCOUNTS, {"i": "s", "t": "USDC", "u": turned}) == expected


@pytest.mark.parametrize("value", [2, 2.0, "2", "2.0", 2**62, -(2**40), 0.5, -7])
def test_numbers_of_every_form_are_read(value):
    for single in (False, True):
        raw = msgpack.packb(["s", "USDC", {USER: (value, *PLAIN[1:])}], use_single_float=single)
        assert decode_snapshots(ACCOUNTS, {}, raw)["account_value"][0] == float(value)
    twap = (*TWAP[:4], value, *TWAP[5:])
    assert read_rows(TWAPS, ["s", "BTC", [twap]])[0]["total_sz"] == float(value)


whole = st.integers(-(2**63), 2**63 - 1)
any_number = st.floats() | st.integers(-(2**63), 2**64 - 1) | st.just("1.25")
any_text = st.text("aé0x:", max_size=40) | st.just("x" * 255)
scanned_twaps = st.tuples(
    st.just("0x" + "a" * 40) | any_text,
    whole,
    st.none() | any_text,
    st.booleans(),
    *[any_number] * 5,
    whole | st.none(),
    whole,
    *[st.booleans()] * 2,
    st.none() | any_text,
    st.integers(0, 2**32),
    *[st.none() | any_text] * 2,
    *[st.none() | any_number] * 2,
    *[st.none() | st.booleans()] * 2,
)


@given(
    st.lists(st.lists(scanned_twaps | st.just(TWAP), max_size=4), min_size=1, max_size=3),
    st.lists(any_number | any_text | st.just({"a": [1.5, None]}) | st.none(), max_size=2),
)
def test_twap_scan_equals_reading_singly(snapshots, further):
    payloads = [
        memoryview(msgpack.packb(["s", f"COIN{place}", [(*twap, *further) for twap in twaps]]))
        for place, twaps in enumerate(snapshots)
    ]
    columns, words = read_with_warnings(lambda: twap_columns(iter(payloads), 1 << 20))
    singly, singly_words = read_with_warnings(
        lambda: join_columns(list(read_twaps_one_by_one(payloads, 0, 1 << 20)), {})
    )
    assert words == singly_words
    assert list(columns) == list(singly)
    for name, values in columns.items():
        assert type_name(values) == type_name(singly[name])
    assert is_same(columns, singly)


def read_with_warnings(read):
    forget_deviations()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        columns = LazyColumns(read())
    return columns, {str(warning.message) for warning in warned}


@pytest.mark.parametrize("count", [1, 25, 70_000])
def test_several_twap_snapshots_are_scanned_together(count):
    payloads = [memoryview(msgpack.packb(["s", "BTC", [TWAP] * rows])) for rows in (count, 0, 3)]
    found = scan_twaps(TWAPS.type, payloads)
    assert found is not None
    assert found.runs == [("s", "BTC", count), ("s", "BTC", 0), ("s", "BTC", 3)]
    assert found.columns["twap_id"].tolist() == [TWAP[1]] * (count + 3)


@pytest.mark.parametrize("change", [b"\x90", b"\x92\x01", b"\xdc\x00\x03"])
def test_twap_scan_refuses_wrong_counts(change):
    packed = msgpack.packb(TWAP)
    head = b"\x93" + msgpack.packb("s") + msgpack.packb("BTC")
    assert scan_twaps(TWAPS.type, [memoryview(head + change + packed * 2)]) is None


@pytest.mark.parametrize("length", range(17, 22))
def test_older_twaps_have_missing_last_fields(length):
    (row,) = read_rows(TWAPS, ["s", "BTC", [TWAP[:length]]])
    last = (65_000.0, True, False)
    expected = (None, *last)[: length - 17] + (None, None, None, False)[length - 17 :]
    assert tuple(row.values())[-4:] == expected


def test_unknown_snapshot_value_warns_once():
    with pytest.warns(UnknownField, match="accountValueSnapshots: .* value_8. .*extra=.keep."):
        longer = read_rows(ACCOUNTS, ["s", "USDC", {USER: (*MARGIN, {"new": [1]}), OTHER: PLAIN}])
    usual = read_rows(ACCOUNTS, ["s", "USDC", {USER: MARGIN, OTHER: PLAIN}])
    texts = ('{"new":[1]}', None)
    assert longer == [row | {"entry.value_8": text} for row, text in zip(usual, texts, strict=True)]
    read_rows(ACCOUNTS, ["s", "USDC", {USER: (*MARGIN, 1)}])  # would fail if it warned again
    with pytest.warns(UnknownField, match="perpTwapSnapshots: .* value_21"):
        (row,) = read_rows(TWAPS, ["s", "BTC", [(*TWAP, "new")]])
    (usual_row,) = read_rows(TWAPS, ["s", "BTC", [TWAP]])
    assert row == usual_row | {"entry.value_21": "new"}


def test_unknown_keys_of_objects_become_columns():
    values = dict(zip("vlsm", PLAIN, strict=False)) | {"am": 0}
    with pytest.warns(UnknownField, match="later"):
        (row,) = read_rows(ACCOUNTS, {"i": "s", "t": "U", "u": {USER: values | {"later": 1}}})
    assert row["entry.later"] == "1"
    with pytest.warns(UnknownField, match="extra"):
        (row,) = read_rows(ACCOUNTS, {"extra": [[]], "i": "s", "t": "U", "u": {USER: values}})
    assert row["snapshot.extra"] == "[[]]"


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
@pytest.mark.parametrize("others", [0, 60])
def test_unknown_values_stay_in_their_rows(others):
    """Each value stands in its own row, also if most entries are read at once."""
    users = {f"0x{number:040x}": PLAIN for number in range(others)}
    first = ["s", "USDC", users | {USER: (*MARGIN, 7)}, "note"]
    got = read_rows(ACCOUNTS, first, ["s", "HYPE", users | {OTHER: PLAIN}])
    assert [row.get("entry.value_8") for row in got] == [None] * others + ["7"] + [None] * (
        others + 1
    )
    assert [row["snapshot.value_3"] for row in got] == ["note"] * (others + 1) + [None] * (
        others + 1
    )
    got = read_rows(
        TWAPS, ["s", "BTC", [TWAP] * others + [(*TWAP, 7)], "note"], ["s", "ETH", [TWAP]]
    )
    assert [row["entry.value_21"] for row in got] == [None] * others + ["7", None]
    assert [row["snapshot.value_3"] for row in got] == ["note"] * (others + 1) + [None]


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xff", '"/w=="'),
        (msgpack.ExtType(5, b"x"), None),
        ({(1, 2): 3}, None),
        ("\u00e9", "\u00e9"),
    ],
)
def test_unknown_values_become_text(value, text):
    raw = msgpack.packb(value)
    (row,) = read_rows(ACCOUNTS, ["s", "USDC", {USER: (*MARGIN, value)}])
    assert row["entry.value_8"] == (text or repr(raw))


# -- All at once is the same as one by one ----------------------------------------------------

COMMON_FLOATS = st.sampled_from([0.0, 1.5, -2.25, 1e300, float("inf"), float("nan")])
NUMBERS = st.one_of(
    COMMON_FLOATS.map(msgpack.packb),
    st.floats(width=32).map(lambda value: msgpack.packb(value, use_single_float=True)),
    st.integers(-(2**63), 2**64 - 1).map(msgpack.packb),
    st.integers(-40, 200).map(msgpack.packb),
    st.sampled_from(["1.5", "-0.25", "12", "1e-07", "-3.5E+20", "0.1" + "0" * 40]).map(
        msgpack.packb
    ),
)
FLAGS = st.booleans().map(msgpack.packb)
MODES = st.integers(0, 3).map(msgpack.packb)
TOKENS = st.sampled_from(["USDC", "", "é", "0x" + "f" * 40, "0x" + "f" * 20, "x" * 31])
PAIRS = st.lists(st.tuples(TOKENS, st.floats(allow_nan=False)), max_size=17).map(msgpack.packb)
NIL = st.just(msgpack.packb(None))


def packed_list(values):
    return msgpack.Packer().pack_array_header(len(values)) + b"".join(values)


def packed_dict(values):
    pairs = [msgpack.packb(key) + value for key, value in values.items()]
    return msgpack.Packer().pack_map_header(len(pairs)) + b"".join(pairs)


SCALARS = st.one_of(
    NUMBERS,
    FLAGS,
    NIL,
    TOKENS.map(msgpack.packb),
    st.sampled_from(["x" * 31, "x" * 32, "é" * 200, USER, "0x"]).map(msgpack.packb),
    st.sampled_from([b"", b"x" * 300]).map(msgpack.packb),
    st.integers(1, 20).map(lambda size: msgpack.packb(msgpack.ExtType(5, b"x" * size))),
)
UNKNOWN = st.one_of(
    SCALARS,
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=18).map(packed_list)
            | st.dictionaries(TOKENS | st.just(OTHER), inner, max_size=17).map(packed_dict)
        ),
        max_leaves=30,
    ),
)


KEYS = ("v", "l", "s", "m", "am", "pm", "pa", "pt")
NAMES = [column.name for column in record_columns(ACCOUNTS.tables[0].record)][3:]


@st.composite
def entries_of_all_forms(draw):
    values = [draw(item | NIL) for item in (NUMBERS, NUMBERS, NUMBERS, FLAGS, MODES)]
    if draw(st.booleans()):
        values += [draw(NUMBERS | NIL), draw(PAIRS | NIL), draw(NUMBERS | NIL)]
    return values


def snapshot(users, *, keyed):
    """Return a snapshot of packed values: lists of values, or dicts of keys and values."""
    packer = msgpack.Packer(autoreset=False)
    body = b""
    for number, values in enumerate(users):
        named = values if isinstance(values, dict) else dict(zip(KEYS, values, strict=False))
        body += msgpack.packb(f"0x{number:040x}")
        body += packed_dict(named) if keyed else packed_list(values)
    packer.pack_map_header(len(users))
    names = [msgpack.packb(item) for item in ("i", "s", "t", "USDC", "u")]
    if keyed:
        return b"\x83" + b"".join(names) + packer.bytes() + body
    return b"\x93" + names[1] + names[3] + packer.bytes() + body


def is_same(left, right):
    return all(
        np.array_equal(left[name], right[name], equal_nan=True)
        if isinstance(left[name], np.ndarray) and left[name].dtype == np.float64
        else left[name].tolist() == right[name].tolist()
        for name in left
    )


@st.composite
def layouts_of_entries(draw):
    """Draw whether entries are objects, and entries of a few layouts with unknown values."""
    keyed = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(["later", "é", "a name with spaces"]), unique=True))
    users: list[Any] = draw(st.lists(entries_of_all_forms(), max_size=30))
    for at, user in enumerate(users):
        if not keyed:
            longest = 2 if len(user) == 5 else 10
            users[at] = [*user, *draw(st.lists(UNKNOWN, max_size=longest))]
        elif draw(st.booleans()):
            pairs = list(zip(KEYS, user, strict=False)) + [(name, draw(UNKNOWN)) for name in names]
            users[at] = dict(draw(st.permutations(pairs)))
    return keyed, users


def packed_with(unknown, *, keyed):
    """Return the values of a usual entry, and one more."""
    if keyed:
        return dict(zip(KEYS, packed_values(), strict=False)) | {"later": unknown}
    return [*packed_values(), unknown]


@given(layouts_of_entries(), st.none() | UNKNOWN)
def test_scan_equals_reading_one_by_one(drawn, unknown):
    keyed, users = drawn
    # Entries that fit surround the odd ones, so that most draws are read at once.
    usual = packed_values() if unknown is None else packed_with(unknown, keyed=keyed)
    users = [*[usual] * 40, *users, *[packed_values()] * 8]
    payload = memoryview(snapshot(users, keyed=keyed))
    head = read_head(payload, "token", "map")
    with warnings.catch_warnings(action="ignore"):
        singly = LazyColumns(
            join_columns(list(read_one_by_one(payload, head, entry_spans(payload, head), 0)), {})
        )
        at_once = decode_snapshots(ACCOUNTS, {}, bytes(payload))
    assert len(at_once["user"]) == len(users)
    assert singly.keys() == at_once.keys() - {"snapshot_id", "collateral_token"}
    assert is_same(singly, at_once)


def packed_values():
    return [msgpack.packb(item) for item in PLAIN]


def refuse(places):
    raise AssertionError(f"read one by one: {places}")


@pytest.mark.parametrize("keyed", [False, True])
def test_usual_entries_are_scanned(keyed):
    margin = [msgpack.packb(item) for item in MARGIN]
    whole_numbers = [msgpack.packb(item) for item in (1, 300, -70_000, True, 2)]
    decimal_text = [msgpack.packb(item) for item in ("1.5", "-2e-06", "1000.25", True, 2)]
    users = [packed_values(), margin, whole_numbers, decimal_text] * 30
    payload = memoryview(snapshot(users, keyed=keyed) + bytes(SLACK))
    head = read_head(payload[:-SLACK], "token", "map")
    read_at_once = scan_accounts(payload, head, refuse)
    assert read_at_once is not None
    assert read_at_once["account_mode"].tolist() == [0, 3, 2, 2] * 30
    assert read_at_once["total_long_notional"].tolist() == [100.0, 0.0, 300.0, -2e-06] * 30


def bytes_of(value):
    packed: bytes = msgpack.packb(value)
    return packed


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [7],
        [1, 200, -70_000, 2**40],
        [1.5, None, True],
        ["", "é", "x" * 31, "x" * 400],
        [USER, OTHER],
        [b"x" * 300, msgpack.ExtType(5, b"x")],
        [{"a": [1.5, None], "b": "x"}],
        [{"a": [1]}, {"a": [1_000]}, [], {}, [[[["deep"]]]]],
        [{"a": ["x" * number]} for number in range(12)],
        [[OTHER, {USER: 1.0}]],
        [[1] * 20, {str(number): "x" for number in range(20)}],
    ],
    ids=lambda values: repr(values)[:30],
)
def test_unknown_values_are_scanned(keyed, values):
    """No entry is read one by one if all have an unknown value, of any type."""
    packed = [bytes_of(value) for value in values]
    users = [packed_with(packed[number % len(packed)], keyed=keyed) for number in range(120)]
    payload = memoryview(snapshot(users, keyed=keyed) + bytes(SLACK))
    head = read_head(payload[:-SLACK], "token", "map")
    scanned = scan_accounts(payload, head, refuse)
    assert scanned is not None
    name = "entry.later" if keyed else "entry.value_5"
    expected = [value_text(packed[number % len(packed)]) for number in range(120)]
    assert LazyColumns(scanned)[name].to_pylist() == expected
    assert scanned["pm_ratio"].tolist() == pytest.approx([np.nan] * 120, nan_ok=True)
    assert scanned["account_value"].tolist() == [150.5] * 120


def test_mixed_layouts_are_scanned():
    """Tuples of five lengths in turn, among them one of 20 values."""
    one, margin = msgpack.packb(1), [msgpack.packb(item) for item in MARGIN]
    forms = [
        packed_values(),
        [*packed_values(), one],
        margin,
        [*margin, one],
        [*margin, *[one] * 12],
    ]
    users = [forms[number % 5] for number in range(100)]
    payload = memoryview(snapshot(users, keyed=False) + bytes(SLACK))
    scanned = scan_accounts(payload, read_head(payload[:-SLACK], "token", "map"), refuse)
    assert scanned is not None
    texts = LazyColumns(scanned)
    assert texts["entry.value_5"].to_pylist() == [None, "1", None, None, None] * 20
    assert texts["entry.value_8"].to_pylist() == [None, None, None, "1", "1"] * 20
    assert texts["entry.value_19"].to_pylist() == [None, None, None, None, "1"] * 20
    assert texts["pm_total_account_value"][2:5].tolist() == [9.0] * 3


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
@pytest.mark.parametrize("others", [0, 60])
@pytest.mark.parametrize("further", [(7,), ("new",), (0.5, [["USDC"]])])
def test_values_of_short_tuples_are_unknown(others, further):
    """Only tuples of 8 values have a ratio of the margin (specification, index 5)."""
    users = {f"0x{number:040x}": PLAIN for number in range(others)} | {USER: (*PLAIN, *further)}
    row = read_rows(ACCOUNTS, ["s", "USDC", users])[-1]
    assert (row["account_mode"], row["pm_ratio"], row["pm_avail_by_branch"]) == (0, None, None)
    assert row["entry.value_5"] == str(further[0])
    assert row.get("entry.value_6") == (None if len(further) == 1 else '[["USDC"]]')


def test_unknown_twap_values_stay_in_rows():
    """Unknown values that some snapshots have, and others do not, stand in their rows."""
    with pytest.warns(UnknownField) as warned:
        got = read_rows(
            TWAPS,
            *[["s", f"C{number}", [(*TWAP, number, "x")] * 3] for number in range(5)],
            ["s", "ETH", [TWAP, (*TWAP, {"a": 1})]],
            ["s", "SOL", [TWAP]],
        )
    assert len(warned) == 2
    numbers = [str(number) for number in range(5) for _ in range(3)]
    assert [row["entry.value_21"] for row in got] == [*numbers, None, '{"a":1}', None]
    assert [row["entry.value_22"] for row in got] == ["x"] * 15 + [None] * 3
    (plain,) = read_rows(TWAPS, ["s", "BTC", [TWAP]])
    assert "entry.value_21" not in plain


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("others", [0, 2, 60])
@pytest.mark.parametrize(("at", "name"), list(enumerate(NAMES[:5])))
def test_null_account_values_are_missing(keyed, others, at, name):
    """One entry alone is read directly; among 60 entries it is part of a scan."""
    values = [msgpack.packb(None if place == at else item) for place, item in enumerate(PLAIN)]
    payload = snapshot([packed_values()] * others + [values, packed_values()], keyed=keyed)
    with pytest.warns(MissingField, match=f"accountValueSnapshots: .* {name},") as warned:
        got = rows(decode_snapshots(ACCOUNTS, {}, payload))
    assert len(warned) == 1
    assert rows(decode_snapshots(ACCOUNTS, {}, payload)) == got  # would fail if it warned again
    assert [row[name] for row in got] == [PLAIN[at]] * others + [None, PLAIN[at]]
    assert {row["total_long_notional" if at == 0 else "account_value"] for row in got} == {
        100.0 if at == 0 else 150.5
    }


@pytest.mark.parametrize("others", [0, 60])
@pytest.mark.parametrize(("at", "name"), list(enumerate(NAMES[:5])))
def test_absent_keys_of_accounts_are_missing(others, at, name):
    names = ("v", "l", "s", "m", "am")
    whole = dict(zip(names, PLAIN, strict=True))
    users = {f"0x{number:040x}": whole for number in range(others)}
    users[USER] = {key: value for key, value in whole.items() if key != names[at]}
    content = msgpack.packb({"i": "s", "t": "USDC", "u": users})
    with pytest.warns(MissingField, match=name):
        got = rows(decode_snapshots(ACCOUNTS, {}, content))
    assert [row[name] for row in got] == [PLAIN[at]] * others + [None]


@pytest.mark.parametrize("keyed", [False, True])
def test_entries_with_null_keep_their_place(keyed):
    """Entries with a null are read one by one, and then put between the scanned ones."""
    nulls = [msgpack.packb(item) for item in (None, 7.0, 8.0, None, None)]
    users = [[packed_values(), nulls, packed_values()][number % 3] for number in range(9)]
    users = [packed_values()] * 90 + users
    payload = memoryview(snapshot(users, keyed=keyed) + bytes(SLACK))
    head = read_head(payload[:-SLACK], "token", "map")
    odd = []

    def read_places(places):
        odd.extend(places)
        return join_columns(list(read_one_by_one(payload, head, iter(places), 0)), {})

    with pytest.warns(MissingField):
        result = scan_accounts(payload, head, read_places)
    assert result is not None
    assert len(odd) == 3
    assert result["account_mode"].tolist() == [0] * 90 + [0, None, 0] * 3
    assert result["is_unified"].tolist() == [False] * 90 + [False, None, False] * 3
    assert result["total_long_notional"].tolist() == [100.0] * 90 + [100.0, 7.0, 100.0] * 3


def test_missing_and_unknown_values_warn_separately():
    with (
        pytest.warns(UnknownField, match="value_8"),
        pytest.warns(MissingField, match="is_unified"),
    ):
        got = read_rows(ACCOUNTS, ["s", "USDC", {USER: (*MARGIN[:3], None, *MARGIN[4:], 1)}])
    assert (got[0]["is_unified"], got[0]["account_mode"], got[0]["pm_ratio"]) == (None, 3, 0.25)


@pytest.mark.parametrize("length", range(1, 5))
def test_short_tuples_are_refused(length):
    """A short tuple may be damaged, so only null is a missing value."""
    users = {f"0x{number:040x}": PLAIN for number in range(50)} | {USER: PLAIN[:length]}
    assert raised_error(ACCOUNTS, msgpack.packb(["s", "USDC", users])).row == 50
    assert raised_error(TWAPS, msgpack.packb(["s", "BTC", [TWAP, TWAP[: 12 + length]]])).row == 1


# -- What is no snapshot is refused -----------------------------------------------------------

GOOD = msgpack.packb(["s", "USDC", {USER: PLAIN, OTHER: MARGIN}])
BLOB = zstandard.compress(GOOD)
MULTI = {"x-payload-format": "multi-zstd"}


def raised_error(operation, content, headers=None, **limits):
    with pytest.raises(AnswerInvalid) as caught:
        decode_snapshots(operation, headers or {}, content, **limits)
    assert caught.value.operation == operation.type
    return caught.value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must be an array"),
        (b"\x93", "must be a text"),
        (msgpack.packb("text"), "must be an array"),
        (msgpack.packb(["s", "USDC"]), "not 2"),
        (msgpack.packb(["s", 1, {}]), "collateral token must be a text"),
        (msgpack.packb(["s", b"USDC", {}]), "collateral token must be a text"),
        (msgpack.packb(["s", "USDC", []]), "users must be a map"),
        (msgpack.packb({"i": "s", "t": "USDC"}), "keys i, t and u"),
        (GOOD + b"\xc0", "1 byte follows"),
        (msgpack.packb(["s", "USDC", {}, 1]) + b"\xc0", "1 byte follows"),
        (b"\x93\xa1s\xa1t\xdf\xff\xff\xff\xff", "damaged at byte 10"),
        (b"\x93\xa1s\xa1t\x81\xdb\xff\xff\xff\xff", "damaged"),
        (b"\x93\xa1s\xa1t\x81" + b"\x91" * 100_000, "damaged"),
        (b"\x93\xa1s\xa1t\x81\xc1", "damaged"),
        (b"\x93\xa2s\xff\xa1t\x80", "damaged"),
        (GOOD.replace(b"abab", b"ab\xffb", 1), "utf-8"),
        (GOOD.replace(b"USDH", b"USD\xff"), "utf-8"),
        (msgpack.packb(["s" * 5_000, "USDC", {}]), "5000 characters"),
        (BLOB[:-9], "zstd data"),
        (BLOB + b"garbage", "zstd data"),
        (BLOB[:8] + b"\xff" * 20 + BLOB[28:], ""),
    ],
)
def test_invalid_snapshot_is_refused(content, words):
    assert words in str(raised_error(ACCOUNTS, content))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\1\0", "too few"),
        (b"\2\0\0\0" + struct.pack("<I", len(BLOB)) + BLOB, "ends after 1"),
        (b"\xff\xff\xff\xff", "should have 4294967295 snapshots"),
        (b"\1\0\0\0\xff\xff\xff\x7f" + BLOB, "should have 2147483647 bytes"),
        (join_blobs([BLOB]) + b"!", "1 byte follows the last of 1 snapshot. Request it again"),
    ],
)
def test_wrong_counts_are_refused(content, words):
    assert words in str(raised_error(ACCOUNTS, content, MULTI))


@pytest.mark.parametrize(
    ("operation", "values", "column"),
    [
        (ACCOUNTS, ("x", *PLAIN[1:]), "account_value"),
        (ACCOUNTS, ([1.5], *PLAIN[1:]), "account_value"),
        (ACCOUNTS, (*PLAIN[:3], 7, 0), "is_unified"),
        (ACCOUNTS, (*PLAIN[:4], 2**63), "account_mode"),
        (ACCOUNTS, (*PLAIN, 0.5, [["USDC"]], 1.0), "pm_avail_by_branch"),
        (ACCOUNTS, (*PLAIN, 0.5, [["USDC", 1.0]] * 70_000, 1.0), "pm_avail_by_branch"),
        (TWAPS, (*TWAP[:7], "much", *TWAP[8:]), "executed_ntl"),
        (TWAPS, (*TWAP[:10], 2**63, *TWAP[11:]), "start_time_ms"),
    ],
)
def test_invalid_snapshot_value_is_named(operation, values, column):
    users = {f"0x{number:040x}": PLAIN for number in range(50)} | {USER: values}
    entries = users if operation is ACCOUNTS else [*[TWAP] * 50, values]
    error = raised_error(operation, msgpack.packb(["s", "n", entries]))
    assert (error.column, error.row) == (column, 50)


@pytest.mark.parametrize("key", ["", USER[:-1], "0X" + USER[2:], "0x" + "é" * 40, 7])
def test_user_must_be_address(key):
    users = {f"0x{number:040x}": PLAIN for number in range(50)} | {key: PLAIN}
    error = raised_error(ACCOUNTS, msgpack.packb(["s", "USDC", users]))
    assert (error.column, error.row) == ("user", 50)


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40), st.booleans())
def test_damaged_bytes_are_refused(junk, at, cut, whole):
    users = {f"0x{number:040x}": MARGIN if number % 3 else PLAIN for number in range(8)}
    raw = msgpack.packb(["s", "USDC", users])
    content = raw if whole else join_blobs([zstandard.compress(raw)] * 2)
    content = content[:at] + junk + content[at + cut :]
    for operation in (ACCOUNTS, TWAPS):
        with warnings.catch_warnings(action="ignore", category=UnknownField):
            try:
                read_columns = decode_snapshots(operation, {}, content, limit=1 << 20)
            except AnswerInvalid:
                continue
        assert len({len(values) for values in read_columns.values()}) == 1
        for values in read_columns.values():
            if not isinstance(values, np.ndarray):
                values.validate(full=True)


# -- Memory stays within bounds ---------------------------------------------------------------


def peak_memory(operation, content, limit):
    tracemalloc.start()
    try:
        raised_error(operation, content, limit=limit)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("declares", [True, False])
def test_decompression_bomb_is_refused(declares):
    compressor = zstandard.ZstdCompressor(write_content_size=declares)
    bomb = compressor.compress(bytes(1 << 28))
    assert len(bomb) < 1 << 16
    assert peak_memory(ACCOUNTS, bomb, 1 << 22) < 1 << 24
    several = join_blobs([zstandard.compress(GOOD), bomb])
    assert peak_memory(ACCOUNTS, several, 1 << 22) < 1 << 24


def test_gzip_members_are_limited():
    """The end of each member costs time, so that a short body of empty members could take hours."""
    member = gzip.compress(b"")
    assert bytes(decompress(member * 9_999 + gzip.compress(b"[]"), 10)) == b"[]"
    with pytest.raises(AnswerInvalid, match="more than 10,000 members"):
        decompress(member * 10_001, 10)


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 100_000])
def test_gzip_members_are_joined(size):
    """A member may begin and end anywhere in the chunks that are read."""
    parts = [random.Random(size + n).randbytes(size) for n in range(3)]
    content, whole = b"".join(map(gzip.compress, parts)), b"".join(parts)
    assert bytes(decompress(content, len(whole) or 1)) == whole
    if size:
        with pytest.raises(AnswerInvalid, match="longer than the limit"):
            decompress(content, len(whole) - 1)
    for cut in (1, 9):
        with pytest.raises(AnswerDamaged, match="ends too early"):
            decompress(content[:-cut], len(whole) or 1)


def test_limit_counts_all_snapshots():
    content = join_blobs([BLOB] * 3)
    assert decode_snapshots(ACCOUNTS, {}, content, limit=3 * len(GOOD))
    raised_error(ACCOUNTS, content, limit=3 * len(GOOD) - 1)
    raised_error(ACCOUNTS, GOOD, limit=len(GOOD) - 1)


@pytest.mark.parametrize(
    "entry",
    [
        b"\x95\0\0\0\xc2\0",
        b"\x98\0\0\0\xc2\0\0\xdd\x7f\xff\xff\xff" + b"\x92\xa0\0" * 1_000_000,
        b"\xdd\x7f\xff\xff\xff" * 500 + bytes(1_000_000),
        b"\x99\0\0\0\xc2\0\0\xc0\0\xdd\0\x2f\xff\xff" + b"\x80" * 3_000_000,
    ],
    ids=["short", "many pairs", "announced", "unknown"],
)
def test_nested_objects_have_bounded_memory(entry):
    body = msgpack.packb(USER) + entry
    content = b"\x93\xa1s\xa1t\xdf\x7f\xff\xff\xff" + body * (1 + 2_000_000 // len(body))
    assert peak_memory(ACCOUNTS, content, 1 << 23) < 1 << 26


def test_long_names_have_bounded_memory():
    content = msgpack.packb(["s" * 4_000, "BTC", [TWAP] * 2_000])
    assert "too long" in str(raised_error(TWAPS, content, limit=1 << 20))
