"""Requests, from both sides: `request_body` asks, `check_request` is asked.

For every operation ``check(operation, body(operation, p)) == p``, where `p` has the Python
names and every default filled in.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from toolkit.contract.dexes import ALL_DEXES, native_form
from toolkit.contract.operations import Operation, Parameter
from toolkit.errors import BadRequest

__all__ = [
    "AMOUNTS",
    "INTERVALS",
    "check_request",
    "make_cursor",
    "parse_cursor",
    "request_body",
    "wire_value",
]

INTERVALS: Final = (
    *("1m", "3m", "5m", "15m", "30m"),
    *("1h", "2h", "4h", "8h", "12h"),
    *("1d", "3d", "1w", "1M"),
)
"""The lengths of candles."""

AMOUNTS: Final = (1_000, 5_000, 10_000, 30_000, 50_000, 100_000, 250_000, 500_000, 1_000_000)
"""The sizes, in USD, that `slippageHistory` has samples for."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_CLOID = re.compile(r"0x[0-9a-fA-F]{32}")
_VENUE = re.compile(r"[A-Za-z]{2,4}")
_WHOLE_LIMIT = 2**53


def request_body(operation: Operation, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Write the request body of an operation.

    Parameters
    ----------
    operation : Operation
        What to ask.
    parameters : mapping
        Python name -> value; None stands for absent.

    Returns
    -------
    dict
        The JSON object to send, ``type`` first.

    Raises
    ------
    BadRequest
        If the service would refuse it. Nothing has been sent, so its status is None.
    TypeError
        If a name is not a parameter of the operation.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> request_body(get_operation("meta"), {"dex": "flx"})
    {'type': 'meta', 'dex': 'flx'}
    """
    names = {one.python: one for one in operation.parameters}
    if unknown := parameters.keys() - names.keys():
        wrong = ", ".join(sorted(unknown))
        raise TypeError(f"{operation.type} takes {', '.join(names) or 'nothing'}; not {wrong}")
    request: dict[str, Any] = {"type": operation.type}
    for one in operation.parameters:
        if (value := parameters.get(one.python)) is not None:
            holder = request.setdefault(one.within, {}) if one.within else request
            holder[one.name] = wire_value(one, value)
    check_request(operation, request)
    return request


def check_request(operation: Operation, request: Mapping[str, Any]) -> dict[str, Any]:
    """Read the request body of an operation, as the service does.

    Fields that the operation does not have are passed over.

    Returns
    -------
    dict
        Python name -> value, with every default filled in; None where there is none.

    Raises
    ------
    BadRequest
        With the service's words for what is wrong.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> check_request(get_operation("meta"), {"type": "meta"})
    {'dex': ''}
    """
    checked = {}
    for one in operation.parameters:
        value = _holder(operation, request, one).get(one.name)
        replaced = bool(one.unless) and request.get(one.unless) is not None
        if value is None or replaced:
            if one.required and not replaced:
                raise _refuse(operation, _missing(one), _argument(one))
            checked[one.python] = one.default
        else:
            checked[one.python] = _CHECKS[one.kind](operation, one, value)
    if check_combination := _COMBINATIONS.get(operation.type):
        check_combination(operation, checked)
    return checked


def parse_cursor(operation: Operation, cursor: str) -> tuple[int | str, ...]:
    """Split a cursor into the key that it names.

    Raises
    ------
    BadRequest
        If it does not have the form of the operation's cursor.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> parse_cursor(get_operation("userFillsByTime"), "1756684800000_3")
    (1756684800000, 3)
    """
    parts = cursor.split("_", maxsplit=len(operation.key) - 1)
    wrong = _refuse(operation, f"Invalid cursor: {cursor}")
    if len(parts) != len(operation.key) or not all(parts):
        raise wrong
    # The parts are whole numbers, but for the user and coin of a funding cursor.
    whole = 2 if len(parts) == 2 else 1
    if not all(part.isascii() and part.isdigit() and len(part) < 17 for part in parts[:whole]):
        raise wrong
    if whole == 1 and not _ADDRESS.fullmatch(parts[1]):
        raise wrong
    return tuple(int(part) if i < whole else part for i, part in enumerate(parts))


def make_cursor(key: tuple[int | str, ...]) -> str:
    """Write the cursor that names a key.

    Examples
    --------
    >>> make_cursor((1756684800000, 3))
    '1756684800000_3'
    """
    return "_".join(map(str, key))


def _holder(operation: Operation, request: Mapping[str, Any], one: Parameter) -> Mapping[str, Any]:
    """Return the object that holds a parameter: the request, or one inside it."""
    if not one.within:
        return request
    held = request.get(one.within)
    if held is not None and not isinstance(held, Mapping):
        raise _refuse(operation, f"{one.within} must be an object")
    return held or {}


def wire_value(parameter: Parameter, value: Any) -> Any:
    """Return a parameter's value as it travels, so that one question has one form.

    One value is a list of one where a list is expected; addresses are in lower case; the native
    dex has the name that it is known by there.

    Examples
    --------
    >>> from toolkit.contract.operations import get_operation
    >>> wire_value(get_operation("perpTwapSnapshots").by_wire["market_names"], "main:BTC")
    ['BTC']
    """
    if parameter.kind in ("addresses", "texts"):
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, Iterable) or isinstance(value, Mapping):
            return value  # no list at all: `check` refuses it
        return [_plain(parameter, item) for item in value]
    return _plain(parameter, value)


def _plain(parameter: Parameter, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if parameter.kind in ("address", "addresses"):
        return value.lower()
    return native_form(parameter.native, value)


def _missing(one: Parameter) -> str:
    detail = f" (or {one.unless})" if one.unless else ""
    if one.kind == "usd":
        detail = " (positive USD notional)"
    return f"{one.name} parameter is required{detail}"


def _refuse(operation: Operation, message: str, hint: str = "") -> BadRequest:
    """Return an error in the service's words; the hint, for those who ask from here, stays here.

    It has no status: only an answer has one, and the service gives 400 to its answer.
    """
    error = BadRequest(message, operation=operation.type, hint=hint)
    error.status = None
    return error


def _argument(one: Parameter) -> str:
    return "" if one.name == one.python else f"{one.name} is the argument {one.python} here"


def _address(operation: Operation, _: Parameter, value: Any) -> str:
    if isinstance(value, str) and _ADDRESS.fullmatch(value):
        return value.lower()
    hint = "An address is 0x and 40 hex digits"
    if not isinstance(value, str) and isinstance(value, Iterable):
        hint = "Give one address; tk.many asks for several"
    raise _refuse(operation, f"Invalid Ethereum address: {_shown(value)}", hint)


def _addresses(operation: Operation, one: Parameter, value: Any) -> list[str]:
    _length(operation, one, value)
    return [_address(operation, one, item) for item in value]


def _text(operation: Operation, one: Parameter, value: Any) -> str:
    if not isinstance(value, str):
        raise _refuse(operation, f"{one.name} must be a string")
    if not value and one.name == "coin":
        raise _refuse(operation, _missing(one))
    return value


def _texts(operation: Operation, one: Parameter, value: Any) -> list[str]:
    _length(operation, one, value)
    if not all(isinstance(item, str) and item for item in value):
        raise _refuse(operation, f"{one.name} must hold strings that are not empty")
    return list(value)


def _length(operation: Operation, one: Parameter, value: Any) -> None:
    if not isinstance(value, list):
        hint = f"Write {one.name} as a list, also if it holds one value"
        raise _refuse(operation, f"{one.name} must be an array", hint)
    if len(value) < (one.least or 0):
        raise _refuse(operation, f"{one.name} must not be empty")
    if one.most is not None and len(value) > one.most:
        raise _refuse(operation, f"{one.name} must have at most {one.most} entries")


def _whole(operation: Operation, one: Parameter, value: Any) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not abs(value) < _WHOLE_LIMIT or value != int(value):
        what = "a whole number of Unix milliseconds" if one.kind == "time" else "a whole number"
        raise _refuse(operation, f"{one.name} must be {what}")
    low = one.least is not None and value < one.least
    if low or (one.most is not None and value > one.most):
        words = f"{one.name} must be from {one.least} to {one.most}"
        raise _refuse(operation, words, _argument(one))
    return int(value)


def _usd(operation: Operation, one: Parameter, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < _WHOLE_LIMIT:
        raise _refuse(operation, _missing(one))
    if value not in AMOUNTS:
        # ASSUMED: an amount that slippageHistory has no samples for is refused with 400.
        sizes = ", ".join(map(str, AMOUNTS))
        raise _refuse(operation, f"{one.name} must be one of {sizes}")
    return float(value)


def _flag(operation: Operation, one: Parameter, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _refuse(operation, f"{one.name} must be a boolean")
    return value


def _cursor(operation: Operation, _: Parameter, value: Any) -> str:
    if not isinstance(value, str):
        raise _refuse(operation, f"Invalid cursor: {_shown(value)}")
    parse_cursor(operation, value)
    return value


def _venue(operation: Operation, one: Parameter, value: Any) -> str:
    if not isinstance(value, str) or not _VENUE.fullmatch(value):
        raise _refuse(operation, f"{one.name} must be 2 to 4 letters")
    return value


def _interval(operation: Operation, one: Parameter, value: Any) -> str:
    if value not in INTERVALS:
        raise _refuse(operation, f"{one.name} must be one of {', '.join(INTERVALS)}")
    return str(value)


def _order(operation: Operation, one: Parameter, value: Any) -> int | str:
    if isinstance(value, str) and _CLOID.fullmatch(value):
        return value.lower()
    if isinstance(value, str):
        raise _refuse(operation, f"Invalid order id: {_shown(value)}")
    return _whole(operation, one, value)


_CHECKS: Final[dict[str, Callable[[Operation, Parameter, Any], Any]]] = {
    "address": _address,
    "addresses": _addresses,
    "text": _text,
    "texts": _texts,
    "whole": _whole,
    "time": _whole,
    "usd": _usd,
    "flag": _flag,
    "cursor": _cursor,
    "venue": _venue,
    "interval": _interval,
    "order": _order,
}


def _check_batch(operation: Operation, checked: Mapping[str, Any]) -> None:
    if checked["dex"] == ALL_DEXES and len(checked["users"]) > 100:
        raise _refuse(operation, f"users must have at most 100 entries with {ALL_DEXES}")


def _check_book(operation: Operation, checked: Mapping[str, Any]) -> None:
    if (mantissa := checked["mantissa"]) is None:
        return
    # ASSUMED: a mantissa that is not 1, 2 or 5, or not with nSigFigs 5, is refused with 400.
    if checked["n_sig_figs"] != 5:
        raise _refuse(operation, "mantissa needs nSigFigs 5")
    if mantissa not in (1, 2, 5):
        raise _refuse(operation, "mantissa must be 1, 2 or 5")


def _check_weeks(operation: Operation, checked: Mapping[str, Any]) -> None:
    start, end = checked["start"], checked["end"]
    if start is not None and end is not None and start > end:
        raise _refuse(operation, "endTime must be at or after startTime")


_COMBINATIONS: Final[dict[str, Callable[[Operation, Mapping[str, Any]], None]]] = {
    "batchClearinghouseStates": _check_batch,
    "l2Book": _check_book,
    "validatorAprHistory": _check_weeks,
}
"""Type of operation -> the check of parameters that depend on each other."""


def _shown(value: Any, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most] + "…"
