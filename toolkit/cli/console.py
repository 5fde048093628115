"""What commands print on stderr: errors, warnings and progress."""

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, NoReturn

import typer

_WORDS: Final = {
    "tk.local() works without either": "--size tiny works without either",
    "tk.describe() lists all": "toolkit fetch --help lists all",
    "pass it as api_key": "set TOOLKIT_API_KEY",
    "tk.many fetches several": "repeat the option for several",
}
"""Words of a Python message -> those of the command line."""


def fail(message: str, *, code: int = 1) -> NoReturn:
    """End the command with one line; code 2 means that the command line itself is wrong."""
    typer.echo(f"toolkit: {plain_message(message)}", err=True)
    raise typer.Exit(code)


def plain_message(message: object) -> str:
    """Return a message in the words of the command line.

    What only a program can use, such as ``[error.rows has ...]``, is left out.
    """
    text = re.sub(
        r" ?\[error\.[^\]]*?(?:; (continue with )cursor=([^\]]*))?\]",
        lambda found: f" [{found[1]}--cursor {found[2]}]" if found[2] else "",
        str(message),
    )
    for words, other in _WORDS.items():
        text = text.replace(words, other)
    text = re.sub(r"\w+ is the argument (\w+) of the fetch function", r"The option is --\1", text)
    text = re.sub(r"needs the argument (\w+(?:, \w+)*)", r"needs --\1", text)
    return re.sub(
        r"(?:needs|option is) --\w+(?:, \w+)*",
        lambda found: found[0].replace(", ", ", --").replace("_", "-"),
        text,
    )


def warn(message: str) -> None:
    """Print a warning as one line on stderr."""
    typer.echo(f"toolkit: warning: {message}", err=True)


def disk_message(error: OSError) -> str:
    """Return what could not be read or written, and why."""
    if error.strerror is None:
        return str(error)
    if error.filename is None:
        return f"cannot write the output: {error.strerror}"
    return f"cannot read or write {error.filename}: {error.strerror}"


@contextmanager
def report_errors() -> Iterator[None]:
    """Print warnings and errors without a traceback, and end the command after an error."""
    from toolkit.errors import BadRequest, NotConnected, ToolkitError

    with print_warnings():
        try:
            yield
        except BrokenPipeError:  # the reader of stdout has enough rows, for example `head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except NotConnected as error:
            reason = str(error).partition(". Call tk.connect")[0]
            fail(f"{reason}: use --base-url or TOOLKIT_BASE_URL, or offline --size tiny", code=2)
        except (BadRequest, ValueError, TypeError) as error:
            fail(str(error), code=2)
        except ToolkitError as error:
            fail(str(error))
        except OSError as error:
            fail(disk_message(error))
        except KeyboardInterrupt:
            fail("interrupted; nothing was written", code=130)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print every warning once, as one line on stderr."""
    printed = set()

    def print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            print(f"toolkit: warning: {message}", file=sys.stderr)

    with warnings.catch_warnings(action="always"):
        warnings.showwarning = print_warning
        yield


class RowProgress(AbstractContextManager["RowProgress"]):
    """The number of rows beside a spinner, if stderr is a terminal; with a total, a bar of pulls.

    Parameters
    ----------
    title : str
        The text beside the spinner.
    total : int, optional
        The number of pulls that count their rows here.
    """

    def __init__(self, title: str, total: int | None = None) -> None:
        from rich import progress
        from rich.console import Console

        bar = [progress.MofNCompleteColumn(separator=" of "), progress.BarColumn()]
        self._display = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            *([] if total is None else bar),
            progress.TextColumn("{task.fields[rows]:,} rows"),
            progress.TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # a pipe or a file gets stdout unchanged
            disable=not sys.stderr.isatty(),
        )
        self._task = self._display.add_task(title, total=total, rows=0)
        self._has_pulls = total is not None
        self.rows = 0
        self._display.start()

    def update(self, rows: int) -> None:
        """Add rows to the count."""
        self.rows += rows
        self._display.update(self._task, rows=self.rows)

    def finish_pull(self) -> None:
        """Count a finished pull."""
        self._display.advance(self._task)

    def close(self) -> None:
        """Remove the count, unless another pull continues it."""
        if not self._has_pulls:
            self._display.stop()

    def __exit__(self, *_: object) -> None:
        self._display.stop()
