"""Progress on stderr, for commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

__all__ = ["Bar", "Overall", "counting"]


class Bar:
    """Counts rows beside a spinner: how many there will be, nobody knows.

    Parameters
    ----------
    what : str
        What is fetched.
    """

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._shown = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("{task.completed:,.0f}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._shown.start()
        self._task: Any = self._shown.add_task(what, total=None)

    def update(self, rows: int) -> None:
        """Count rows."""
        self._shown.advance(self._task, rows)

    def close(self) -> None:
        """Take it away."""
        self._shown.stop()


class Overall:
    """Counts what is done of a number of pulls, and the rows of all of them.

    Parameters
    ----------
    what : str
        What is fetched.
    of : int
        How many pulls there are.
    """

    def __init__(self, what: str, of: int) -> None:
        from rich import progress
        from rich.console import Console

        self._shown = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            progress.MofNCompleteColumn(separator=" of "),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[rows]:,} rows"),
            progress.TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # into a pipe or a file it goes as it is
            disable=not sys.stderr.isatty(),
        )
        self._task = self._shown.add_task(what, total=of, rows=0)
        self._rows = 0

    def rows(self, _: str) -> "Overall":
        """Give what counts the rows of a pull, as `Session.progress` wants it."""
        return self

    def update(self, rows: int) -> None:
        """Count rows."""
        self._rows += rows
        self._shown.update(self._task, rows=self._rows)

    def close(self) -> None:
        """Go on: the next pull counts here, too."""

    def next(self) -> None:
        """Count a pull that has ended."""
        self._shown.advance(self._task)

    def __enter__(self) -> "Overall":
        self._shown.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shown.stop()


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Give what counts rows on a bar; nothing is shown where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar = Bar(what)
    try:
        yield bar.update
    finally:
        bar.close()
