"""Tables of text from frames: headings of columns, and values as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from toolkit.downloads import Download, downloads
from toolkit.plots import formats
from toolkit.reports.html_parts import render_part
from toolkit.times import to_iso


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column of a table: its column of the frame, its heading, and the format of values."""

    name: str
    heading: str
    write: Callable[[Any], str]
    number: bool = True


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text for a template.

    - ``total``: a last row below a line
    - ``files``: the rows with all of their digits, as CSV and Excel; empty without rows
    """

    caption: str
    columns: Sequence[TextColumn]
    rows: Sequence[Sequence[str]]
    total: Sequence[str] = ()
    files: Sequence[Download] = ()

    def _repr_html_(self) -> str:
        return render_part("table.html", table=self)


def table(caption: str, frame: pd.DataFrame, columns: Sequence[TextColumn]) -> TextTable:
    """Return a frame as a table; a missing value is a dash, never 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"coin": ["BTC", "ETH"], "net": [1234.5, None]})
    >>> columns = [
    ...     TextColumn("coin", "coin", plain_text, False),
    ...     TextColumn("net", "net", formats.whole_dollars),
    ... ]
    >>> net = table("Net", frame, columns)
    >>> [row[0] for row in net.rows], net.rows[0][1]
    (['BTC', 'ETH'], '1,234')
    """
    if frame.empty:
        return TextTable(caption, columns, [])
    texts = [
        [formats.MISSING if pd.isna(value) else column.write(value) for value in frame[column.name]]
        for column in columns
    ]
    rows = [list(row) for row in zip(*texts, strict=True)]
    files = downloads(caption, frame, [column.name for column in columns])
    return TextTable(caption, columns, rows, files=files)


def plain_text(value: Any) -> str:
    """Return the value as text."""
    return str(value)


def usd_text(value: Any) -> str:
    """Return an amount of USD with two decimals and without a plus sign, such as a cost.

    >>> usd_text(12345.678), usd_text(0)
    ('12,345.68', '0.00')
    """
    return formats.true_minus(f"{value:,.2f}")


def signed_usd(value: Any) -> str:
    """Return an amount of USD with two decimals and its sign.

    >>> signed_usd(12345.678), signed_usd(-0.001)
    ('+12,345.68', '0.00')
    """
    text = f"{abs(value):,.2f}"
    if text == "0.00":
        return text
    return f"{formats.MINUS if value < 0 else '+'}{text}"


def exact_usd(value: Any) -> str:
    """Return an amount to a millionth of a USD, with at least two digits after the point.

    >>> exact_usd(1234.500000), exact_usd(0.000001)
    ('1,234.50', '0.000001')
    """
    whole, _, digits = f"{abs(value):,.6f}".partition(".")
    return f"{formats.MINUS if value < 0 else ''}{whole}.{digits.rstrip('0').ljust(2, '0')}"


def time_text(value: Any) -> str:
    """Return a time with milliseconds."""
    return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}"


def period_text(start_ms: int, end_ms: int, *times: pd.Series) -> str:
    """Return the first and the last minute of a period.

    A period that begins at 0 has no chosen start: it begins with the earliest of `times`.
    """
    first = to_iso(start_ms)[:16].replace("T", " ")
    if start_ms == 0:
        earliest = min((column.min() for column in times if len(column)), default=None)
        first = "the beginning" if earliest is None else f"{earliest:%Y-%m-%d %H:%M}"
    return f"{first} to {to_iso(end_ms)[:16].replace('T', ' ')} UTC"


def yes_no(value: Any) -> str:
    """Return ``yes`` or ``no``."""
    return "yes" if value else "no"
