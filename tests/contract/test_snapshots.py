"""Binary snapshots: `decode_snapshots` inverts `encode` in every form; it refuses invalid bytes."""

import gzip
import random
import struct
import tracemalloc
import warnings

import msgpack
import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from toolkit.contract.compression import decompress
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.fields import record_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.snapshots import assemble, decode_snapshots, pack
from toolkit.errors import AnswerDamaged, AnswerInvalid, UnknownField

ACCOUNTS = OPERATIONS["accountValueSnapshots"]
TWAPS = OPERATIONS["perpTwapSnapshots"]
USER = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
PLAIN = (150.5, 100.0, 50.0, False, 0)
MARGIN = (1.5, 0.0, 2.0, False, 3, 0.25, [("USDC", 1.5), ("USDH", -2.0)], 9.0)
KEYS = ("v", "l", "s", "m", "am", "pm", "pa", "pt")
TWAP = (
    *(USER, 7, "BTC", True, 2.0, 0.5, 1.5, 30_000.0, 25.0, 3_600, 1_700_000_000_000),
    *(False, True, "2025-01-01T00:00:30Z", 12, None, None, None, 65_000.0, True, False),
)


def rows(columns):
    """Return columns as rows of plain values; a missing value is None."""
    plain = {
        name: [None if value != value else value for value in values.to_pylist()]
        for name, values in columns.items()
    }
    return [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]


def list_rows(columns):
    return [list(row.values()) for row in rows(columns)]


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
whole = st.integers(0, 2**53)
twaps = st.tuples(
    *(addresses, whole, texts, st.booleans(), floats, floats, floats, floats, floats, whole),
    *(whole, st.booleans(), st.booleans(), texts, whole, st.none(), st.none()),
    *(st.none() | floats, st.none() | floats, st.none() | st.booleans(), st.booleans()),
)
twap_snapshots = st.tuples(texts, texts, st.lists(twaps, max_size=5))


def names(operation):
    return [column.name for column in record_columns(operation.tables[0].record)]


@given(st.lists(twap_snapshots, min_size=1, max_size=4))
def test_twaps_round_trip(snapshots):
    columns = decode_snapshots(TWAPS, *assemble([pack(*snapshot) for snapshot in snapshots]))
    assert list_rows(columns) == [
        [snapshot_id, name, *twap] for snapshot_id, name, twaps in snapshots for twap in twaps
    ]
    assert list(columns) == names(TWAPS)


def test_empty_snapshots_have_same_column_types():
    for operation, some in ((ACCOUNTS, {USER: MARGIN}), (TWAPS, [TWAP])):
        full = decode_snapshots(operation, {}, msgpack.packb(["s", "n", some]))
        empty = decode_snapshots(operation, {}, msgpack.packb(["s", "n", type(some)()]))
        none = decode_snapshots(operation, MULTI, join_blobs([]))
        assert list(full) == list(empty) == list(none) == names(operation)
        kinds = [[values.type for values in item.values()] for item in (full, empty, none)]
        assert kinds[0] == kinds[1] == kinds[2]


# -- Every form of the bytes ------------------------------------------------------------------

GOOD = msgpack.packb(["s", "USDC", {USER: PLAIN, OTHER: MARGIN}])
BRANCHES = [{"token": "USDC", "available": 1.5}, {"token": "USDH", "available": -2.0}]
ROWS = [
    ["s", "USDC", USER, *PLAIN, None, None, None],
    ["s", "USDC", OTHER, *MARGIN[:6], BRANCHES, MARGIN[7]],
]
BLOB = zstandard.compress(GOOD)
MULTI = {"x-payload-format": "multi-zstd"}
SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"notes"
EMPTY_SKIPPABLE = struct.pack("<II", 0x184D2A50, 0)


def test_snapshots_are_read_in_every_wrapping():
    """Skippable frames may be anywhere; the first can look like a list of snapshots."""
    first, second = (zstandard.compress(part) for part in (GOOD[:30], GOOD[30:]))
    writer = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    single = [GOOD, BLOB, first + second, writer.compress(GOOD[:30]) + writer.compress(GOOD[30:])]
    several = [join_blobs([BLOB] * 2)]
    for extra in (SKIPPABLE, EMPTY_SKIPPABLE):
        single += [extra + BLOB, BLOB + extra, extra + first + extra * 2 + second + extra]
        several += [join_blobs([extra + BLOB, BLOB + extra])]
    single.append(pack("s", "USDC", {USER: PLAIN, OTHER: MARGIN}))
    for headers in ({}, {"X-Payload-Format": "msgpack"}, {"x-payload-format": "?"}):
        for content in single:
            assert list_rows(decode_snapshots(ACCOUNTS, headers, content)) == ROWS
    for headers in ({}, MULTI):
        for content in several:
            assert list_rows(decode_snapshots(ACCOUNTS, headers, content)) == ROWS * 2


def test_cut_snapshots_are_refused():
    """A cut that loses no value, as one of the checksum, is not found."""
    writer = zstandard.ZstdCompressor(write_checksum=True)
    for content in (GOOD, BLOB, writer.compress(GOOD[:30]) + writer.compress(GOOD[30:])):
        for length in range(len(content) - 4):
            with pytest.raises(AnswerInvalid):
                decode_snapshots(ACCOUNTS, {}, content[:length])


numbers = (
    st.floats(allow_nan=False)
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from(["1.5", "-0.25", "1e-07", "0.1" + "0" * 40])
)
tokens = st.sampled_from(["USDC", "", "é", "0x" + "f" * 40, "x" * 31])
branches = st.lists(st.tuples(tokens, st.none() | st.floats(allow_nan=False)), max_size=17)
unknown = st.integers(-40, 2**40) | tokens | st.lists(st.integers(0, 300), max_size=18)


@st.composite
def entries_of_all_forms(draw):
    """Return the known values of an entry, and unknown ones after them."""
    values = [draw(item | st.none()) for item in (numbers, numbers, numbers, st.booleans())]
    values.append(draw(st.integers(0, 3) | st.none()))
    is_margin = draw(st.booleans())
    if is_margin:
        values += [draw(numbers | st.none()), draw(branches | st.none()), draw(numbers | st.none())]
    return values, draw(st.lists(unknown, max_size=10 if is_margin else 2))


def columns_of_entry(values):
    """Return what the known columns of an entry should have."""
    account, longs, shorts, flag, mode, ratio, pairs, total = [*values, *[None] * 8][:8]
    floats = [None if item is None else float(item) for item in (account, longs, shorts)]
    further = [None if item is None else float(item) for item in (ratio, total)]
    if pairs is not None:
        pairs = [{"token": token, "available": amount} for token, amount in pairs]
    return [*floats, flag, mode, further[0], pairs, further[1]]


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(st.lists(entries_of_all_forms(), max_size=8), st.booleans())
def test_odd_entries_among_usual_ones_are_read(drawn, keyed):
    """Most entries of a large snapshot are alike and are read at once; some are not."""
    drawn = [*[(list(PLAIN), [])] * 40, *drawn, *[(list(PLAIN), [])] * 8]
    users, known, texts = {}, [], []
    for number, (values, further) in enumerate(drawn):
        user, prefix = f"0x{number:040x}", "later" if keyed else "value_"
        more = {f"{prefix}{at}": item for at, item in enumerate(further, len(values))}
        named = dict(zip(KEYS, values, strict=False))
        users[user] = named | more if keyed else values + further
        known.append(["s", "USDC", user, *columns_of_entry(values)])
        texts.append({f"entry.{name}": unknown_text(item) for name, item in more.items()})
    snapshot = {"i": "s", "t": "USDC", "u": users} if keyed else ["s", "USDC", users]
    got = rows(decode_snapshots(ACCOUNTS, {}, msgpack.packb(snapshot)))
    assert [list(row.values())[:11] for row in got] == known
    found = [list(row.items())[11:] for row in got]
    assert [{name: text for name, text in row if text is not None} for row in found] == texts


def unknown_text(value):
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def test_older_twaps_have_missing_last_fields():
    for length in range(17, 22):
        (row,) = read_rows(TWAPS, ["s", "BTC", [TWAP[:length]]])
        last = (None, 65_000.0, True, False)
        expected = last[: length - 17] + (None, None, None, False)[length - 17 :]
        assert tuple(row.values())[-4:] == expected


# -- Unknown and missing values ---------------------------------------------------------------


def test_unknown_keys_of_objects_become_columns():
    values = dict(zip("vlsm", PLAIN, strict=False)) | {"am": 0}
    with pytest.warns(UnknownField, match="extra"):
        (row,) = read_rows(ACCOUNTS, {"extra": [[]], "i": "s", "t": "U", "u": {USER: values}})
    assert row["snapshot.extra"] == "[[]]"


def test_unknown_values_of_snapshot_are_in_all_rows():
    users = {f"0x{number:040x}": PLAIN for number in range(60)}
    with pytest.warns(UnknownField, match="extra=.keep."):
        got = read_rows(ACCOUNTS, ["s", "USDC", users, "note"], ["s", "HYPE", users])
    assert [row["snapshot.value_3"] for row in got] == ["note"] * 60 + [None] * 60
    read_rows(ACCOUNTS, ["s", "USDC", users, 1])  # would fail if it warned again


@pytest.mark.filterwarnings("ignore::toolkit.errors.UnknownField")
def test_unknown_values_become_text():
    ext = msgpack.ExtType(5, b"x")
    for value, text in (
        (b"\xff", '"/w=="'),
        (ext, repr(msgpack.packb(ext))),
        ({(1, 2): 3}, repr(msgpack.packb({(1, 2): 3}))),
        ("\u00e9", "\u00e9"),
        ({"a": [1.5, None], "b": "x"}, '{"a":[1.5,null],"b":"x"}'),
    ):
        (row,) = read_rows(ACCOUNTS, ["s", "USDC", {USER: (*MARGIN, value)}])
        assert row["entry.value_8"] == text


def test_short_tuples_are_refused():
    """A short tuple may be damaged, so only null is a missing value."""
    for length in range(5):
        users = {f"0x{number:040x}": PLAIN for number in range(50)} | {USER: PLAIN[:length]}
        assert raised_error(ACCOUNTS, msgpack.packb(["s", "USDC", users])).row == 50
    for length in range(17):
        for before in ([], [TWAP]):
            content = msgpack.packb(["s", "BTC", [*before, TWAP[:length]]])
            assert raised_error(TWAPS, content).row == len(before)


def test_users_may_come_twice():
    """Two entries of one user are two rows, which the checks of a state report."""
    pair = msgpack.packb(USER) + msgpack.packb(PLAIN)
    content = b"\x93\xa1s\xa4USDC\x82" + pair * 2
    assert [row["user"] for row in rows(decode_snapshots(ACCOUNTS, {}, content))] == [USER] * 2


# -- What is no snapshot is refused -----------------------------------------------------------


def raised_error(operation, content, headers=None, **limits):
    with pytest.raises(AnswerInvalid) as caught:
        decode_snapshots(operation, headers or {}, content, **limits)
    assert caught.value.operation == operation.type
    return caught.value


INVALID = [
    (b"", "truncated"),
    (msgpack.packb("text"), "array"),
    (msgpack.packb(["s", "USDC"]), "3"),
    (msgpack.packb(["s", 1, {}]), "$[1]"),
    (msgpack.packb(["s", "USDC", []]), "map of users"),
    (msgpack.packb(["s", "USDC", 7]), "map of users"),
    (msgpack.packb({"i": "s", "t": "USDC"}), "`u`"),
    (GOOD + b"\xc0", "trailing"),
    (b"\x93\xa1s\xa1t\xdf\xff\xff\xff\xff", "truncated"),
    (b"\x93\xa1s\xa1t\x81" + b"\x91" * 100_000, "cannot be read"),
    (b"\x93\xa1s\xa1t\x81\xc1", "invalid"),
    (msgpack.packb(["s", "USDC", {USER: "text"}]), "row 0"),
    (msgpack.packb(["s", "USDC", {PLAIN: PLAIN}]), "column user, row 0"),
    (GOOD.replace(b"abab", b"ab\xffb", 1), "utf-8"),
    (GOOD.replace(b"USDH", b"USD\xff"), "utf-8"),
    (BLOB[:-9], ""),
    (BLOB + b"garbage", "zstd data"),
    (BLOB[:8] + b"\xff" * 20 + BLOB[28:], ""),
]
WRONG_COUNTS = [
    (b"\1\0", "too few"),
    (b"\2\0\0\0" + struct.pack("<I", len(BLOB)) + BLOB, "ends after 1"),
    (b"\xff\xff\xff\xff", "should have 4294967295 snapshots"),
    (b"\1\0\0\0\xff\xff\xff\x7f" + BLOB, "ends after 0"),
    (join_blobs([BLOB]) + b"!", "1 byte follows the last of 1 snapshot. Request it again"),
]


def test_invalid_snapshots_are_refused():
    wrong = []
    for table, headers in ((INVALID, {}), (WRONG_COUNTS, MULTI)):
        for content, named in table:
            try:
                decode_snapshots(ACCOUNTS, headers, content)
                wrong.append((content[:40], named))
            except AnswerInvalid as error:
                if named not in str(error) or error.operation != ACCOUNTS.type:
                    wrong.append((content[:40], named, error))
    assert wrong == []


INVALID_VALUES = [
    (ACCOUNTS, ("x", *PLAIN[1:]), "account_value"),
    (ACCOUNTS, ([1.5], *PLAIN[1:]), "account_value"),
    (ACCOUNTS, (*PLAIN[:3], 7, 0), "is_unified"),
    (ACCOUNTS, (*PLAIN[:4], 2**63), "account_mode"),
    (ACCOUNTS, (*PLAIN, 0.5, [["USDC"]], 1.0), "pm_avail_by_branch"),
    (TWAPS, (*TWAP[:7], "much", *TWAP[8:]), "executed_ntl"),
    (TWAPS, (*TWAP[:10], 2**63, *TWAP[11:]), "start_time_ms"),
]


def test_invalid_snapshot_value_is_named():
    for operation, values, column in INVALID_VALUES:
        users = {f"0x{number:040x}": PLAIN for number in range(50)} | {USER: values}
        entries = users if operation is ACCOUNTS else [*[TWAP] * 50, values]
        error = raised_error(operation, msgpack.packb(["s", "n", entries]))
        assert (error.column, error.row) == (column, 50)
    for key in ("", USER[:-1], "0X" + USER[2:], "0x" + "é" * 40, 7):
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
            values.validate(full=True)


# -- Memory stays within bounds ---------------------------------------------------------------


def peak_memory(operation, content, limit):
    tracemalloc.start()
    try:
        raised_error(operation, content, limit=limit)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_decompression_bomb_is_refused():
    for declares in (True, False):
        bomb = zstandard.ZstdCompressor(write_content_size=declares).compress(bytes(1 << 28))
        assert len(bomb) < 1 << 16
        assert peak_memory(ACCOUNTS, bomb, 1 << 22) < 1 << 24
        assert peak_memory(ACCOUNTS, join_blobs([BLOB, bomb]), 1 << 22) < 1 << 24


def test_gzip_members_are_joined():
    """There may be very many, and a member may begin and end anywhere in what is read at once."""
    assert bytes(decompress(gzip.compress(b"") * 50_000 + gzip.compress(b"[]"), 10)) == b"[]"
    for size in (0, 1, 16_383, 16_384, 100_000):
        parts = [random.Random(size + n).randbytes(size) for n in range(3)]
        content, whole = b"".join(map(gzip.compress, parts)), b"".join(parts)
        assert bytes(decompress(content, len(whole) or 1)) == whole
        if size:
            with pytest.raises(AnswerInvalid, match="limit"):
                decompress(content, len(whole) - 1)
        for cut in (1, 9):
            with pytest.raises(AnswerDamaged):
                decompress(content[:-cut], len(whole) or 1)


def test_limit_counts_all_snapshots():
    content = join_blobs([BLOB] * 3)
    assert decode_snapshots(ACCOUNTS, {}, content, limit=3 * len(GOOD))
    raised_error(ACCOUNTS, content, limit=3 * len(GOOD) - 1)
    raised_error(ACCOUNTS, GOOD, limit=len(GOOD) - 1)
