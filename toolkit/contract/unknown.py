"""Warnings about answers that deviate from the contract, once for each operation and field."""

import warnings
from typing import Final

from toolkit.contract.deviations import forget_deviations

__all__ = [
    "MissingField",
    "UnknownField",
    "forget_reported",
    "report_missing",
    "report_unknown",
    "report_unreadable",
]

# Of this process: the same field comes on every page.
_reported: Final[set[tuple[str, str]]] = set()


class UnknownField(UserWarning):
    """An answer has a field that the contract does not know; ``extra="keep"`` shows it."""


class MissingField(UserWarning):
    """An answer lacks a field that the specification says is always there; it reads as missing.

    So does a time beyond the specification whose text cannot be read as a time.
    """


def report_unknown(operation: str, field: str, *, has_column: bool = True) -> None:
    """Warn of a field, or of a value of a tuple, once for each operation and field.

    Parameters
    ----------
    operation : str
        The ``type`` of the operation.
    field : str
        Where the field stands, dotted, in wire names.
    has_column : bool
        Whether a frame can have a column for it.
    """
    column = 'extra="keep" makes columns of the fields of rows; ' if has_column else ""
    _report(
        operation,
        field,
        f"{operation} answers with a field that this version does not know: {field[:80]}. "
        f"Frames leave it out; {column}tk.raw shows it.",
        UnknownField,
    )


def report_missing(operation: str, field: str) -> None:
    """Warn of a field that is absent or null, once for each operation and field."""
    _report(
        operation,
        f"{field}, missing",
        f"{operation} answers without {field[:80]}, which the specification says is always "
        "there. It is missing (NA) in the frame.",
        MissingField,
    )


def report_unreadable(operation: str, field: str, value: object, kind: str) -> None:
    """Warn of values beyond the specification that are not of their kind, once for each field."""
    _report(
        operation,
        f"{field}, unreadable",
        f"{operation} answers with a value of {field[:80]} that is not a legal {kind}: "
        f"{str(value)[:80]!r}. It is missing (NA) in the frame; tk.raw shows it.",
        MissingField,
    )


def _report(operation: str, field: str, message: str, category: type[Warning]) -> None:
    if (operation, field) in _reported:
        return
    _reported.add((operation, field))
    warnings.warn(message, category, stacklevel=3)


def forget_reported() -> None:
    """Warn again of what was reported before."""
    _reported.clear()
    forget_deviations()
