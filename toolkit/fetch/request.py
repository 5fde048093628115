"""A request: one call of a fetch function, checked before anything is sent."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.client import Session, current_session
from toolkit.completeness.remarks import Remark, range_remarks
from toolkit.contract.kinds import Numbers
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation
from toolkit.contract.requests import check_request, request_body
from toolkit.fetch.registry import operation_of
from toolkit.frames import Extra
from toolkit.times import to_iso, to_ms

__all__ = [
    "Extra",
    "Numbers",
    "OnIncomplete",
    "Request",
    "check_one_frame",
    "prepare_request",
    "request_facts",
    "request_of",
    "request_remarks",
]

OnIncomplete = Literal["raise", "warn"]
"""What to do if rows are missing."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a fetch function, checked, with its session.

    Attributes
    ----------
    operation : Operation
        The operation.
    parameters : mapping
        Python name -> value, with times in milliseconds and every default filled in.
    max_rows : int or None
        The most rows to return.
    on_incomplete : {"raise", "warn"}
        What to do if rows are missing.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    session : Session
        The session that sends the request.
    asked_ms : int
        The present at the time of the call; 0 for an operation without times.
    is_aged : bool
        Whether the range was given as an age, such as ``"7d"``, counted back from `asked_ms`.
    extra : {"drop", "keep"}
        Whether unknown fields are left out or kept as columns.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    max_rows: int | None
    on_incomplete: OnIncomplete
    numbers: Numbers
    session: Session
    asked_ms: int
    is_aged: bool = False
    extra: Extra = "drop"


def prepare_request(
    operation: str | Operation,
    *,
    numbers: Numbers = "float",
    extra: Extra = "drop",
    session: Session | None = None,
    on_incomplete: OnIncomplete = "raise",
    **parameters: Any,
) -> Request:
    """Check a call and return it as a request. Nothing is sent.

    Parameters
    ----------
    operation : str or Operation
        The operation, by its ``type`` or the name of a view.
    numbers, extra, session, on_incomplete
        As in every fetch function.
    **parameters
        The operation's parameters in Python names, and `max_rows` of paged operations.

    Raises
    ------
    BadRequest
        If the service would refuse the request.
    NotConnected
        If there is no session.
    ValueError
        If `max_rows`, `numbers`, `extra` or `on_incomplete` is not allowed.
    """
    if isinstance(operation, str):
        operation = VIEWS.get(operation) or OPERATIONS[operation]
    max_rows = None if operation.latest else parameters.pop("max_rows", None)
    _check_choice("numbers", numbers, ("float", "exact", "text"))
    _check_choice("extra", extra, ("drop", "keep"))
    _check_choice("on_incomplete", on_incomplete, ("raise", "warn"))
    if max_rows is not None and (
        type(max_rows) is bool or int(max_rows) != max_rows or max_rows < 1
    ):
        raise ValueError(f"max_rows must be a whole number from 1, or None, not {max_rows!r}")
    session = current_session(session)
    time_names = [item.python for item in operation.parameters if item.kind == "time"]
    asked_ms = session.now_ms() if time_names else 0
    times = {name: parameters[name] for name in time_names if parameters.get(name) is not None}
    # An age gives another moment for another present; a date does not.
    is_aged = any(to_ms(time, now_ms=0) != to_ms(time, now_ms=1) for time in times.values())
    parameters |= {name: to_ms(time, now_ms=asked_ms) for name, time in times.items()}
    checked = check_request(operation, request_body(operation, parameters))
    return Request(
        operation, checked, max_rows, on_incomplete, numbers, session, asked_ms, is_aged, extra
    )


def request_of(
    fetch: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
) -> Request:
    """Return ``fetch(*arguments, **named)`` as a request. Nothing is sent."""
    operation = operation_of(fetch)
    bound = inspect.signature(fetch).bind(*arguments, **named)
    bound.apply_defaults()
    return prepare_request(operation, **bound.arguments)


def request_remarks(request: Request, *, has_start: bool = True) -> list[Remark]:
    """Return remarks about data that the service cannot have for the range of a request.

    Parameters
    ----------
    request : Request
        The request. Nothing is sent.
    has_start : bool, default True
        Whether the caller chose where the range begins. If not, gaps are noted without a warning.
    """
    return range_remarks(
        request.operation,
        request.parameters,
        request.asked_ms,
        simulated=request.session.simulated,
        has_start=has_start,
    )


def request_facts(request: Request) -> dict[str, Any]:
    """Return what was requested, from which source and when, as plain values for provenance."""
    operation, session = request.operation, request.session
    return {
        "operation": operation.type,
        **({"view": operation.view} if operation.view else {}),
        "parameters": {k: v for k, v in request.parameters.items() if v is not None},
        "numbers": request.numbers,
        **({"extra": request.extra} if request.extra != "drop" else {}),
        "source": session.label,
        "simulated": session.simulated,
        "asked_at": to_iso(request.asked_ms or session.now_ms()),
    }


def check_one_frame(operation: Operation) -> None:
    """Raise TypeError if the answer of an operation becomes several frames."""
    if len(operation.tables) > 1:
        names = ", ".join(table.name for table in operation.tables)
        raise TypeError(
            f"{operation.function} returns several frames ({names}): call it directly, for each "
            "subject"
        )


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
