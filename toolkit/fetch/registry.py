"""The registry of fetch functions: which function fetches which operation."""

import reprlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

from toolkit.contract.fields import table_columns
from toolkit.contract.operations import FETCHED, VIEWS, Operation
from toolkit.display import frames_html, type_text
from toolkit.frames import column_dtype
from toolkit.public_names import publish_as

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", bound=tuple[Any, ...])

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""Type of operation, or name of a view -> its fetch function."""


def fetches(type: str) -> Callable[[F], F]:
    """Return a decorator that registers the fetch function of an operation.

    The decorated function is returned itself, so editors, notebooks and type checkers see its own
    signature. Its docstring gains the list of columns.

    Parameters
    ----------
    type : str
        The operation's ``type``, or the name of a view.
    """
    operation = VIEWS.get(type) or FETCHED[type]

    def register(function: F) -> F:
        vars(function)["__operation__"] = type
        function.__module__ = "toolkit"  # where users find it
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n\n{_columns_section(operation)}"
        FUNCTIONS[type] = function
        return function

    return register


def shows_frames(result: type[R]) -> type[R]:
    """Publish a named tuple of frames; a notebook shows each frame below its name."""
    setattr(result, "_repr_html_", lambda frames: frames_html(frames._asdict()))  # noqa: B010 - mypy knows no such field
    return publish_as("toolkit")(result)


def operation_of(fetch: Callable[..., object]) -> Operation:
    """Return the operation of a fetch function.

    Raises
    ------
    TypeError
        If it is not a fetch function.
    """
    name = getattr(fetch, "__operation__", None)
    if name is None:
        short = getattr(fetch, "__name__", "") or reprlib.repr(fetch)
        short = type_text(fetch) if hasattr(fetch, "columns") else short
        raise TypeError(
            f"{short} is not a fetch function, such as tk.user_fills. Pass the function, and then "
            "its arguments"
        )
    return VIEWS.get(name) or FETCHED[name]


def _columns_section(operation: Operation) -> str:
    lines = ["    Columns", "    -------"]
    for table in operation.tables:
        lines += [f"    ``{table.name}``:", ""] if table.name else []
        for column in table_columns(table):
            missing = "" if column.expected else " Optional in the specification."
            unit = f" [{column.kind.unit}]" if column.kind.unit else ""
            meaning = f"{column.meaning[:1].upper()}{column.meaning[1:]}{unit}.{missing}"
            lines += [f"    {column.name} : {column_dtype(column)}", f"        {meaning}"]
        lines.append("")
    return "\n".join(lines) + "\n"
