"""Checks of a page: its rows are in order, and within the range that was requested."""

import itertools
import operator
from collections.abc import Mapping
from typing import Any, NoReturn

from toolkit.contract.operations import Operation
from toolkit.contract.requests import make_cursor, parse_cursor
from toolkit.errors import AnswerInvalid

Key = tuple[Any, ...]


def check_order(operation: Operation, keys: list[Key]) -> None:
    """Raise AnswerInvalid if the keys of rows are not in the order of the operation."""
    is_backward = operation.paging == "backward"
    if keys == sorted(keys, reverse=is_backward):
        return
    ordered = operator.ge if is_backward else operator.le
    for row, (key, next_key) in enumerate(itertools.pairwise(keys)):
        if not ordered(key, next_key):
            raise AnswerInvalid(
                f"rows are not in the order of {', '.join(operation.key)}: "
                f"{make_cursor(next_key)} follows {make_cursor(key)}",
                operation=operation.type,
                column=operation.key[0],
                row=row + 1,
            )


def check_range(operation: Operation, parameters: Mapping[str, Any], keys: list[Key]) -> None:
    """Raise AnswerInvalid if a row is outside of the requested range; `keys` are in order.

    The rows of the cursor itself may come again.
    """
    if not keys:
        return
    first, last = (-1, 0) if operation.paging == "backward" else (0, -1)
    start, end = parameters.get("start"), parameters.get("end")
    limit: Key = () if start is None else (start,)
    if cursor := parameters.get("cursor"):
        limit = parse_cursor(operation, cursor)[: len(keys[0])]
    if limit and keys[first] < limit:
        name = "cursor" if cursor else "start"
        place = f"before the requested {name} {make_cursor(limit)}"
        _refuse_row(operation, first % len(keys), place)
    if end is not None and keys[last][0] > end:
        _refuse_row(operation, last % len(keys), f"after the requested end {end}")


def _refuse_row(operation: Operation, row: int, place: str) -> NoReturn:
    raise AnswerInvalid(
        f"the row is {place}: the service, or a cache in between, did not answer this request",
        operation=operation.type,
        column=operation.key[0],
        row=row,
    )
