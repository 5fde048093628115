"""The cost of requests in points, and their limits. docs/live_service.md, section 8.

The operations table has the figures. The client's budget, `tk.plan` and the local service all count
with these functions.
"""

from collections.abc import Mapping
from typing import Any, Final

from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import Operation

# ASSUMED: there are at most 20 dexes. A request for ALL_DEXES counts with this number until an
# answer has shown the number of dexes, so that a budget is never too low.
DEXES_AT_MOST: Final = 20


def request_points(
    operation: Operation, request: Mapping[str, Any], dexes: int = DEXES_AT_MOST
) -> int:
    """Return the points that a request costs.

    - ``operation``: the operation of the request
    - ``request``: the request body, with wire names. It may be invalid.
    - ``dexes``: the number of dexes, with the native one

    >>> from toolkit.contract.operations import get_operation
    >>> batch = get_operation("batchClearinghouseStates")
    >>> request_points(batch, {"users": ["0x1"] * 3})
    6
    >>> request_points(batch, {"users": ["0x1"] * 80})
    100
    >>> request_points(batch, {"users": ["0x1"] * 3, "dex": "ALL_DEXES"}, dexes=4)
    24
    """
    scale = operation.scale
    if scale is None:
        return operation.points
    entries = request.get(scale.entries)
    number = len(entries) if isinstance(entries, list) and entries else 1
    points = min(scale.each * number, operation.points)
    return points * dexes if request.get(scale.dex) == ALL_DEXES else points


def describe_cost(operation: Operation) -> str:
    """Return one or two sentences about the cost and the limit of an operation.

    >>> from toolkit.contract.operations import get_operation
    >>> describe_cost(get_operation("userFills"))
    'Costs 10 points a request.'
    >>> describe_cost(get_operation("perpTwapSnapshots"))
    'Costs 2 points a request. May be asked 5 times in 10 minutes.'
    """
    words = f"Costs {operation.points} points a request."
    if (scale := operation.scale) is not None:
        words = (
            f"Costs {scale.each} points for each of the {scale.entries}, at most "
            f"{operation.points}, times the number of dexes with {ALL_DEXES}."
        )
    if (limit := operation.limit) is not None:
        words += f" May be asked {limit.calls} times in {limit.seconds // 60} minutes."
    return words
