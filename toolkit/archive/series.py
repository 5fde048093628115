"""A series: the rows of one operation and one subject, and how it is named."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.completeness.subjects import history_subject, is_history
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS, Operation, Parameter
from toolkit.contract.requests import request_body, wire_value
from toolkit.errors import ArchiveError
from toolkit.fetch.registry import operation_of

__all__ = [
    "Series",
    "complete_name",
    "is_history",
    "key_columns",
    "operation_named",
    "run_name",
    "series_of",
    "time_column",
    "time_on_wire",
]


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of one operation and one subject.

    Attributes
    ----------
    operation : Operation
        What is asked.
    subject : str
        Of whom: an address; ``<coin> <amount>`` for slippage; the request of other operations.
    parameters : mapping
        The same as parameters, in Python names.
    """

    operation: Operation
    subject: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in messages and transactions."""
        return f"{self.operation.type} {self.subject}"


def run_name(series: Series, start: int) -> str:
    """Name the transaction that counts the rows of a run."""
    return f"{series.name} from {start}"


def complete_name(series: Series, start: int) -> str:
    """Name the transaction that says that a run has reached the one after it."""
    return f"{series.name} from {start} complete"


def operation_named(what: str | Callable[..., Any]) -> Operation:
    """Give an operation by its type, the name of its function, or the function.

    Raises
    ------
    ArchiveError
        If there is none of that name.
    """
    if callable(what):
        return operation_of(what)
    for one in OPERATIONS.values():
        if what in (one.type, one.function):
            return one
    raise ArchiveError(f"there is no operation {what!r}; tk.describe() lists all")


def series_of(operation: Operation, given: Sequence[Any], named: Mapping[str, Any]) -> Series:
    """Name the series of a call.

    Parameters
    ----------
    operation : Operation
        What is asked.
    given : sequence
        Positional arguments of the fetch function, without times.
    named : mapping
        Its other arguments.

    Raises
    ------
    ArchiveError
        If a history is filtered: the archive keeps all, and filters when it is read.
    """
    parameters = _bound(operation, given, named)
    needed = [one for one in operation.parameters if not one.selects_part]
    if not is_history(operation):
        kept = {k: v for k, v in parameters.items() if v is not None and k not in ("page_size",)}
        return Series(operation, _written(operation, kept), kept)
    kept = {one.python: parameters[one.python] for one in needed if one.required}
    for one in needed:
        if not one.required and parameters.get(one.python) not in (None, one.default):
            raise ArchiveError(
                f"{operation.type}: leave out {one.python}: an archive keeps every row, and "
                "filters when it is read"
            )
    request_body(operation, kept | ({"start": 0} if "startTime" in operation.by_wire else {}))
    return Series(operation, history_subject(operation, kept), kept)


def time_column(operation: Operation) -> str:
    """Give the column by which a history goes on."""
    return operation.key[0]


def key_columns(operation: Operation) -> list[str]:
    """Give the columns that order a history."""
    return [path.rpartition(".")[2] for path in operation.key]


def time_on_wire(operation: Operation) -> str:
    """Give the field of the wire that holds the time of a history's rows."""
    named = time_column(operation)
    return next(one.wire for one in table_columns(operation.tables[0]) if one.name == named)


def _bound(operation: Operation, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    names = [one.python for one in operation.parameters if one.required and not one.unless]
    names = [one for one in names if one not in ("start",)]
    if len(given) > len(names):
        raise TypeError(f"{operation.type} takes {', '.join(names) or 'nothing'} without a name")
    values = dict(named) | dict(zip(names, given, strict=False))
    known = {one.python for one in operation.parameters}
    if unknown := values.keys() - known:
        raise TypeError(f"{operation.type} has no parameter {', '.join(sorted(unknown))}")
    if missing := [one for one in names if values.get(one) is None]:
        raise TypeError(f"{operation.type} needs {', '.join(missing)}")
    return {
        one.python: _written_value(one, values.get(one.python, one.default))
        for one in operation.parameters
    }


def _written_value(parameter: Parameter, value: Any) -> Any:
    """Return a value as every request writes it, so that one question has one name."""
    return None if value is None else wire_value(parameter, value)


def _written(operation: Operation, parameters: Mapping[str, Any]) -> str:
    request = request_body(operation, parameters)
    return json.dumps(request, sort_keys=True, separators=(",", ":"))
