"""The page of an executed notebook: one self-contained HTML file."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, Final

from markdown_it import MarkdownIt

from toolkit.errors import ReportFailed
from toolkit.reports import blocks
from toolkit.reports.blocks import FACTS

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


def make_page(notebook: Any, *, code: bool = False) -> ReportPage:
    """Return the page of an executed notebook.

    - ``notebook``: its Markdown cells are the prose; headings of the second level are the table of
      contents. HTML outputs are not changed, so they must be escaped, as in pandas and in this
      package.
    - ``code``: whether to show the code, folded

    Raise ReportFailed if an output would load something from outside the page.
    """
    facts: dict[str, Any] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            facts |= output.get("data", {}).get(FACTS, {})
    head, title = "", str(facts.get("title", ""))
    sections: dict[str, dict[str, Any]] = {"": {"id": "", "heading": "", "parts": []}}
    parts = sections[""]["parts"]
    for cell in notebook.cells:
        for tag, words, html in _split_prose(cell):
            if tag == "h2":
                name = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "section"
                names = (name, *(f"{name}-{number}" for number in range(2, len(sections) + 2)))
                name = next(each for each in names if each not in sections)
                parts = []
                sections[name] = {"id": name, "heading": words, "parts": parts}
            elif tag and not title:  # a report without a title block
                title, simulated = words, bool(facts.get("simulated", False))
                line = str(facts.get("source", ""))
                head = blocks.title("Report", title, line, simulated=simulated).html
            parts.append(html)
        if cell.cell_type == "code" and code and "hidden" not in cell.metadata.get("tags", []):
            folded = f"<summary>code</summary><pre><code>{escape(cell.source)}</code></pre>"
            parts.append(f"<details>{folded}</details>")
        for html, is_head in _cell_outputs(cell):
            if is_head:
                head = html
            else:
                parts.append(html)
    title = title or "Report"
    html = blocks.render_part("page.html", title=title, head=head, sections=[*sections.values()])
    return ReportPage(html, title, facts)


def _split_prose(cell: Any) -> Iterator[tuple[str, str, str]]:
    """Yield each heading of the first two levels with its tag, and the HTML below it.

    What precedes the first heading has an empty tag.
    """
    if cell.cell_type == "markdown":
        tokens = _MARKDOWN.parse(cell.source)
        is_head = [each.type == "heading_open" and each.tag in ("h1", "h2") for each in tokens]
        heads = [place for place, found in enumerate(is_head) if found]
        for start, end in pairwise([None, *heads, len(tokens)]):
            tag, words = (
                ("", "") if start is None else (tokens[start].tag, tokens[start + 1].content)
            )
            prose = tokens[0 if start is None else start + 3 : end]
            yield tag, words, _MARKDOWN.renderer.render(prose, _MARKDOWN.options, {})


def _cell_outputs(cell: Any) -> Iterator[tuple[str, bool]]:
    """Yield the HTML of each output of a cell, and whether it is the head of the page."""
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
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
        if "<table" in html and 'class="tk-scroll"' not in html:
            scroll = 'class="tk-scroll" role="region" aria-label="Table" tabindex="0"'
            return f"<div {scroll}>{html}</div>"
        return html
    for kind in ("image/svg+xml", "image/png"):
        if content := data.get(kind):
            if kind != "image/png":
                content = base64.b64encode(content.encode()).decode()
            alt = escape(str(metadata.get("alt", "A figure without a description.")))
            return f'<figure><img alt="{alt}" src="data:{kind};base64,{content.strip()}"></figure>'
    if "application/vnd.jupyter.widget-view+json" in data:
        return ""  # a widget, such as a progress bar, needs a running kernel
    return f"<pre>{escape(str(data.get('text/plain', '')))}</pre>"
