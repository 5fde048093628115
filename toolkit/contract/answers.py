"""Answers of the service: `encode` writes them, `decode` reads them.

`decode` is the only way from a response to records: it checks the status, decompresses a binary
snapshot, and decodes JSON directly into records. `answer_rows` returns the records that are rows.

Readers are liberal where writers are strict. The decoder of an operation accepts exactly the fields
of the specification, which is fast. If it refuses an answer, the deviations of the answer are found
once, and from then on the operation has a decoder that accepts them.
"""

import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, get_args, get_origin

import msgspec

from toolkit.contract import field_deviations
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.field_deviations import KNOWN_DEVIATIONS, LIBERAL, Accepted, Deviation
from toolkit.contract.fields import Field, is_record, record_fields, table_columns
from toolkit.contract.operations import Headers, Operation, Parameters
from toolkit.contract.records import Record
from toolkit.contract.response_errors import check_no_web_page, response_error
from toolkit.contract.rows import ROWS, ComposedRows, nest_slices
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
    headers: Headers,
    content: bytes,
    *,
    numbers: Numbers = "text",
    parameters: Parameters | None = None,
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
        # pyarrow and msgpack are imported only if there is a snapshot to read.
        from toolkit.contract.snapshots import decode_snapshots

        check_no_web_page(operation, headers, content)
        return decode_snapshots(operation, headers, content)
    wanted = answer_type(operation, parameters or {})
    omits = operation.tables[0].omits if operation.tables else ()
    answer_key = operation.type, wanted, omits
    accepted = KNOWN_DEVIATIONS.get(answer_key, Accepted())
    try:
        if accepted.unknown:
            content.decode()  # the decoder does not read the values of unknown fields
        return _decoder(wanted, numbers, accepted, omits).decode(content)
    except _UNREADABLE as error:
        refusal: Exception = error  # the answer has further deviations, or it is invalid
    check_no_web_page(operation, headers, content)
    try:
        value = json.loads(content, parse_float=Decimal)
        if operation.type == "userTwapSliceFills":  # another known form of its rows
            value = nest_slices(value)
            content = encode(value)
        found: dict[Any, Deviation] = {}
        for deviation in _compare(wanted, value, numbers, "", omits):
            found.setdefault(deviation[:3], deviation)
        if any(kind in ("unreadable", "rewritten") for kind, *_ in found):
            content = encode(value)
        accepted = accepted.extend(found.values())
        answer = _decoder(wanted, numbers, accepted, omits).decode(content)
    except _UNREADABLE as error:
        raise _invalid_answer(operation, error, content) from None
    except ValueError as error:
        is_json = isinstance(refusal, msgspec.ValidationError)  # but not for Python
        raise _invalid_answer(operation, error if is_json else refusal, content) from None
    KNOWN_DEVIATIONS[answer_key] = accepted
    field_deviations.report_deviations(operation.type, found.values(), accepted)
    return answer


def answer_type(operation: Operation, parameters: Parameters) -> Any:
    """Return the Python type of the answer to a request.

    - ``operation``: the operation of the request
    - ``parameters``: the parameters of the request, with Python names
    """
    if operation.answer_by_dex is not None and parameters.get("dex") == ALL_DEXES:
        return operation.answer_by_dex
    return operation.answer


def answer_rows(
    operation: Operation, answer: Any, parameters: Parameters
) -> tuple[Sequence[Any], ...]:
    """Return the rows of an answer: one sequence for each table of the operation.

    The rows are records, or objects with the same attributes.
    """
    make = ROWS.get(operation.view or operation.type)
    if make is None:
        return (answer if isinstance(answer, list) else [answer],)
    try:
        made = make(answer, parameters)
        tables = made if isinstance(made, tuple) else (made,)
        return tuple(ComposedRows(t) if isinstance(t, Iterator) else t or [] for t in tables)
    except AnswerInvalid as error:
        error.operation = error.operation or operation.type
        raise


def _compare(
    annotation: Any, value: Any, numbers: Numbers, path: str = "", omits: tuple[str, ...] = ()
) -> Iterator[Deviation]:
    """Compare a JSON value with its annotated type, and yield each deviation.

    Values of fields beyond the specification that cannot be read are removed from `value`.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if is_record(annotation) and isinstance(value, dict):
        yield from _compare_fields(annotation, value, numbers, path, omits)
    elif origin in (list, tuple, dict) and isinstance(value, list | dict):
        items = list(value.values()) if isinstance(value, dict) else value
        if origin is not list and None in items[origin is tuple :]:
            yield Deviation("missing", (None, ""), path.rstrip("."))
        kinds = parts if origin is tuple else parts[-1:] * len(items)
        for part, item in zip(kinds, items, strict=False):
            yield from _compare(part, item, numbers, path, omits)
    else:
        for part in parts:
            yield from _compare(part, value, numbers, path, omits)


def _compare_fields(
    record: type[Record], value: dict[str, Any], numbers: Numbers, path: str, omits: tuple[str, ...]
) -> Iterator[Deviation]:
    fields = {field.wire: field for field in record_fields(record) if field.path not in omits}
    for name, each in fields.items():
        is_expected = not (each.key or each.has_default or each.may_be_absent)
        if is_expected and (name not in value or (value[name] is None and not each.null)):
            yield Deviation("missing", (record, name), path + name, bool(each.beyond))
    for name, item in value.items():
        place, field = (record, name), fields.get(name)
        if field is None:
            yield Deviation("unknown", place, path + name)
        if field is None or item is None:
            continue
        wanted = _value_type(field, numbers, LIBERAL)
        nested = _compare(field.type, item, numbers, f"{path}{name}.") if field.has_records else ()
        found = list(nested)
        is_number = field.kind.family == "number" or field.may_be_unreadable
        if is_number and wanted is str and type(item) in (int, Decimal):
            found.append(Deviation("rewritten", place, path + name))
            value[name] = str(item)
        if field.may_be_unreadable:
            text = encode(value[name])
            try:
                msgspec.json.decode(text, type=wanted, strict=False)
            except (*_UNREADABLE, OverflowError):
                plain = msgspec.json.decode(text)
                found = [Deviation("unreadable", place, path + name, value=plain)]
                value[name] = None
        yield from found


@functools.cache
def _decoder(
    wanted: Any, numbers: Numbers, accepted: Accepted, omits: tuple[str, ...]
) -> "msgspec.json.Decoder[Any]":
    # With strict=False decimal text becomes floats directly, and 1.0 a whole number.
    return msgspec.json.Decoder(decoder_type(wanted, numbers, accepted, omits), strict=False)


def decoder_type(
    annotation: Any, numbers: Numbers, accepted: Accepted, omits: tuple[str, ...] = ()
) -> Any:
    """Return the type that a decoder uses for an answer.

    Its structs accept null and absence for every value that may be missing. The garbage collector
    does not track them: an answer has no cycles, and tracking costs as much time as decoding.

    - ``annotation``: the type of the answer, made of records, lists, tuples, dicts and unions
    - ``numbers`` ({"float", "exact", "text"}): the form of numbers
    - ``accepted``: expected fields that may be missing, and unknown fields
    - ``omits``: fields of the outermost record that the operation does not have
    """
    if is_record(annotation):
        return _decoder_struct(annotation, numbers, accepted, omits)
    parts = [decoder_type(part, numbers, accepted, omits) for part in get_args(annotation)]
    origin = get_origin(annotation)
    if origin in (tuple, dict) and accepted.allows_missing(None, ""):
        # The first part is a key: it names what the others are about.
        parts = [parts[0], *(part | None for part in parts[1:])]
    if origin in (list, dict, tuple):
        return origin[tuple(parts)]
    return functools.reduce(lambda a, b: a | b, parts) if parts else annotation


@functools.cache
def _decoder_struct(
    record: type[Record], numbers: Numbers, accepted: Accepted, omits: tuple[str, ...]
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for field in record_fields(record):
        value_type = _value_type(field, numbers, accepted)
        may_lack = field.may_be_absent or accepted.allows_missing(record, field.wire)
        if field.path in omits:
            continue
        if field.key:
            fields.append((field.path, value_type))
        elif field.has_default or may_lack:
            fields.append((field.path, value_type | None, field.default))
        else:
            fields.append((field.path, value_type | None if field.null else value_type))
    places = enumerate(accepted.unknown)
    extras = {f"extra_{number}": wire for number, (owner, wire) in places if owner is record}
    return msgspec.defstruct(
        record.__name__,
        [*fields, *((name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in extras)],
        rename={field.path: field.wire for field in record_fields(record)} | extras,
        namespace={"__extras__": extras},
        kw_only=True,
        gc=False,
        forbid_unknown_fields=not accepted.is_open,
    )


def _value_type(field: Field, numbers: Numbers, accepted: Accepted) -> Any:
    if field.kind.family == "number":
        return _NUMBER_TYPES[numbers].get(field.type, field.type)
    if field.has_records:
        return decoder_type(field.type, numbers, accepted)
    return Any if field.kind.family == "nested" else field.type


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
    value = None
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        value = functools.reduce(lambda value, step: value[step], steps, json.loads(content))
    return AnswerInvalid(
        str(error)[: place.start()],
        operation=operation.type,
        column=columns[wire].name if wire in columns else wire,
        row=next((step for step in steps if isinstance(step, int)), None),
        value=value,
    )
