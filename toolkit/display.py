"""The display of objects that are not frames in notebooks: small tables of facts."""

from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["facts_table", "frames_html"]


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
        f'<td style="text-align:left">{escape(_format_value(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def frames_html(frames: Mapping[str, Any]) -> str:
    """Return named frames as HTML, below each other, each as notebooks show it."""
    return "".join(
        f"<p><b>{escape(name)}</b>, {len(frame):,} {'row' if len(frame) == 1 else 'rows'}</p>"
        f"{frame._repr_html_()}"
        for name, frame in frames.items()
    )


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            ", ".join(f"{name} = {_format_value(item)}" for name, item in value.items()) or "none"
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "unknown" if value is None else str(value)
