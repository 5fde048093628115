"""What a report's notebook does in its kernel before its first cell and after its last one."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.errors import NotConnected
from toolkit.reports.blocks import provenance, words

__all__ = ["begin", "end"]

_OF_PROGRAMMERS: Final = (
    DeprecationWarning,
    FutureWarning,
    PendingDeprecationWarning,
    ResourceWarning,
)


def begin() -> None:
    """Show warnings as words: a path or a number of a process would differ in every run."""
    warnings.showwarning = _show
    warnings.simplefilter("default")


def end(namespace: Mapping[str, Any], parameters: Sequence[str]) -> Any:
    """Say where everything came from.

    Parameters
    ----------
    namespace : mapping
        The notebook's names. Its ``sources``, a mapping of name -> frame, is what was fetched;
        without one, it is every frame that carries its provenance.
    parameters : sequence of str
        Names whose values are shown.
    """
    label, simulated = _source(namespace.get("session"))
    frames = namespace.get("sources")
    return provenance(
        _fetched(namespace) if frames is None else frames,
        {name: namespace.get(name) for name in parameters},
        label,
        simulated=simulated,
    )


def _source(session: Session | None) -> tuple[str, bool]:
    try:
        session = current_session(session)
    except NotConnected:
        return "the notebook itself: it opened no session", False
    return session.label, session.simulated


def _fetched(namespace: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    return {
        name: value
        for name, value in namespace.items()
        if isinstance(value, pd.DataFrame) and not name.startswith("_") and _came(value)
    }


def _came(frame: pd.DataFrame) -> bool:
    """Tell what was fetched from what a helper made of it."""
    facts = frame.attrs.get("toolkit", {})
    return "operation" in facts and "helper" not in facts


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from IPython.display import display

    if not issubclass(category, _OF_PROGRAMMERS):
        display(words(f"{category.__name__}: {message}"))
