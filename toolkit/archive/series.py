"""A series: the archived rows of one operation and one subject.

A history has one series per subject. Any other operation has one series per request.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.completeness.subjects import history_subject, is_history
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.requests import request_body, wire_value
from toolkit.errors import ArchiveError
from toolkit.fetch.registry import operation_of

__all__ = [
    "Series",
    "completion_transaction",
    "find_operation",
    "is_history",
    "key_columns",
    "make_series",
    "run_transaction",
    "time_column",
    "wire_time_field",
]


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of one operation and one subject.

    Attributes
    ----------
    operation : Operation
        The operation.
    subject : str
        An address, or ``<coin> <amount>`` for slippage. For an operation that is not a history,
        the text of the request.
    parameters : mapping
        The parameters that choose the subject: Python name -> value.
    """

    operation: Operation
    subject: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the series in messages and transactions."""
        return f"{self.operation.type} {self.subject}"


def run_transaction(series: Series, start: int) -> str:
    """Return the name of the Delta transaction that counts the rows of a run."""
    return f"{series.name} from {start}"


def completion_transaction(series: Series, start: int) -> str:
    """Return the name of the Delta transaction that marks a run as complete."""
    return f"{series.name} from {start} complete"


def find_operation(name: str | Callable[..., Any]) -> Operation:
    """Return an operation by its type, by its fetch function, or by the name of that function.

    Raises
    ------
    ArchiveError
        If there is no such operation.
    """
    if callable(name):
        return operation_of(name)
    for operation in OPERATIONS.values():
        if name in (operation.type, operation.function):
            return operation
    raise ArchiveError(f"there is no operation {name!r}; tk.describe() lists all")


def make_series(operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any]) -> Series:
    """Return the series of a request.

    Parameters
    ----------
    operation : Operation
        The operation.
    arguments : sequence
        Positional arguments of the fetch function, without times.
    named : mapping
        Its other arguments.

    Raises
    ------
    ArchiveError
        If the request filters a history: an archive stores every row.
    """
    parameters = _bind_arguments(operation, arguments, named)
    if not is_history(operation):
        chosen = {
            name: value
            for name, value in parameters.items()
            if value is not None and name != "page_size"
        }
        text = json.dumps(request_body(operation, chosen), sort_keys=True, separators=(",", ":"))
        return Series(operation, text, chosen)
    choosing = [parameter for parameter in operation.parameters if not parameter.selects_part]
    chosen = {
        parameter.python: parameters[parameter.python]
        for parameter in choosing
        if parameter.required
    }
    for parameter in choosing:
        value = parameters.get(parameter.python)
        if not parameter.required and value not in (None, parameter.default):
            raise ArchiveError(
                f"{operation.type}: leave out {parameter.python}. An archive stores every row; "
                "filter when you read it"
            )
    # Building the request checks the values as fetching does.
    request_body(operation, chosen | ({"start": 0} if "startTime" in operation.by_wire else {}))
    return Series(operation, history_subject(operation, chosen), chosen)


def _bind_arguments(
    operation: Operation, arguments: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return each parameter's value in the form of the wire, so that equal requests are equal."""
    required = [
        parameter.python
        for parameter in operation.parameters
        if parameter.required and not parameter.unless and parameter.python != "start"
    ]
    if len(arguments) > len(required):
        raise TypeError(f"{operation.type} takes {', '.join(required) or 'nothing'} without a name")
    values = dict(named) | dict(zip(required, arguments, strict=False))
    known = {parameter.python for parameter in operation.parameters}
    if unknown := values.keys() - known:
        raise TypeError(f"{operation.type} has no parameter {', '.join(sorted(unknown))}")
    if missing := [name for name in required if values.get(name) is None]:
        raise TypeError(f"{operation.type} needs {', '.join(missing)}")
    bound = {}
    for parameter in operation.parameters:
        value = values.get(parameter.python, parameter.default)
        bound[parameter.python] = None if value is None else wire_value(parameter, value)
    return bound


def time_column(operation: Operation) -> str:
    """Return the column with the time by which a history is paged."""
    return operation.key[0]


def key_columns(operation: Operation) -> list[str]:
    """Return the columns by which a history is ordered."""
    return [path.rpartition(".")[2] for path in operation.key]


def wire_time_field(operation: Operation) -> str:
    """Return the field of the wire that holds the time of a history's rows."""
    name = time_column(operation)
    columns = table_columns(operation.tables[0])
    return next(column.wire for column in columns if column.name == name)
