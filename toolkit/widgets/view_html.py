"""HTML of views: tables, notes, problems, code. Every text is escaped here."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import pandas as pd

from toolkit.downloads import downloads
from toolkit.plots import formats
from toolkit.widgets.svg import STYLE as COLOURS

STYLE: Final = (
    (
        COLOURS
        + """
.tk-view{color:var(--tk-text);font-family:var(--jp-ui-font-family,system-ui,sans-serif);
 font-size:13px;line-height:1.45}
.tk-view p{margin:.35em 0;max-width:60em}
.tk-view .tk-head{font-size:15px}
.tk-view .tk-muted{color:var(--tk-muted)}
.tk-view .tk-problem{border-left:4px solid var(--tk-bad);padding:.3em .8em;margin:.5em 0;
 white-space:pre-line}
.tk-view .tk-figure{margin:.6em 0}
.tk-view .tk-figure svg{display:block;max-width:100%;height:auto}
.tk-view .tk-hover rect:hover{fill:var(--tk-muted);fill-opacity:.18}
.tk-view .tk-figures{display:grid;gap:0 2em;
 grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr))}
.tk-view .tk-side{display:flex;flex-wrap:wrap;gap:0 2.2em;align-items:flex-start}
.tk-view .tk-side>div{max-width:100%}
.tk-view .tk-scroll{overflow-x:auto;margin:.5em 0 .2em;
 border-right:2px solid transparent;scrollbar-width:thin;
 --tk-shade:color-mix(in srgb,var(--tk-muted) 45%,transparent);
 --tk-page:var(--jp-layout-color0,var(--vscode-editor-background,Canvas));
 background:linear-gradient(to right,var(--tk-page) 60%,transparent) 0 0/2.5em 100%,
 linear-gradient(to left,var(--tk-page) 60%,transparent) 100% 0/2.5em 100%,
 linear-gradient(to right,var(--tk-shade),transparent) 0 0/.9em 100%,
 linear-gradient(to left,var(--tk-shade),transparent) 100% 0/.9em 100%;
 background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}
.tk-view .tk-save{margin:0 0 .9em;font-size:12px}
.tk-view .tk-save a{color:var(--tk-good)}
.tk-view .tk-save input{font:inherit;margin-left:1em;width:9em;color:inherit;background:transparent;
 border:1px solid var(--tk-muted);border-radius:2px}
.tk-view th[aria-sort]{cursor:pointer}
.tk-view th[aria-sort=ascending]::after{content:" \\2191"}
.tk-view th[aria-sort=descending]::after{content:" \\2193"}
.tk-view table{color:inherit;border-collapse:collapse;font-size:12px;
 font-variant-numeric:tabular-nums;margin:0}
.tk-view caption{text-align:left;font-weight:600;font-size:13px;padding:.2em 0 .35em;
 color:var(--tk-text);caption-side:top}
.tk-view table :is(th,td){padding:.22em .7em;text-align:left;white-space:nowrap;
 vertical-align:middle}
.tk-view th{font-weight:600;border-bottom:1px solid var(--tk-muted)}
.tk-view tbody th{border-bottom:0;font-weight:400}
.tk-view tbody tr:nth-child(even){background:color-mix(in srgb,var(--tk-grid) 38%,transparent)}
.tk-view tr[aria-current] :is(th,td){font-weight:600;
 box-shadow:inset 0 1px var(--tk-muted),inset 0 -1px var(--tk-muted)}
.tk-view table .tk-number{text-align:right}
.tk-view th[title]{text-decoration:underline dotted var(--tk-muted);text-underline-offset:3px;
 cursor:help}
.tk-view .tk-bar{display:block;height:.75em;min-width:1px;border-radius:1px}
.tk-view .tk-track{display:block;width:9em}
.tk-view .tk-left{margin-left:auto}
.tk-view .tk-good{background:var(--tk-good)}
.tk-view .tk-bad{background:var(--tk-bad)}
.tk-view .tk-done{background:var(--tk-accent);min-width:0}
.tk-view .tk-frame{border:1px solid var(--tk-muted);border-radius:2px}
.tk-view details>summary{cursor:pointer;width:fit-content;padding:.1em .3em}
.tk-view pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;margin:.3em 0;
 padding:.6em .8em;border:1px solid var(--tk-grid);background:transparent;color:var(--tk-text)}
.tk-view :focus-visible,.tk-controls :is(select,input,button):focus-visible{
 outline:2px solid var(--jp-brand-color1,#0072b2)!important;outline-offset:1px}
"""
    )
    .replace("\n ", "")
    .strip()
)
"""The style sheet of every view, with the colours of the page's theme."""


@dataclass(frozen=True, slots=True)
class HtmlColumn:
    """One column of a table: its column of the frame, its heading, and the format of values.

    - ``name``, ``heading``: column of the frame, and text above it
    - ``write``: value -> text, which is escaped
    - ``meaning``: tooltip of the heading
    - ``number``: whether the column is aligned to the right
    - ``html``: whether `write` returns HTML of this package, which is not escaped
    """

    name: str
    heading: str
    write: Callable[[Any], str] = str
    meaning: str = ""
    number: bool = True
    html: bool = False


def view(*parts: str) -> str:
    """Join HTML parts, and add the style sheet."""
    return f'<style>{STYLE}</style><div class="tk-view">{"".join(parts)}</div>'


def note(text: str, kind: str = "tk-muted") -> str:
    """Return a paragraph; empty for an empty text."""
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def problem(text: str) -> str:
    """Return an error message that screen readers announce; empty for an empty text."""
    return f'<div class="tk-problem" role="alert">{escape(text)}</div>' if text else ""


def folded_code(code: str) -> str:
    """Return the code of a view, folded."""
    return f"<details><summary>Code of this view</summary><pre>{escape(code)}</pre></details>"


def table(
    caption: str,
    frame: pd.DataFrame,
    columns: Sequence[HtmlColumn],
    *,
    marked: Iterable[bool] = (),
    empty: str = "no rows",
) -> str:
    """Return a frame as a table; a missing value is a dash, never 0.

    Parameters
    ----------
    caption : str
        Text above the table.
    frame : DataFrame
        Rows of the table.
    columns : sequence of HtmlColumn
        Columns to show; the first one is the header of the row.
    marked : iterable of bool, optional
        Whether each row is highlighted.
    empty : str, default "no rows"
        Text of a table without rows.

    Examples
    --------
    >>> frame = pd.DataFrame({"coin": ["<BTC>"], "net": [None]})
    >>> columns = [HtmlColumn("coin", "coin", number=False), HtmlColumn("net", "net")]
    >>> html = table("Net", frame, columns)
    >>> "&lt;BTC&gt;" in html, "<BTC>" in html, "\N{EM DASH}" in html
    (True, False, True)
    """
    head = "".join(_heading_cell(column) for column in columns)
    marks = [*marked]
    cells = [[_cell_text(column, value) for value in frame[column.name]] for column in columns]
    rows = "".join(
        _table_row(number, row, columns, marks)
        for number, row in enumerate(zip(*cells, strict=True))
    )
    if not len(frame):
        rows = f'<tr><td colspan="{len(columns)}" class="tk-muted">{escape(empty)}</td></tr>'
    name = escape(caption)
    save = ""
    if len(frame):
        links = " ".join(
            f'<a download="{file.name}" href="{file.address}" '
            f'aria-label="Save as {file.kind}: {name}">{file.kind}</a>'
            for file in downloads(caption, frame, [column.name for column in columns])
        )
        save = f'<p class="tk-save">{links}</p>'
    return (
        f'<div><div class="tk-scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table><caption>{name}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{save}</div>"
    )


def _heading_cell(column: HtmlColumn) -> str:
    title = f' title="{escape(column.meaning)}"' if column.meaning else ""
    return f'<th scope="col"{_css_class(column)}{title}>{escape(column.heading)}</th>'


def _table_row(
    number: int, cells: Sequence[str], columns: Sequence[HtmlColumn], marks: list[bool]
) -> str:
    current = ' aria-current="true"' if number < len(marks) and marks[number] else ""
    first = f'<th scope="row"{_css_class(columns[0])}>{cells[0]}</th>'
    rest = "".join(
        f"<td{_css_class(column)}>{cell}</td>"
        for column, cell in zip(columns[1:], cells[1:], strict=True)
    )
    return f"<tr{current}>{first}{rest}</tr>"


def _css_class(column: HtmlColumn) -> str:
    return ' class="tk-number"' if column.number else ""


def _cell_text(column: HtmlColumn, value: Any) -> str:
    if not column.html and pd.isna(value):
        return formats.MISSING
    text = column.write(value)
    return text if column.html else escape(text)


def signed_usd(value: Any) -> str:
    """Return an amount with its sign."""
    return formats.usd_amount(value, signed=True)


def signed_share(value: Any) -> str:
    """Return a share in percent with its sign."""
    return formats.true_minus(f"{100 * value:+.2f} %")


def time_text(value: Any) -> str:
    """Return a time in seconds."""
    return f"{value:%Y-%m-%d %H:%M:%S}"
