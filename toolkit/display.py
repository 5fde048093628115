"""What notebooks show of things that are no frames: small tables of facts."""

from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["facts_table", "frames_html"]


def facts_table(caption: str, facts: Mapping[str, Any]) -> str:
    """Write facts as an HTML table, one a row; every text is escaped.

    Parameters
    ----------
    caption : str
        What they are about.
    facts : mapping
        Name -> value; facts within facts are written as ``name = value``.

    Examples
    --------
    >>> facts_table("Session", {"rows": 1234, "label": "<b>"})
    '<table><caption>Session</caption>...>1,234</td>...>&lt;b&gt;</td></tr></tbody></table>'
    """
    rows = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_text(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def frames_html(frames: Mapping[str, Any]) -> str:
    """Write named frames as HTML, below each other, each as notebooks show it."""
    return "".join(
        f"<p><b>{escape(name)}</b>, {len(frame):,} {'row' if len(frame) == 1 else 'rows'}</p>"
        f"{frame._repr_html_()}"
        for name, frame in frames.items()
    )


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_text(one)}" for name, one in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "unknown" if value is None else str(value)
