"""HTML of views: tables, notes, problems, code. Every text is escaped here."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any, Final

import pandas as pd

from toolkit.errors import ToolkitError
from toolkit.plots import formats, tables
from toolkit.plots.tables import Column
from toolkit.widgets.svg import STYLE as COLOURS


def read_part(name: str) -> str:
    """Return the text of a file of this package."""
    return (files(__package__ or "") / name).read_text("utf-8")


STYLE: Final = COLOURS + read_part("view.css")
"""The style sheet of every view, with the colours of the page's theme."""


def view(*parts: str) -> str:
    """Join HTML parts; a page needs the style sheet, too."""
    return f'<div class="tk-view">{"".join(parts)}</div>'


def note(text: str, kind: str = "tk-muted") -> str:
    """Return a paragraph; empty for an empty text."""
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def problem(text: str) -> str:
    """Return an error message that screen readers announce; empty for an empty text."""
    return f'<div class="tk-problem" role="alert">{escape(text)}</div>' if text else ""


def folded_code(code: str) -> str:
    """Return the code of a view, folded."""
    return f"<details><summary>Code of this view</summary><pre>{escape(code)}</pre></details>"


def table(caption: str, frame: pd.DataFrame, columns: Sequence[Column], **options: Any) -> str:
    """Return a frame as a table, as `toolkit.plots.tables.table` makes it."""
    made = tables.table(caption, frame, columns, **{"empty": "no rows"} | options)
    return f"<div>{made._repr_html_()}</div>"


def signed_usd(value: Any) -> str:
    """Return an amount with its sign."""
    return formats.usd_amount(value, signed=True)


def signed_share(value: Any) -> str:
    """Return a share in percent with its sign."""
    return formats.true_minus(f"{100 * value:+.2f} %")


def time_text(value: Any) -> str:
    """Return a time in seconds."""
    return f"{value:%Y-%m-%d %H:%M:%S}"


def error_text(error: Exception) -> str:
    """Return the message of an error; an unexpected error is named with its type.

    >>> error_text(ToolkitError("no answer")), error_text(KeyError("coin"))
    ('no answer', "KeyError: 'coin'")
    """
    if isinstance(error, ToolkitError | ValueError):
        return str(error)
    return f"{type(error).__name__}: {error}"
