"""From a notebook that has run to one HTML page that needs nothing else."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt

from toolkit.errors import ReportFailed
from toolkit.reports.blocks import FACTS, Title
from toolkit.reports.filling import fill

__all__ = ["Page", "page_of"]

_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
_OUTSIDE: Final = re.compile(
    r"""<(?:script|iframe|object|embed|link|base)\b|\bsrc(?:set)?\s*=\s*["']?(?:https?:)?//|@import|"""
    r"""url\(\s*["']?(?:https?:)?//""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and what it says of itself.

    Attributes
    ----------
    html : str
        The page.
    title : str
        Its title.
    facts : mapping
        What its blocks tell the command line: ``subject``, ``headlines``, ``sources``.
    """

    html: str
    title: str
    facts: Mapping[str, Any]


@dataclass(slots=True)
class _Section:
    id: str
    heading: str
    parts: list[str] = field(default_factory=list)

    @property
    def html(self) -> str:
        return "\n".join(self.parts)


def page_of(notebook: Any, *, code: bool = False) -> Page:
    """Make the page of a notebook that has run.

    Parameters
    ----------
    notebook : notebook
        Its Markdown cells are the prose; headings of the second level make the table of contents.
        Of its outputs the HTML is taken as it is, so it has to be escaped already, as that of
        pandas and of this package is.
    code : bool, default False
        Whether to show its code as well, folded.

    Raises
    ------
    ReportFailed
        If an output would load something from elsewhere.
    """
    facts = _facts(notebook)
    head, title = "", str(facts.get("title", ""))
    sections = [_Section("", "")]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = _read_prose(cell.source, sections)
            if heading and not title:
                title = heading
                head = fill("title.html", title=_plain_title(heading, facts))
        elif cell.cell_type == "code":
            if code and "hidden" not in cell.metadata.get("tags", []):
                sections[-1].parts.append(_folded(cell.source))
            for html, is_head in _shown(cell):
                if is_head:
                    head = html
                else:
                    sections[-1].parts.append(html)
    html = fill(
        "page.html",
        title=title or "Report",
        head=head,
        opening=sections[0].html,
        sections=sections[1:],
    )
    return Page(html, title or "Report", facts)


def _facts(notebook: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            facts |= output.get("data", {}).get(FACTS, {})
    return facts


def _plain_title(heading: str, facts: Mapping[str, Any]) -> Title:
    """Head a report that has no title of its own: by its first heading and its source."""
    simulated = bool(facts.get("simulated", False))
    return Title("Report", heading, str(facts.get("source", "")), simulated)


def _read_prose(source: str, sections: list[_Section]) -> str:
    """Add a Markdown cell to the sections; a heading of the second level opens one."""
    tokens = _MARKDOWN.parse(source)
    title = ""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            words = tokens[place + 1].content
            if token.tag == "h2":
                sections.append(_Section(_id(words, sections), words))
            else:
                title = words
            place += 3
            continue
        until = next(
            (
                later
                for later in range(place, len(tokens))
                if tokens[later].type == "heading_open" and tokens[later].tag in ("h1", "h2")
            ),
            len(tokens),
        )
        sections[-1].parts.append(
            _MARKDOWN.renderer.render(tokens[place:until], _MARKDOWN.options, {})
        )
        place = until
    return title


def _id(words: str, sections: list[_Section]) -> str:
    wanted = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "section"
    taken = {section.id for section in sections}
    tries = (wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 2)))
    return next(one for one in tries if one not in taken)


def _shown(cell: Any) -> Iterator[tuple[str, bool]]:
    """Give the HTML of each output of a cell, and whether it is the head of the page."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            if output.name == "stdout":
                yield f"<pre>{escape(output.text)}</pre>", False
        elif output.output_type in ("display_data", "execute_result"):
            html = _html(output.data, output.get("metadata", {}))
            outside = _OUTSIDE.search(html)
            if outside:
                raise ReportFailed(
                    f"an output would load something from elsewhere ({outside.group()}...), and a "
                    f"report is one file that needs nothing else. The cell: {cell.source[:200]}"
                )
            yield html, "title" in output.data.get(FACTS, {})


def _html(data: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    if "text/html" in data:
        html = str(data["text/html"])
        return _scrolled(html) if "<table" in html and 'class="scroll"' not in html else html
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            return _picture(kind, data[kind], metadata)
    if "application/vnd.jupyter.widget-view+json" in data:
        return ""  # a widget without a kernel shows nothing
    return f"<pre>{escape(str(data.get('text/plain', '')))}</pre>"


def _scrolled(html: str) -> str:
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{html}</div>'


def _picture(kind: str, content: str, metadata: Mapping[str, Any]) -> str:
    encoded = content if kind == "image/png" else base64.b64encode(content.encode()).decode()
    alt = escape(str(metadata.get("alt", "A figure without a description.")))
    return f'<figure><img alt="{alt}" src="data:{kind};base64,{encoded.strip()}"></figure>'


def _folded(source: str) -> str:
    return f"<details><summary>code</summary><pre><code>{escape(source)}</code></pre></details>"
