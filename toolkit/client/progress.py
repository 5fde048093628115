"""The progress bar of long pulls."""

import sys
from types import TracebackType
from typing import Any

from toolkit.client.session import Session

__all__ = ["Progress"]


class Progress:
    """A progress bar, shown only in a live kernel or terminal, and only if the pull takes long.

    Parameters
    ----------
    session : Session
        Its `progress` says whether a bar is shown, or makes one.
    title : str
        The text of the bar.
    hidden : bool, default False
        Whether no bar is shown at all.
    """

    def __init__(self, session: Session, title: str, *, hidden: bool = False) -> None:
        shown = _is_watched() if session.progress is None else session.progress
        self._bar: Any = None
        if hidden or not shown:
            return
        if callable(shown):
            self._bar = shown(title)
        else:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=title, unit=" rows", unit_scale=True, delay=1.0, leave=False)

    def add(self, rows: int) -> None:
        """Count rows."""
        if self._bar is not None:
            self._bar.update(rows)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _is_watched() -> bool:
    """Return whether there is a live kernel or a terminal."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
