"""Blocks of a report: title, headline numbers, paragraphs, figures, checks, provenance.

A block has the same HTML in a notebook and in the page of a report. Text is escaped.
"""

import base64
import hashlib
import io
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from toolkit.display import count_text
from toolkit.plots import figures
from toolkit.plots.style import NO_METADATA
from toolkit.reports.sentences import Headline
from toolkit.times import to_iso

FACTS: Final = "application/vnd.exchange-toolkit.facts+json"
"""The MIME type of the facts of a block. The page and the command line read them."""

Draw = Callable[..., Axes | Figure]

_LIBRARIES: Final = ("exchange-toolkit", "pandas", "numpy", "pyarrow", "matplotlib")
_TIMES: Final = ("start", "end")
_MAX_NAMES: Final = 12  # the most names of a list that the page shows
_PIXELS: Final = 120  # per inch: a figure of usual size is as wide as the page
# By default an SVG contains random ids.
_FIXED_IDS: Final[Any] = {"svg.hashsalt": "toolkit", "svg.fonttype": "path"}
_PARTS: Final = Environment(
    loader=PackageLoader("toolkit.reports", "parts"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render_part(part: str, **values: object) -> str:
    """Return a part of a page as HTML.

    - ``part``: file name of the template in the folder ``parts``
    - ``**values``: values that the template shows. Text is escaped; only the templates contain
      HTML.

    >>> "<script>" in render_part("words.html", paragraphs=["<script>"], lead=True)
    False
    """
    return _PARTS.get_template(part).render(**values)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a report, which shows itself in a notebook.

    - ``html``, ``text``: the part as HTML and as plain text
    - ``facts``: what the page and the command line read
    """

    html: str
    text: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        shown: dict[str, Any] = {"text/html": self.html, "text/plain": self.text}
        return {**shown, FACTS: dict(self.facts)} if self.facts else shown


def title(kind: str, subject: str, line: str = "", *, simulated: bool = False) -> Block:
    """Return the title of a report.

    Parameters
    ----------
    kind : str
        Kind of report, such as ``"Wallet report"``.
    subject : str
        Subject, such as an address.
    line : str, default ""
        Period and source.
    simulated : bool, default False
        Whether the data is simulated.
    """
    html = render_part("title.html", kind=kind, subject=subject, line=line, simulated=simulated)
    text = f"{kind}: {subject}"
    return Block(html, text, {"title": text, "subject": subject})


def tiles(headlines: Sequence[Headline | tuple[str, str] | tuple[str, str, str]]) -> Block:
    """Return headline numbers: label, value, note.

    Examples
    --------
    >>> print(tiles([("net", "+1,160.77 USD", "after fees")])._repr_mimebundle_()["text/plain"])
    net: +1,160.77 USD (after fees)
    """
    rows = [Headline(*headline)[:3] for headline in headlines]
    text = "\n".join(f"{label}: {value} ({note})" for label, value, note in rows)
    return Block(render_part("tiles.html", rows=rows), text, {"headlines": [*map(list, rows)]})


def words(text: str | Sequence[str], *, lead: bool = False) -> Block:
    """Return a computed paragraph, or several; with `lead` in larger letters."""
    paragraphs = [text] if isinstance(text, str) else text
    html = render_part("words.html", paragraphs=paragraphs, lead=lead)
    return Block(html, "\n".join(paragraphs))


def figure(draw: Draw, *results: object, caption: str, **options: object) -> Block:
    """Return a figure of results in both themes.

    Parameters
    ----------
    draw : callable
        A function of `toolkit.plots`, or one that takes ``theme`` and ``transparent`` as they do.
    *results
        Arguments of `draw`.
    caption : str
        Text below the figure.
    **options
        Options of `draw`.
    """
    parts: dict[str, Any] = {"caption": caption}
    for theme in ("dark", "light"):
        drawn, buffer = draw(*results, theme=theme, transparent=True, **options), io.BytesIO()
        shown = figures.root_figure(drawn)
        with mpl.rc_context(_FIXED_IDS):
            shown.savefig(buffer, format="svg", metadata=NO_METADATA)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        parts[theme] = f"data:image/svg+xml;base64,{data}"
    parts["width"], parts["height"] = (round(_PIXELS * size) for size in shown.get_size_inches())
    alt = figures.alt(drawn)
    return Block(render_part("figure.html", alt=alt, **parts), alt)


def draw_rows(draw: Draw, rows: pd.DataFrame, caption: str) -> Block:
    """Return a figure of rows; nothing without rows, because its axes would be empty."""
    return Block("", "") if rows.empty else figure(draw, rows, caption=caption)


def join(*blocks: Block) -> Block:
    """Return any number of blocks as one, one below the other."""
    return Block("\n".join(block.html for block in blocks), "\n".join(b.text for b in blocks))


def checks(rows: Sequence[Headline | tuple[str, str, str]]) -> Block:
    """Return checks: name, result and meaning of each."""
    html = render_part("checks.html", checks=[row[:3] for row in rows])
    return Block(html, "\n".join(f"{row[0]}: {row[1]}" for row in rows))


def provenance(
    frames: Mapping[str, pd.DataFrame | None],
    parameters: Mapping[str, object],
    source: str,
    *,
    simulated: bool,
) -> Block:
    """Return the provenance of a report: parameters, fetched frames, versions of libraries.

    The time of the requests is left out: the same data must give the same page.

    Parameters
    ----------
    frames : mapping
        Name -> fetched frame, or None for a missing frame.
    parameters : mapping
        Parameters of the report.
    source : str
        Label of the source.
    simulated : bool
        Whether the source is simulated.
    """
    sources = [_describe_frame(name, frame) for name, frame in frames.items() if frame is not None]
    facts = {"sources": sources, "source": source, "simulated": simulated}
    versions = {name: version(name) for name in _LIBRARIES} | {"Python": platform.python_version()}
    html = render_part("provenance.html", parameters=parameters, versions=versions, **facts)
    return Block(html, "\n".join(f"{each['name']}: {each['digest']}" for each in sources), facts)


def _describe_frame(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the request of a frame, its rows, and the SHA-256 of the rows as CSV."""
    facts: Mapping[str, Any] = frame.attrs.get("toolkit", {})
    csv = frame.to_csv(index=False, lineterminator="\n")
    return {
        "name": name,
        "operation": str(facts.get("operation", "")),
        "parameters": [
            f"{key} = {_parameter_text(key, value)}"
            for key, value in facts.get("parameters", {}).items()
        ],
        "rows": len(frame),
        "complete": str(facts.get("complete", "")),
        "digest": hashlib.sha256(csv.encode()).hexdigest(),
    }


def _parameter_text(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        others = len(value) - _MAX_NAMES
        shown = ", ".join(map(str, value[:_MAX_NAMES]))
        return f"{shown} and {count_text(others, 'other')}" if others > 0 else shown
    return to_iso(value) if name in _TIMES and isinstance(value, int) else str(value) or '""'
