"""The page of an executed notebook: one self-contained HTML file."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

from markdown_it import MarkdownIt

from toolkit.errors import ReportFailed
from toolkit.reports.blocks import FACTS, TitleBlock
from toolkit.reports.html_parts import render_part

_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")
_OUTSIDE: Final = re.compile(
    r"""<(?:script|iframe|object|embed|link|base)\b|\bsrc(?:set)?\s*=\s*["']?(?:https?:)?//|@import|"""
    r"""url\(\s*["']?(?:https?:)?//""",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page, its title, and facts about it.

    - ``html``: the page
    - ``title``: title of the page
    - ``facts``: facts from the blocks for the command line: ``subject``, ``headlines``, ``sources``
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


def make_page(notebook: Any, *, code: bool = False) -> ReportPage:
    """Return the page of an executed notebook.

    - ``notebook``: its Markdown cells are the prose; headings of the second level are the table of
      contents. HTML outputs are not changed, so they must be escaped, as in pandas and in this
      package.
    - ``code``: whether to show the code, folded

    Raise ReportFailed if an output would load something from outside the page.
    """
    facts = _collect_facts(notebook)
    head, title = "", str(facts.get("title", ""))
    sections = [_Section("", "")]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = _add_prose(cell.source, sections)
            if heading and not title:
                title = heading
                head = render_part("title.html", title=_plain_title(heading, facts))
        elif cell.cell_type == "code":
            if code and "hidden" not in cell.metadata.get("tags", []):
                sections[-1].parts.append(_folded_code(cell.source))
            for html, is_head in _cell_outputs(cell):
                if is_head:
                    head = html
                elif html:  # a progress bar is a widget, and appears only if a fetch takes long
                    sections[-1].parts.append(html)
    html = render_part(
        "page.html",
        title=title or "Report",
        head=head,
        opening=sections[0].html,
        sections=sections[1:],
    )
    return ReportPage(html, title or "Report", facts)


def _collect_facts(notebook: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            facts |= output.get("data", {}).get(FACTS, {})
    return facts


def _plain_title(heading: str, facts: Mapping[str, Any]) -> TitleBlock:
    """Return a title from the first heading and the source, for a report without a title block."""
    simulated = bool(facts.get("simulated", False))
    return TitleBlock("Report", heading, str(facts.get("source", "")), simulated)


def _add_prose(source: str, sections: list[_Section]) -> str:
    """Add a Markdown cell to the sections, and return its first-level heading, if any.

    A heading of the second level begins a section.
    """
    tokens = _MARKDOWN.parse(source)
    title = ""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            words = tokens[place + 1].content
            if token.tag == "h2":
                sections.append(_Section(_section_id(words, sections), words))
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


def _section_id(words: str, sections: list[_Section]) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "section"
    taken = {section.id for section in sections}
    candidates = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _cell_outputs(cell: Any) -> Iterator[tuple[str, bool]]:
    """Yield the HTML of each output of a cell, and whether it is the head of the page."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            if output.name == "stdout":
                yield f"<pre>{escape(output.text)}</pre>", False
        elif output.output_type in ("display_data", "execute_result"):
            html = _output_html(output.data, output.get("metadata", {}))
            outside = _OUTSIDE.search(html)
            if outside:
                raise ReportFailed(
                    f"An output would load something from outside the page ({outside.group()}...), "
                    f"but a report is one self-contained file. The cell: {cell.source[:200]}"
                )
            yield html, "title" in output.data.get(FACTS, {})


def _output_html(data: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    if "text/html" in data:
        html = str(data["text/html"])
        return _scrollable(html) if "<table" in html and 'class="scroll"' not in html else html
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            return _image_html(kind, data[kind], metadata)
    if "application/vnd.jupyter.widget-view+json" in data:
        return ""  # a widget needs a running kernel
    return f"<pre>{escape(str(data.get('text/plain', '')))}</pre>"


def _scrollable(html: str) -> str:
    return f'<div class="scroll" role="region" aria-label="Table" tabindex="0">{html}</div>'


def _image_html(kind: str, content: str, metadata: Mapping[str, Any]) -> str:
    encoded = content if kind == "image/png" else base64.b64encode(content.encode()).decode()
    alt = escape(str(metadata.get("alt", "A figure without a description.")))
    return f'<figure><img alt="{alt}" src="data:{kind};base64,{encoded.strip()}"></figure>'


def _folded_code(source: str) -> str:
    return f"<details><summary>code</summary><pre><code>{escape(source)}</code></pre></details>"
