"""Answers: `decode` inverts `encode`, and readers are more liberal than writers."""

import builtins
import json
import warnings
from decimal import Decimal
from typing import get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fetch.wire import fill
from toolkit.contract import answers
from toolkit.contract import records as r
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.field_deviations import forget_deviations
from toolkit.contract.fields import record_fields, table_columns
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS
from toolkit.errors import AnswerInvalid, MissingField, UnknownField

JSON = [row for row in OPERATIONS.values() if not row.binary]
EVERY = pytest.mark.parametrize("row", JSON, ids=[row.type for row in JSON])

decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=8, min_value=-(10**12), max_value=10**12
).map("{:f}".format)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
whole = st.integers(-(2**53), 2**53)
floats = st.floats(allow_nan=False, allow_infinity=False, width=64)
SCALARS = {
    type(None): st.none(),
    str: texts,
    int: whole,
    bool: st.booleans(),
    float: floats,
    object: st.none() | texts | whole,
}


def type_values(annotation, number, omits=()):
    """Return values of a wire type: records, lists, tuples, dicts, unions and scalars."""
    if isinstance(annotation, type) and issubclass(annotation, r.Record):
        return record_values(annotation, omits)
    parts = [type_values(part, number, omits) for part in get_args(annotation)]
    if not parts:
        return decimals if number and annotation is str else SCALARS[annotation]
    match get_origin(annotation):
        case builtins.list:
            return st.lists(parts[0], max_size=3)
        case builtins.tuple:
            return st.tuples(*parts)
        case builtins.dict:
            return st.dictionaries(parts[0], parts[1], max_size=2)
    return st.one_of(parts)


def record_values(record, omits=(), generations=2):
    fields = {}
    for field in record_fields(record):
        if field.path != "children":
            value = type_values(field.type, field.kind.family == "number")
        elif generations:
            value = st.lists(record_values(record, (), generations - 1), max_size=2)
        else:
            value = st.just([])
        if field.null:
            value = st.none() | value
        if field.absent and not field.has_default:  # an absent one is read as False
            value = st.just(msgspec.UNSET) | value
        fields[field.path] = st.just(msgspec.UNSET) if field.path in omits else value
    return st.builds(record, **fields)


def is_same_answer(read, written, *, as_float=False):
    """Return whether a decoded value equals the written one; absent and null are both missing."""
    return _is_equal(
        json.loads(answers.encode(read)), json.loads(answers.encode(written)), as_float
    )


def _is_equal(read, written, as_float):
    if type(read) is type(written) is dict:
        return all(
            _is_equal(read.get(name), written.get(name), as_float) for name in read | written
        )
    if type(read) is type(written) is list:
        return len(read) == len(written) and all(
            _is_equal(item, other, as_float) for item, other in zip(read, written, strict=True)
        )
    if type(written) is float or (as_float and type(read) is float):
        return type(read) in (int, float) and bool(read == float(written))
    return type(read) is type(written) and bool(read == written)


def example_answer(row, parameters):
    return type_values(answers.answer_type(row, parameters), False, row.tables[0].omits)


@EVERY
@settings(max_examples=40)
@given(data=st.data(), numbers=st.sampled_from(["text", "exact", "float"]))
def test_decode_inverts_encode(row, data, numbers):
    written = data.draw(example_answer(row, {}))
    read = answers.decode(row, 200, {}, answers.encode(written), numbers=numbers)
    assert is_same_answer(read, written, as_float=numbers == "float")
    if row.type == "metaAndAssetCtxs" and len(read[0].universe) != len(read[1]):
        with pytest.raises(AnswerInvalid, match="position"):
            answers.answer_rows(row, read, {})
        return
    result = answers.answer_rows(row, read, {})
    assert len(result) == len(row.tables)
    for table, of_table in zip(row.tables, result, strict=True):
        for item in of_table:
            for column in table_columns(table):
                value = item
                for name in column.path.split("."):
                    value = None if value is None else getattr(value, name)
                assert value is not None or column.missing


@given(data=st.data())
def test_states_of_all_dexes_have_dex_names(data):
    row, asked = OPERATIONS["batchClearinghouseStates"], {"dex": ALL_DEXES}
    written = data.draw(example_answer(row, asked))
    read = answers.decode(row, 200, {}, answers.encode(written), parameters=asked)
    assert is_same_answer(read, written)
    accounts, _, failed = answers.answer_rows(row, read, asked)
    assert [(account.user, account.dex) for account in accounts] == [
        (user, dex) for user, by_dex in written.successful_states for dex in by_dex
    ]
    assert [item.user for item in failed] == written.failed_wallets


def test_empty_answer_has_no_rows():
    for row in JSON:
        if get_origin(row.answer) is list:
            assert answers.answer_rows(row, answers.decode(row, 200, {}, b"[]"), {}) == ([],)
    limits = OPERATIONS["perpDexLimits"]
    assert answers.decode(limits, 200, {}, b"null") is None
    assert answers.answer_rows(limits, None, {}) == ([], [])


FILL = fill(1_756_684_800_000, 3, 2) | {"px": "100000.5"}


def read_fills(*fills):
    return answers.decode(OPERATIONS["userFills"], 200, {}, json.dumps(fills).encode())


def read_error(row, content, **options):
    with pytest.raises(AnswerInvalid) as caught:
        answers.decode(row, 200, {}, content, **options)
    assert caught.value.operation == row.type
    return caught.value


def test_invalid_answer_is_refused():
    contents = [b"", b"[", b"{}", b"null", b"7", b"\xff\xfe", b"[" * 100_000, b'[{"coin":']
    for content in contents:
        assert "userFills" in str(read_error(OPERATIONS["userFills"], content))
    error = read_error(OPERATIONS["userFills"], b"[" + b"x" * 200)
    assert error.value == b"[" + b"x" * 79
    assert "JSON" in str(error)


def test_unknown_field_warns_once_for_each_operation():
    forget_deviations()
    strange = json.dumps([FILL | {"liquidity": {"a": 1}}]).encode()
    for name in ("userFills", "userFillsByTime"):
        with pytest.warns(UnknownField, match=f"{name}: .* liquidity"):
            (read,) = answers.decode(OPERATIONS[name], 200, {}, strange)
        assert read.px == "100000.5"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answers.decode(OPERATIONS[name], 200, {}, strange)


def test_answer_type_depends_on_dex():
    batch = OPERATIONS["batchClearinghouseStates"]
    assert answers.answer_type(batch, {"dex": ALL_DEXES}) is batch.answer_by_dex is not None
    assert (
        answers.answer_type(batch, {"dex": "flx"}) is answers.answer_type(batch, {}) is batch.answer
    )
    assert answers.answer_type(OPERATIONS["meta"], {"dex": ALL_DEXES}) is OPERATIONS["meta"].answer


def test_invalid_value_keeps_rest_of_record():
    """Of a liquidation only the value that cannot be read is missing."""
    forget_deviations()
    liquidation = {"liquidatedUser": "0x00", "markPx": [1], "method": "market"}
    with pytest.warns(MissingField, match="markPx"):
        (read,) = read_fills(FILL | {"liquidation": liquidation})
    assert (read.liquidation.mark_px, read.liquidation.method) == (None, "market")
    (read,) = read_fills(FILL | {"liquidation": liquidation | {"markPx": 2.5}})
    assert (read.liquidation.mark_px, read.liquidation.method) == ("2.5", "market")


def test_encoders_keep_decimal_digits():
    assert answers.encode([Decimal("1.50"), None]) == b"[1.50,null]"
    assert answers.encode_lines([{"a": Decimal("0.1")}, 2]) == b'{"a":0.1}\n2\n'
    assert answers.encode_error("no") == b'{"error":"no"}'


def test_user_of_own_fills_is_unknown():
    """`userFills` has no user; `builderApprovedFillsByTime` has one."""
    forget_deviations()
    with pytest.warns(UnknownField, match="userFills: .*user"):
        read_fills(FILL | {"user": "0x00"})
    assert not hasattr(read_fills(FILL)[0], "user")
    row = OPERATIONS["builderApprovedFillsByTime"]
    (read,) = answers.decode(row, 200, {}, json.dumps([FILL | {"user": "0x00"}]).encode())
    assert read.user == "0x00"


def test_single_records_become_rows():
    spot = EXTRA_OPERATIONS["spotMeta"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingField)
        read = answers.decode(spot, 200, {}, b'{"tokens": [], "universe": null}')
    assert answers.answer_rows(spot, read, {}) == ([], [])
    plain = EXTRA_OPERATIONS["referral"]
    assert answers.decode(plain, 200, {}, b'{"a": [1, "x"]}') == {"a": [1, "x"]}
    auction = OPERATIONS["spotPairDeployAuctionStatus"]
    content = b'{"startTimeSeconds": 1, "durationSeconds": 2, "startGas": "1", "endGas": "2"}'
    content = content[:-1] + b', "currentGas": "3"}'
    read = answers.decode(auction, 200, {}, content)
    assert answers.answer_rows(auction, read, {}) == ([read],)
