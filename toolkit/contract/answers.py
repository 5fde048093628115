"""Answers of the service: `encode` writes them, `decode` reads them.

`decode` is the only way from a response to records: it checks the status, decompresses a binary
snapshot, and decodes JSON directly into records. `answer_rows` returns the records that are rows.

Readers are liberal where writers are strict. The decoder of an operation accepts exactly the fields
of the specification, which is fast. If it refuses an answer, the deviations of the answer are found
once, and from then on the operation has a decoder that accepts them.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

import msgspec

from toolkit.contract import snapshots
from toolkit.contract.columns import table_columns
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.field_deviations import (
    KNOWN_DEVIATIONS,
    LIBERAL,
    NO_DEVIATIONS,
    AcceptedDeviations,
    find_deviations,
    learn_deviations,
)
from toolkit.contract.fields import RecordField, is_record, record_fields
from toolkit.contract.operations import Operation
from toolkit.contract.records import Record
from toolkit.contract.response_errors import check_no_web_page, response_error
from toolkit.contract.rows import ROW_FUNCTIONS, Rows
from toolkit.contract.value_kinds import Numbers
from toolkit.errors import AnswerInvalid

_PLACE = re.compile(r" - at `\$(?P<path>.*)`$")
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<name>.*?)`")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)")

# Exact and text numbers are both read as text; JSON numbers become decimals, which lose nothing.
_NUMBER_TYPES: Final[dict[str, dict[Any, Any]]] = {
    "float": {str: float, float: float},
    "exact": {str: str, float: Decimal},
    "text": {str: str, float: Decimal},
}

# Invalid UTF-8 is no DecodeError of msgspec.
_UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)

_encoder: Final = msgspec.json.Encoder(decimal_format="number")

encode: Callable[[Any], bytes] = _encoder.encode
"""Write an answer as JSON: a record, a list of records, or None."""

encode_lines: Callable[[Any], bytes] = _encoder.encode_lines
"""Write each record of a list as `encode` does, with a line break after it."""


def encode_error(message: str) -> bytes:
    """Return the body of an error answer.

    >>> encode_error("Invalid API key")
    b'{"error":"Invalid API key"}'
    """
    return encode({"error": message})


def decode(
    operation: Operation,
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    *,
    numbers: Numbers = "text",
    parameters: Mapping[str, Any] | None = None,
) -> Any:
    """Return the decoded answer of a response.

    - ``operation``: the operation of the request
    - ``status``: HTTP status
    - ``headers``: HTTP headers, names in lower case
    - ``content``: the body
    - ``numbers`` ({"float", "exact", "text"}): the form of numbers
    - ``parameters``: the parameters of the request, with Python names; the type of some answers
      depends on them

    Returns: records, or lists of records, as the operation's `answer` says; columns if the
    operation is binary. Values that were absent or null are None.

    Raise ServiceError if the status is an error. Raise AnswerInvalid if the answer breaks the
    contract.
    """
    if status != 200:
        raise response_error(operation, status, headers, content)
    if operation.binary:
        check_no_web_page(operation, headers, content)
        return snapshots.decode_snapshots(operation, headers, content)
    wanted = answer_type(operation, parameters or {})
    omits = operation.tables[0].omits if operation.tables else ()
    answer_key = operation.type, wanted, omits
    known = KNOWN_DEVIATIONS.get(answer_key, NO_DEVIATIONS)
    if not known.unknown or _is_readable_text(content):
        try:
            return _decoder(wanted, numbers, _without_pairs(known), omits).decode(content)
        except _UNREADABLE:
            pass  # the answer has further deviations, or it is invalid
    check_no_web_page(operation, headers, content)
    try:
        answer = _decoder(wanted, numbers, LIBERAL, omits).decode(content)
        # This also checks the unknown fields, so that others can decode what was accepted here.
        found = find_deviations(
            wanted, json.loads(content), functools.partial(_find_unreadable, numbers), omits
        )
    except (*_UNREADABLE, ValueError) as error:
        raise _invalid_answer(operation, error, content) from None
    known = learn_deviations(answer_key, operation.type, found)
    try:
        return _decoder(wanted, numbers, known, omits).decode(content)
    except _UNREADABLE:
        return answer


def answer_type(operation: Operation, parameters: Mapping[str, Any]) -> Any:
    """Return the Python type of the answer to a request.

    - ``operation``: the operation of the request
    - ``parameters``: the parameters of the request, with Python names
    """
    if operation.answer_by_dex is not None and parameters.get("dex") == ALL_DEXES:
        return operation.answer_by_dex
    return operation.answer


class AnswerTables(tuple[Sequence[Any], ...]):
    """The rows of each table of a nested answer.

    - ``answer``: the decoded answer, which has unknown fields that belong to no row
    """

    answer: Any


def answer_rows(operation: Operation, answer: Any, parameters: Mapping[str, Any]) -> Rows:
    """Return the rows of an answer: one sequence for each table of the operation.

    The rows are records, or objects with the same attributes.
    """
    if make_rows := ROW_FUNCTIONS.get(operation.view or operation.type):
        try:
            made_rows = make_rows(answer, parameters)
            tables = AnswerTables(() if rows is None else rows for rows in made_rows)
        except AnswerInvalid as error:
            error.operation = error.operation or operation.type
            raise
        tables.answer = answer
        return tables
    return (answer if isinstance(answer, list) else [answer],)


def _find_unreadable(numbers: Numbers, field: RecordField, value: Any) -> list[Any]:
    """Return what cannot be read of a field: of a list of pairs the bad pairs, else the value."""
    reader: Any = _readable_type(_value_type(field, numbers, LIBERAL))
    if (pair := _pair_type(reader.wanted)) is not None and isinstance(value, list):
        return [item for item in value if _convert_if_readable(_readable_type(pair), item) is None]
    return [] if _convert_if_readable(reader, value) is not None else [value]


def _is_readable_text(content: bytes) -> bool:
    """Return whether unknown fields can be skipped without a look at their values.

    Other readers cannot decode text that is not UTF-8, and whole numbers of more than 4,300 digits.
    """
    step = 2_150  # a longer number covers a whole block of this length
    if any(content[at : at + step].isdigit() for at in range(0, len(content), step)):
        return False
    if content.isascii():
        return True
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@functools.cache
def _decoder(
    wanted: Any, numbers: Numbers, deviations: AcceptedDeviations, omits: tuple[str, ...]
) -> "msgspec.json.Decoder[Any]":
    # With strict=False decimal text becomes floats directly, and 1.0 a whole number.
    return msgspec.json.Decoder(
        decoder_type(wanted, numbers, deviations, omits),
        strict=False,
        dec_hook=_convert_if_readable,
    )


def decoder_type(
    annotation: Any, numbers: Numbers, deviations: AcceptedDeviations, omits: tuple[str, ...] = ()
) -> Any:
    """Return the type that a decoder uses for an answer.

    Its structs accept null and absence for every value that may be missing. The garbage collector
    does not track them: an answer has no cycles, and tracking costs as much time as decoding.

    - ``annotation``: the type of the answer, made of records, lists, tuples, dicts and unions
    - ``numbers`` ({"float", "exact", "text"}): the form of numbers
    - ``deviations``: expected fields that may be missing, and unknown fields
    - ``omits``: fields of the outermost record that the operation does not have
    """
    if is_record(annotation):
        return _decoder_struct(annotation, numbers, deviations, omits)
    parts = [decoder_type(part, numbers, deviations, omits) for part in get_args(annotation)]
    origin = get_origin(annotation)
    if origin in (tuple, dict) and deviations.allows_missing(None, ""):
        # The first part is a key: it names what the others are about.
        parts = [parts[0], *(part | None for part in parts[1:])]
    if origin in (list, dict, tuple):
        return origin[tuple(parts)]
    return functools.reduce(lambda a, b: a | b, parts) if parts else annotation


@functools.cache
def _decoder_struct(
    record: type[Record], numbers: Numbers, deviations: AcceptedDeviations, omits: tuple[str, ...]
) -> type[msgspec.Struct]:
    fields = [field for field in record_fields(record) if field.name not in omits]
    extras = deviations.unknown_fields(record)
    return msgspec.defstruct(
        record.__name__,
        [
            *(_struct_field(record, field, numbers, deviations) for field in fields),
            *((name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in extras),
        ],
        rename={field.name: field.wire for field in fields} | extras,
        namespace={"__extras__": extras},
        kw_only=True,
        gc=False,
        forbid_unknown_fields=not deviations.is_open,
    )


def _struct_field(
    record: type[Record], field: RecordField, numbers: Numbers, deviations: AcceptedDeviations
) -> tuple[str, Any] | tuple[str, Any, Any]:
    value_type = _value_type(field, numbers, deviations)
    if field.may_be_unreadable and deviations.allows_unreadable(record, field.wire):
        value_type = _readable_type(value_type)
    if field.note.key:
        return field.name, value_type
    if field.has_default:
        return field.name, value_type | None, field.default
    if field.may_be_absent or deviations.allows_missing(record, field.wire):
        return field.name, value_type | None, None
    return (field.name, value_type | None) if field.null else (field.name, value_type)


def _value_type(field: RecordField, numbers: Numbers, deviations: AcceptedDeviations) -> Any:
    if field.note.kind.family == "number":
        return _NUMBER_TYPES[numbers].get(field.type, field.type)
    if field.has_records:
        return decoder_type(field.type, numbers, deviations)
    return Any if field.note.kind.family == "nested" else field.type


class _AnyValue(type):
    """Metaclass: every value is an instance of its classes, so msgspec passes any value on."""

    wanted: Any

    def __instancecheck__(cls, value: object) -> bool:
        return True


@functools.cache
def _readable_type(wanted: Any) -> type:
    """Return a class for `_convert_if_readable`: values of a type, and None for all others."""
    return _AnyValue("ReadableValue", (), {"wanted": wanted})


def _pair_type(wanted: Any) -> Any:
    """Return the type of the pairs of a list; None if the type is no list of pairs."""
    parts = get_args(wanted) if get_origin(wanted) is list else ()
    return parts[0] if parts and get_origin(parts[0]) is tuple else None


@functools.cache
def _without_pairs(known: AcceptedDeviations) -> AcceptedDeviations:
    """Return known deviations without unreadable lists of pairs, which may hide new fields.

    Each answer that has unreadable pairs is searched again: a pair may be unreadable only because
    of a new field, which then becomes known.
    """
    pairs = {
        (record, field.wire)
        for record, wire in known.unreadable
        if record is not None
        for field in record_fields(record)
        if field.wire == wire and _pair_type(_value_type(field, "text", LIBERAL)) is not None
    }
    return replace(known, unreadable=known.unreadable - pairs) if pairs else known


def _convert_if_readable(reader: Any, value: Any) -> Any:
    """Return a decoded value as the type of its field, or None if it cannot be read.

    Of a list of pairs, return those that can be read: each belongs to its own key.
    """
    if reader.wanted is str and type(value) in (int, float):
        return str(value)  # decimal text in another form
    if (pair := _pair_type(reader.wanted)) is not None and isinstance(value, list):
        pairs = (_convert_if_readable(_readable_type(pair), item) for item in value)
        return [item for item in pairs if item is not None]
    try:
        # Unknown fields are kept as JSON text, which `msgspec.convert` cannot make.
        return msgspec.json.decode(
            encode(value), type=reader.wanted, strict=False, dec_hook=_convert_if_readable
        )
    except (msgspec.DecodeError, OverflowError, RecursionError):
        return None


def _invalid_answer(operation: Operation, error: Exception, content: bytes) -> AnswerInvalid:
    """Return an error that names the column, the row and the value which break the contract."""
    place = _PLACE.search(str(error))
    if place is None:
        return AnswerInvalid(
            f"the answer cannot be read: {error}", operation=operation.type, value=content[:80]
        )
    steps: list[int | str] = [
        int(index) if index.isdigit() else name for index, name in _STEP.findall(place["path"])
    ]
    wire_names = [step for step in steps if isinstance(step, str)]
    if missing := _MISSING_FIELD.match(str(error)):
        wire_names.append(missing["name"])
    wire = ".".join(wire_names)
    columns = {column.wire: column for table in operation.tables for column in table_columns(table)}
    return AnswerInvalid(
        str(error)[: place.start()],
        operation=operation.type,
        column=columns[wire].name if wire in columns else wire,
        row=next((step for step in steps if isinstance(step, int)), None),
        value=_value_at(content, steps),
    )


def _value_at(content: bytes, steps: list[int | str]) -> Any:
    try:
        value = json.loads(content)
        for step in steps:
            value = value[step]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return value
