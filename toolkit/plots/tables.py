"""Tables of text from frames, of reports and of widgets: escaped, with links that save the rows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, repeat
from typing import Any

import pandas as pd

from toolkit.downloads import Download, downloads
from toolkit.plots.formats import MISSING


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    - ``name``, ``heading``: column of the frame, and text above it
    - ``write``: value -> text, which is escaped
    - ``meaning``: tooltip of the heading
    - ``number``: whether the column is aligned to the right
    - ``html``: whether `write` returns HTML of this package, which is not escaped or saved
    """

    name: str
    heading: str
    write: Callable[[Any], str] = str
    meaning: str = ""
    number: bool = True
    html: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    - ``rows``: the texts of each row; those of a column with ``html`` are HTML
    - ``total``: a last row below a line
    - ``marked``: whether each row is highlighted
    - ``files``: the rows with all of their digits, as CSV and Excel; empty without rows
    - ``empty``: the only row of a table without rows; without it, a sentence replaces the table
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    total: Sequence[str] = ()
    marked: Sequence[bool] = ()
    files: Sequence[Download] = ()
    empty: str = ""

    def _repr_html_(self) -> str:
        name, columns = escape(self.caption), self.columns
        if not self.rows and not self.empty:
            return f'<p class="quiet">{name} There are none.</p>\n'
        classes = [' class="tk-number"' if column.number else "" for column in columns]
        titles = [f' title="{escape(each.meaning)}"' if each.meaning else "" for each in columns]
        head = "".join(
            f'<th scope="col"{kind}{title}>{escape(column.heading)}</th>'
            for column, kind, title in zip(columns, classes, titles, strict=True)
        )

        def write_row(texts: Sequence[str], mark: bool = False) -> str:
            cells = [
                f"{kind}>{text if column.html else escape(text)}</"
                for column, kind, text in zip(columns, classes, texts, strict=True)
            ]
            rest = "".join(f"<td{cell}td>" for cell in cells[1:])
            current = ' aria-current="true"' if mark else ""
            return f'<tr{current}><th scope="row"{cells[0]}th>{rest}</tr>\n'

        marks = chain(self.marked, repeat(False))
        body = "".join(map(write_row, self.rows, marks))
        if not self.rows:
            body = (
                f'<tr><td colspan="{len(columns)}" class="tk-muted">{escape(self.empty)}</td></tr>'
            )
        foot = f"<tfoot>{write_row(self.total)}</tfoot>" if self.total else ""
        links = " ".join(
            f'<a download="{file.name}" href="{file.address}" '
            f'aria-label="Save as {file.kind}: {name}">{file.kind}</a>'
            for file in self.files
        )
        pair = ' class="pair"' if len(columns) == 2 else ""
        return (
            f'<div class="tk-scroll" role="region" aria-label="{name}" tabindex="0">\n'
            f"<table{pair}>\n"
            f"<caption><span>{name}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}</tbody>{foot}\n</table>\n</div>\n"
            + (f'<p class="tk-save">{links}</p>\n' if links else "")
        )


def table(
    caption: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    total: pd.DataFrame | None = None,
    marked: Iterable[bool] = (),
    empty: str = "",
) -> Table:
    """Return a frame as a table; a missing value is a dash, never 0.

    - ``total``: one row of the same columns, for the end of a table that has rows

    Examples
    --------
    >>> frame = pd.DataFrame({"coin": ["<BTC>", "ETH"], "net": [1234.5, None]})
    >>> net = table("Net", frame, [Column("coin", "coin", number=False), Column("net", "net")])
    >>> net.rows
    [['<BTC>', '1234.5'], ['ETH', '\N{EM DASH}']]
    >>> "<BTC>" in net._repr_html_()
    False
    """
    if not len(frame):
        return Table(caption, columns, [], empty=empty)

    def write_rows(rows: pd.DataFrame) -> list[list[str]]:
        texts = [
            [
                MISSING if not column.html and pd.isna(value) else column.write(value)
                for value in rows[column.name]
            ]
            for column in columns
        ]
        return [list(row) for row in zip(*texts, strict=True)]

    last = [] if total is None else write_rows(total)[0]
    files = downloads(caption, frame, [each.name for each in columns if not each.html])
    return Table(caption, columns, write_rows(frame), last, [*marked], files, empty)
