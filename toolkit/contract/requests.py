"""Requests, for both sides: the client writes them with `request_body`, `check_request` reads them.

For every operation ``check_request(operation, request_body(operation, p)) == p``, where `p` has the
Python names and all defaults, and no list has a value twice. The client's budget, `tk.plan` and the
local service count what a request costs with `request_points` (docs/live_service.md, section 8).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from toolkit.contract.dexes import ALL_DEXES, native_form
from toolkit.contract.operations import Operation, Parameter, Parameters
from toolkit.errors import BadRequest, unsent
from toolkit.times import DAY, HOUR, LAST_MS, MINUTE, SECOND, WEEK, whole_number

INTERVALS: Final = {
    **{"1s": SECOND, "15s": 15 * SECOND, "30s": 30 * SECOND},
    **{f"{number}m": number * MINUTE for number in (1, 3, 5, 15, 30)},
    **{f"{number}h": number * HOUR for number in (1, 2, 4, 8, 12)},
    **{"1d": DAY, "3d": 3 * DAY, "1w": WEEK, "1M": 31 * DAY},
}
"""The intervals of candles, with their length; of months the longest."""

AMOUNTS: Final = (1_000, 5_000, 10_000, 30_000, 50_000, 100_000, 250_000, 500_000, 1_000_000)
"""The amounts in USD for which `slippageHistory` has samples."""

# ASSUMED: There are at most 20 dexes. Until an answer shows the number of dexes, a request for
# `ALL_DEXES` counts as one for 20 dexes, so that the counted cost is never too low.
DEXES_AT_MOST: Final = 20

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_PATTERNS = {
    "address": _ADDRESS,
    "order": re.compile(r"0x[0-9a-fA-F]{32}"),
    "venue": re.compile(r"[A-Za-z]{2,4}"),
    "interval": re.compile("|".join(INTERVALS)),
    "text": re.compile(".*", re.DOTALL),
}
_REFUSALS = {
    "address": ("Invalid Ethereum address: {value}", "An address is 0x and 40 hex digits"),
    "order": ("Invalid order id: {value}", "An order id is a whole number or 0x and 32 hex digits"),
    "flag": ("{name} must be a boolean", ""),
    "text": ("{name} must be a string", "It is text, not {value}"),
    "venue": ("{name} must be 2 to 4 letters", ""),
    "interval": (f"{{name}} must be one of {', '.join(INTERVALS)}, not {{value}}", ""),
}
"""Kind of a parameter -> what is wrong with a value of another form, and what to do."""

_WHOLE_LIMIT = 2**53
_NUMBER_KINDS = ("whole", "time", "usd", "order")


def request_body(operation: Operation, parameters: Parameters) -> dict[str, Any]:
    """Return the request body of an operation; `check_request` checks its values.

    - ``operation``: the operation
    - ``parameters``: Python name -> value; None means absent

    Returns: the JSON object, with ``type`` first.

    Raise TypeError if a name is not a parameter of the operation.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> request_body(OPERATIONS["meta"], {"dex": "flx"})
    {'type': 'meta', 'dex': 'flx'}
    """
    names = {parameter.python: parameter for parameter in operation.parameters}
    if unknown := parameters.keys() - names.keys():
        wrong = ", ".join(sorted(unknown))
        raise TypeError(
            f"{operation.type} has no parameter {wrong}; it has {', '.join(names) or 'none'}"
        )
    request: dict[str, Any] = {"type": operation.type}
    for parameter in operation.parameters:
        if (value := parameters.get(parameter.python)) is not None:
            holder = request.setdefault(parameter.within, {}) if parameter.within else request
            holder[parameter.name] = wire_value(parameter, value)
    return request


def request_points(operation: Operation, request: Parameters, dexes: int = DEXES_AT_MOST) -> int:
    """Return the points that a request costs.

    - ``operation``: the operation of the request
    - ``request``: the request body, with wire names. It may be invalid.
    - ``dexes``: the number of dexes, with the native one

    >>> from toolkit.contract.operations import OPERATIONS
    >>> batch = OPERATIONS["batchClearinghouseStates"]
    >>> request_points(batch, {"users": ["0x1"] * 3})
    6
    >>> request_points(batch, {"users": ["0x1"] * 80})
    100
    >>> request_points(batch, {"users": ["0x1"] * 3, "dex": "ALL_DEXES"}, dexes=4)
    24
    """
    points = operation.points
    if operation.user_points:
        users = request.get("users")
        number = len(users) if isinstance(users, list) and users else 1
        points = min(operation.user_points * number, points)
        points *= dexes if request.get("dex") == ALL_DEXES else 1
    return points


def row_points(operation: Operation, rows: int) -> int:
    """Return the points that the rows of an answer cost, in addition to the request.

    >>> from toolkit.contract.apis import EXCHANGE
    >>> from toolkit.contract.operations import OPERATIONS
    >>> row_points(EXCHANGE.adapt(OPERATIONS["userFills"]), 2_000)
    100
    """
    return -(-rows // operation.row_points) if operation.row_points else 0


def filters_of(operation: Operation, parameters: Parameters) -> list[str]:
    """Return the names of the optional parameters that change which rows an answer has.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> filters_of(OPERATIONS["userFillsByTime"], {"user": "0x0", "dex": "flx", "start": 0})
    ['dex']
    """
    return [
        item.python
        for item in operation.filters
        if parameters.get(item.python) not in (None, item.default)
    ]


def describe_cost(operation: Operation) -> str:
    """Return one or two sentences about the cost and the limit of an operation.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> describe_cost(OPERATIONS["userFills"])
    'Costs 10 points a request.'
    >>> describe_cost(OPERATIONS["perpTwapSnapshots"])
    'Costs 2 points a request. Can be requested 5 times in 10 minutes.'
    """
    words = f"Costs {operation.points} points a request."
    if operation.row_points:
        words = f"{words[:-1]}, and one more for each {operation.row_points} rows."
    if operation.user_points:
        words = (
            f"Costs {operation.user_points} points for each of the users, at most "
            f"{operation.points} points. With {ALL_DEXES}, this is multiplied by the number of "
            "dexes."
        )
    if (limit := operation.limit) is not None:
        words += f" Can be requested {limit.calls} times in {limit.seconds // 60} minutes."
    return words


def is_address(text: str) -> bool:
    """Return whether a text is an address: 0x and 40 hex digits in any case.

    >>> is_address("0x" + "a1" * 20), is_address("0x12")
    (True, False)
    """
    return _ADDRESS.fullmatch(text) is not None


def check_request(operation: Operation, request: Parameters) -> dict[str, Any]:
    """Check the request body of an operation as the service does, and return its parameters.

    Fields that the operation does not have are ignored.

    Returns: Python name -> value, with all defaults; None if a parameter has no value.

    Raise BadRequest with the message of the service. Its status is None, because nothing was sent.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> check_request(OPERATIONS["meta"], {"type": "meta"})
    {'dex': ''}
    """
    checked = {}
    try:
        for parameter in operation.parameters:
            holder = request.get(parameter.within) if parameter.within else request
            if not isinstance(holder, Mapping | None):
                raise unsent(f"{parameter.within} must be an object, not {_shorten(holder)}")
            value = holder.get(parameter.name) if holder else None
            replaced = bool(parameter.unless) and request.get(parameter.unless) is not None
            if value is None or replaced:
                if parameter.required and not replaced:
                    raise unsent(_missing_message(parameter), hint=_argument_hint(parameter))
                value = parameter.default
            elif parameter.kind == "cursor":
                parse_cursor(operation, value)
            else:
                value = _CHECKS[parameter.kind](parameter, value)
            checked[parameter.python] = value
        _check_combination(operation.type, checked)
    except BadRequest as error:
        error.operation = operation.type
        raise
    return checked


def parse_cursor(operation: Operation, cursor: Any) -> tuple[int | str, ...]:
    """Return the key that a cursor names.

    Raise BadRequest if the cursor does not have the form of the operation's cursors.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> parse_cursor(OPERATIONS["userFillsByTime"], "1756684800000_3")
    (1756684800000, 3)
    """
    parts = cursor.split("_", maxsplit=len(operation.key) - 1) if isinstance(cursor, str) else []
    # All parts are whole numbers, except the user and the coin of a funding cursor.
    whole = 2 if len(parts) == 2 else 1
    is_valid = (
        len(parts) == len(operation.key)
        and all(parts)
        and all(part.isascii() and part.isdigit() and len(part) < 17 for part in parts[:whole])
        and (whole == 2 or bool(_ADDRESS.fullmatch(parts[1])))
    )
    if not is_valid or int(parts[0]) > LAST_MS:
        others = (part.rpartition(".")[2] for part in operation.key[1:])
        form = "_".join(f"<{name}>" for name in ("milliseconds", *others))
        late = f"{parts[0]} ms is after the year 9999. " if is_valid else ""
        raise unsent(
            f"Invalid cursor: {_shorten(cursor)}",
            operation.type,
            f"{late}A cursor has the form {form}. Use the cursor of an incomplete answer, or none",
        )
    return tuple(int(part) if i < whole else part for i, part in enumerate(parts))


def make_cursor(key: tuple[int | str, ...]) -> str:
    """Return the cursor that names a key.

    >>> make_cursor((1756684800000, 3))
    '1756684800000_3'
    """
    return "_".join(map(str, key))


def wire_value(parameter: Parameter, value: Any) -> Any:
    """Return the value of a parameter on the wire, so that equal requests have equal bodies.

    A single value becomes a list if the parameter is a list, and repeated values of a list count
    once: the service may answer them twice. Addresses become lower case, and the native dex gets
    its name for this parameter. A whole number becomes an int, whether it is a float or a number of
    numpy.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> market_names = OPERATIONS["perpTwapSnapshots"].by_wire["market_names"]
    >>> wire_value(market_names, "main:BTC"), wire_value(market_names, ["ETH", "main:ETH"])
    (['BTC'], ['ETH'])
    """
    is_list = parameter.kind in ("addresses", "texts")
    values = [value] if isinstance(value, str) or not is_list else value
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        return value  # not a list: `check_request` refuses it
    items = []
    for item in values:
        if not isinstance(item, str):
            number = whole_number(item) if parameter.kind in _NUMBER_KINDS else None
            items.append(item if number is None else number)
        elif parameter.kind in ("address", "addresses"):
            items.append(item.lower())
        else:
            items.append(native_form(parameter.dex_form, item) if parameter.dex_form else item)
    if not is_list:
        return items[0]
    is_text = all(isinstance(item, str) for item in items)
    return list(dict.fromkeys(items)) if is_text else items  # `check_request` refuses others


def _missing_message(parameter: Parameter) -> str:
    detail = f" (or {parameter.unless})" if parameter.unless else ""
    if parameter.kind == "usd":
        detail = " (positive USD notional)"
    return f"{parameter.name} parameter is required{detail}"


def _argument_hint(parameter: Parameter) -> str:
    if parameter.name == parameter.python:
        return ""
    return f"{parameter.name} is the argument {parameter.python} of the fetch function"


def _check_form(parameter: Parameter, value: Any) -> Any:
    kind, name = parameter.kind, parameter.name
    if kind == "flag" and isinstance(value, bool):
        return value
    if kind == "order" and not isinstance(value, str):
        return _check_whole(parameter, value)
    if name == "coin" and isinstance(value, str) and not value:
        raise unsent(_missing_message(parameter))
    if kind in _PATTERNS and isinstance(value, str) and _PATTERNS[kind].fullmatch(value):
        return value.lower() if kind in ("address", "order") else value
    shown = _shorten(value)
    words, hint = (text.format(name=name, value=shown) for text in _REFUSALS[kind])
    if kind == "address" and not isinstance(value, str) and isinstance(value, Iterable):
        hint = "Pass one address; tk.many fetches several"
    raise unsent(words, hint=hint)


def _check_list(parameter: Parameter, value: Any) -> list[str]:
    name = parameter.name
    if not isinstance(value, list):
        hint = f"Write {name} as a list, even for one value"
        raise unsent(f"{name} must be an array", hint=hint)
    if len(value) < (parameter.least or 0):
        raise unsent(f"{name} must not be empty")
    if parameter.most is not None and len(value) > parameter.most:
        hint = f"It has {len(value):,}: send several requests"
        raise unsent(f"{name} must have at most {parameter.most:,} entries", hint=hint)
    if parameter.kind == "addresses":
        one = replace(parameter, kind="address")
        return [_check_form(one, item) for item in value]
    for number, item in enumerate(value, 1):
        if not (isinstance(item, str) and item):
            hint = f"Entry {number} is {_shorten(item)}"
            raise unsent(f"{name} must hold strings that are not empty", hint=hint)
    return list(value)


def _check_whole(parameter: Parameter, value: Any) -> int:
    number, least, most = whole_number(value), parameter.least, parameter.most
    words = ""
    if number is None or not abs(number) < _WHOLE_LIMIT:
        of = " of Unix milliseconds" if parameter.kind == "time" else ""
        words = f"{parameter.name} must be a whole number{of}"
    elif (least is not None and number < least) or (most is not None and number > most):
        words = f"{parameter.name} must be from {least} to {most}"
    if number is None or words:
        raise unsent(words, hint=_argument_hint(parameter))
    return number


def _check_usd(parameter: Parameter, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < _WHOLE_LIMIT:
        hint = f"It is a number of USD, such as 10000, not {value!r}"
        raise unsent(_missing_message(parameter), hint=hint)
    if value not in AMOUNTS:
        # ASSUMED: If `slippageHistory` has no samples of an amount, the service refuses the request
        # with 400.
        raise unsent(f"{parameter.name} must be one of {', '.join(map(str, AMOUNTS))}")
    return float(value)


_CHECKS: Final[dict[str, Callable[[Parameter, Any], Any]]] = {
    "usd": _check_usd,
    **dict.fromkeys(("addresses", "texts"), _check_list),
    **dict.fromkeys(("whole", "time"), _check_whole),
    **dict.fromkeys(_REFUSALS, _check_form),
}


def _check_combination(type: str, checked: Parameters) -> None:
    """Check parameters that depend on each other."""
    if type == "batchClearinghouseStates" and checked["dex"] == ALL_DEXES:
        if (count := len(checked["users"])) > 100:
            raise unsent(f"users must have at most 100 entries with {ALL_DEXES}, not {count}")
    elif type == "l2Book" and checked["mantissa"] is not None:
        # ASSUMED: The service accepts a `mantissa` of 1, 2 or 5, and only with an `nSigFigs` of 5.
        # Otherwise it returns 400.
        if checked["n_sig_figs"] != 5:
            raise unsent("mantissa needs nSigFigs 5")
        if checked["mantissa"] not in (1, 2, 5):
            raise unsent("mantissa must be 1, 2 or 5")
    elif type == "openInterestHistory":
        if (checked["coin"] is None) == (checked["sector"] is None):
            raise unsent("coin or sector parameter is required, and not both")
        if INTERVALS[checked["interval"]] < MINUTE:
            raise unsent("interval must be 1m or longer")
    elif type == "validatorAprHistory":
        start, end = checked["start"], checked["end"]
        if start is not None and end is not None and start > end:
            raise unsent("endTime must be at or after startTime")


def _shorten(value: Any, most: int = 80) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most] + "…"
