"""A progress bar on stderr, for commands."""

from typing import Any

__all__ = ["Bar"]


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
