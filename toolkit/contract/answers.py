"""Answers, from both sides: `encode` answers, `decode` is answered.

`decode` is the one place where a status, headers and bytes become records or an error.
"""

import functools
import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from toolkit.contract import snapshots
from toolkit.contract.answer_types import Numbers, decoder_type
from toolkit.contract.columns import table_columns
from toolkit.contract.deviations import (
    LIBERAL,
    Deviations,
    find_deviations,
    known_deviations,
    learn_deviations,
)
from toolkit.contract.gateway import GATEWAY_DOWN, gateway_error, is_web_page, sender
from toolkit.contract.operations import Operation
from toolkit.contract.unknown import (
    MissingField,
    UnknownField,
    report_missing,
    report_unknown,
)
from toolkit.errors import (
    AnswerInvalid,
    BadRequest,
    InvalidKey,
    NotPermitted,
    NotReady,
    RateLimited,
    ServiceDown,
    ServiceError,
)

__all__ = [
    "MissingField",
    "UnknownField",
    "check_no_web_page",
    "decode",
    "encode",
    "encode_error",
    "encode_lines",
    "response_error",
]

_ERRORS: Final[dict[int, type[ServiceError]]] = {
    400: BadRequest,
    401: InvalidKey,
    403: NotPermitted,
    404: NotReady,
    429: RateLimited,
    500: ServiceDown,
    502: ServiceDown,
    503: ServiceDown,
    504: ServiceDown,
}
_PLACE = re.compile(r" - at `\$(?P<path>.*)`$")
_LACKING = re.compile(r"Object missing required field `(?P<name>.*?)`")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|\.([^.\[]+)")

_encoder: Final = msgspec.json.Encoder(decimal_format="number")

encode: Callable[[Any], bytes] = _encoder.encode
"""Write an answer as JSON: a record, or a list of them, or None."""

encode_lines: Callable[[Any], bytes] = _encoder.encode_lines
"""Write each record of a list as `encode` does, with a line break behind it."""


def encode_error(message: str) -> bytes:
    """Write the body of an error answer.

    Examples
    --------
    >>> encode_error("Invalid API key")
    b'{"error":"Invalid API key"}'
    """
    return encode({"error": message})


def response_error(
    operation: Operation, status: int, headers: Mapping[str, str], content: bytes
) -> ServiceError:
    """Give the error that an answer with an error status stands for."""
    facts: dict[str, Any] = {"status": status, "operation": operation.type}
    kind = ServiceDown if status in GATEWAY_DOWN else _ERRORS.get(status, ServiceError)
    gateway = gateway_error(headers, content, status)
    if gateway is not None and gateway.is_rate_limit:
        kind = RateLimited
    if kind is RateLimited and operation.limit is not None:
        calls, minutes = operation.limit.calls, operation.limit.seconds // 60
        facts["hint"] = (
            f"It may be asked {calls} times in {minutes} minutes: wait, or give the session "
            "points_per_minute, with which it waits by itself"
        )
    if gateway is not None and gateway.hint is not None:
        facts["hint"] = gateway.hint
        kind = ServiceError if status == 404 else kind  # not a snapshot that is to come
    elif status == 404 and operation.topic != "snapshots":
        kind, facts["hint"] = ServiceError, "Check the base URL: nothing answers /info there"
    if kind is RateLimited:
        facts["retry_after"] = _seconds(headers.get("retry-after", ""))
    return kind(_message(content) if gateway is None else gateway.message, **facts)


def check_no_web_page(operation: Operation, headers: Mapping[str, str], content: bytes) -> None:
    """Raise AnswerInvalid if a good answer is a web page: the service did not send it."""
    if is_web_page(content):
        who = sender(headers)
        raise AnswerInvalid(
            f"the answer is a web page{who and f' (from {who})'}, not an answer of the service. "
            "Check the base URL, and whether a proxy or a login page stands in between",
            operation=operation.type,
        )


def decode(
    operation: Operation,
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    *,
    numbers: Numbers = "text",
    parameters: Mapping[str, Any] | None = None,
) -> Any:
    """Read an answer.

    Parameters
    ----------
    operation : Operation
        What was asked.
    status : int
        HTTP status.
    headers : mapping
        HTTP headers, names in lower case.
    content : bytes
        The body.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    parameters : mapping, optional
        What was asked for, in Python names; the shape of some answers depends on it.

    Returns
    -------
    object
        Records, or lists of them, as the operation's `answer` says. Values that were absent
        or null are None.

    Raises
    ------
    ServiceError
        If the status is an error.
    AnswerInvalid
        If the answer breaks the contract.
    """
    if status != 200:
        raise response_error(operation, status, headers, content)
    check_no_web_page(operation, headers, content)
    if operation.binary:
        return snapshots.decode(operation, headers, content)
    annotation = operation.answer_type(parameters or {})
    omits = operation.tables[0].omits if operation.tables else ()
    known = known_deviations((operation.type, annotation, omits))
    if not known.unknown or _can_be_read_again(content):
        try:
            return _decoder(annotation, numbers, known, omits).decode(content)
        except (msgspec.DecodeError, RecursionError):
            pass
    return _decode_deviating(operation, annotation, numbers, content)


def _decode_deviating(
    operation: Operation, annotation: Any, numbers: Numbers, content: bytes
) -> Any:
    """Read an answer that lacks fields or has unknown ones, and remember which."""
    omits = operation.tables[0].omits if operation.tables else ()
    try:
        answer = _decoder(annotation, numbers, LIBERAL, omits).decode(content)
        # Unknown fields are read too: what is let in here, whoever kept it can read again.
        found = find_deviations(annotation, json.loads(content), omits)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise _invalid(operation, error, content) from None
    before = known_deviations((operation.type, annotation, omits))
    known = learn_deviations((operation.type, annotation, omits), found)
    for one in sorted(found, key=operator.attrgetter("path")):
        if one.is_missing:
            report_missing(operation.type, one.path)
        elif (one.record, one.wire) in known.unknown:
            report_unknown(operation.type, one.path)
    if known.is_open and not before.is_open:
        words = "further ones, too many or with names that no column has"
        report_unknown(operation.type, words, has_column=False)
    try:
        return _decoder(annotation, numbers, known, omits).decode(content)
    except (msgspec.DecodeError, RecursionError):
        return answer


def _can_be_read_again(content: bytes) -> bool:
    """Return whether fields that are not known may be passed over unread.

    Text that is no UTF-8, and whole numbers of more than 4,300 digits, could not be read by
    others: such an answer has to be looked at.
    """
    step = 2_150  # a longer number holds a whole block of this length
    if any(content[at : at + step].isdigit() for at in range(0, len(content), step)):
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


@functools.cache
def _decoder(
    annotation: Any, numbers: Numbers, deviations: Deviations, omits: tuple[str, ...]
) -> "msgspec.json.Decoder[Any]":
    # strict=False lets decimal text become floats directly, and 1.0 a whole number.
    return msgspec.json.Decoder(decoder_type(annotation, numbers, deviations, omits), strict=False)


def _invalid(operation: Operation, error: Exception, content: bytes) -> AnswerInvalid:
    place = _PLACE.search(str(error))
    if place is None:
        return AnswerInvalid(
            f"the answer cannot be read: {error}", operation=operation.type, value=content[:80]
        )
    steps = [
        int(index) if index.isdigit() else name for index, name in _STEP.findall(place["path"])
    ]
    row = next((step for step in steps if isinstance(step, int)), None)
    lacking = _LACKING.match(str(error))
    names_in_path = [step for step in steps if isinstance(step, str)]
    wire = ".".join([*names_in_path, *([lacking["name"]] if lacking else [])])
    names = {one.wire: one.name for table in operation.tables for one in table_columns(table)}
    return AnswerInvalid(
        str(error)[: place.start()],
        operation=operation.type,
        column=names.get(wire, wire),
        row=row,
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


def _message(content: bytes) -> str:
    try:
        message = json.loads(content)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "the answer has no error message"
    return message if isinstance(message, str) else json.dumps(message)


def _seconds(text: str) -> float | None:
    """Read a Retry-After in seconds; one that is no number, or a date, says nothing."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
