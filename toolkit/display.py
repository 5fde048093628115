"""Texts for people: counts, times, and small tables of facts for notebooks."""

import datetime as dt
import re
from collections.abc import Mapping
from html import escape
from typing import Any, Final

_TIMES: Final = ("start", "end")
"""Names of facts that are Unix milliseconds."""

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_CURSOR: Final = re.compile(r"(\d{12,13})(_.*)?")


def count_text(count: int, one: str, many: str = "") -> str:
    """Return a number with a noun, or with a noun and a verb; `many` is `one` and an s by default.

    Examples
    --------
    >>> count_text(1, "row"), count_text(1_200, "row"), count_text(2, "row lies", "rows lie")
    ('1 row', '1,200 rows', '2 rows lie')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def type_text(value: object) -> str:
    """Return the type of a value with its article, for a message about a wrong value.

    Examples
    --------
    >>> type_text(5), type_text("5"), type_text(None)
    ('an int', 'a str', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def short_amount(value: float) -> str:
    """Return an amount in as few characters as possible.

    Examples
    --------
    >>> [short_amount(value) for value in (500, 1_000, 250_000, 1_000_000)]
    ['500', '1k', '250k', '1M']
    """
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def snake_case(name: str) -> str:
    """Return a name in camel case as words in lower case with `_` in front of each capital.

    Examples
    --------
    >>> snake_case("userFills")
    'user_fills'
    """
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def time_text(time: Any) -> str:
    """Return a time in one short line, to the millisecond.

    Parameters
    ----------
    time : int, str or Timestamp
        Unix milliseconds, ISO text in UTC, or a Timestamp in UTC.

    Examples
    --------
    >>> time_text(1756684800000), time_text("2025-09-01T00:00:00.250Z")
    ('2025-09-01 00:00:00 UTC', '2025-09-01 00:00:00.250 UTC')
    """
    if time != time:  # NaT
        return "NaT"
    if isinstance(time, int):
        time = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=time)
    day, _, clock = str(time).replace(" ", "T").removesuffix("+00:00").rstrip("Z").partition("T")
    whole, _, part = clock.partition(".")
    return f"{day} {whole}{'.' + part[:3] if part.strip('0') else ''} UTC"


def facts_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Return facts as an HTML table, one in each row; all texts are escaped.

    Parameters
    ----------
    caption : str
        The subject of the facts.
    facts : mapping
        Name -> value; nested facts are written as ``name = value``.

    Examples
    --------
    >>> facts_table("Session", {"rows": 1234, "label": "<b>"})
    '<table><caption>Session</caption>...>1,234</td>...>&lt;b&gt;</td></tr></tbody></table>'
    """
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_format_value(value, name))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def frames_html(frames: Mapping[str, Any]) -> str:
    """Return named frames as HTML, below each other, each as notebooks show it."""
    return "".join(
        f"<p><b>{escape(name)}</b>, {count_text(len(frame), 'row')}</p>{frame._repr_html_()}"
        for name, frame in frames.items()
    )


def _format_value(value: Any, name: str = "") -> str:
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{key} = {_format_value(item, key)}" for key, item in value.items())
            or "none"
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return time_text(value) if name in _TIMES and value else f"{value:,}"
    if isinstance(value, str) and (cursor := _CURSOR.fullmatch(value)):
        return f"{time_text(int(cursor[1]))} ({value})"
    if isinstance(value, str) and _ISO.fullmatch(value):
        return time_text(value)
    return "unknown" if value is None else str(value)
