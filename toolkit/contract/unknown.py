"""What an answer holds that this version does not know: told once, then passed over."""

import warnings
from typing import Final

__all__ = ["UnknownField", "forget_reported", "report_unknown"]

# Of this process: the same field comes on every page.
_reported: Final[set[tuple[str, str]]] = set()


class UnknownField(UserWarning):
    """An answer has a field that the contract does not know; it is in the raw answer only."""


def report_unknown(operation: str, field: str) -> None:
    """Warn of a field, or of a value of a tuple, once for each operation and field."""
    if (operation, field) in _reported:
        return
    _reported.add((operation, field))
    warnings.warn(
        f"{operation} answers with a field that this version does not know: {field[:80]}. "
        "Frames leave it out; tk.raw shows it.",
        UnknownField,
        stacklevel=2,
    )


def forget_reported() -> None:
    """Warn again of what was reported before."""
    _reported.clear()
