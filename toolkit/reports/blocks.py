"""Blocks of a report: title, headline numbers, paragraphs, figures, checks, provenance.

A block has the same HTML in a notebook and in the page of a report. Text is escaped.
"""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Final, Protocol

import pandas as pd

from toolkit.display import count_text
from toolkit.reports.figures import Draw, PageFigure, draw_page_figure
from toolkit.reports.html_parts import render_part
from toolkit.reports.sentences import Headline
from toolkit.times import to_iso

FACTS: Final = "application/vnd.exchange-toolkit.facts+json"
"""The MIME type of the facts of a block. The page and the command line read them."""


class Block(Protocol):
    """A part of a report, which shows itself in a notebook."""

    def _repr_mimebundle_(self) -> dict[str, Any]: ...


_LIBRARIES: Final = ("exchange-toolkit", "pandas", "numpy", "pyarrow", "matplotlib")
_TIMES: Final = ("start", "end")
_MAX_NAMES: Final = 12  # the most names of a list that the page shows


@dataclass(frozen=True, slots=True)
class FrameSource:
    """The provenance of one frame of a report.

    - ``name``, ``operation``: name of the frame in the report, and operation of the service
    - ``parameters``: parameters of the request as ``name = value``
    - ``rows``: number of rows
    - ``complete``: ``yes``, or how complete the rows are
    - ``digest``: SHA-256 of the rows, as `frame_digest` computes it
    """

    name: str
    operation: str
    parameters: list[str]
    rows: int
    complete: str
    digest: str


def describe_frames(frames: Mapping[str, pd.DataFrame | None]) -> list[FrameSource]:
    """Return the provenance of the frames of a report; missing frames are left out.

    The time of the request is left out, too: the same data must give the same page.
    """
    return [_describe_frame(name, frame) for name, frame in frames.items() if frame is not None]


def frame_digest(frame: pd.DataFrame) -> str:
    r"""Return the SHA-256 of a frame as CSV.

    Examples
    --------
    >>> frame_digest(pd.DataFrame({"a": [1]})) == hashlib.sha256(b"a\n1\n").hexdigest()
    True
    """
    csv = frame.to_csv(index=False, lineterminator="\n")
    return hashlib.sha256(csv.encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that compute and draw."""
    libraries = {name: version(name) for name in _LIBRARIES}
    return {**libraries, "Python": platform.python_version()}


def _describe_frame(name: str, frame: pd.DataFrame) -> FrameSource:
    facts: Mapping[str, Any] = frame.attrs.get("toolkit", {})
    parameters = facts.get("parameters", {})
    return FrameSource(
        name=name,
        operation=str(facts.get("operation", "")),
        parameters=[f"{key} = {_parameter_text(key, value)}" for key, value in parameters.items()],
        rows=len(frame),
        complete=str(facts.get("complete", "")),
        digest=frame_digest(frame),
    )


def _parameter_text(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        others = len(value) - _MAX_NAMES
        shown = ", ".join(map(str, value[:_MAX_NAMES]))
        return f"{shown} and {count_text(others, 'other')}" if others > 0 else shown
    return to_iso(value) if name in _TIMES and isinstance(value, int) else str(value) or '""'


@dataclass(frozen=True, slots=True)
class TitleBlock:
    """The head of a report: its kind, its subject, the period and the source."""

    kind: str
    subject: str
    line: str
    simulated: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        facts = {"title": f"{self.kind}: {self.subject}", "subject": self.subject}
        return _bundle(render_part("title.html", title=self), f"{self.kind}: {self.subject}", facts)


@dataclass(frozen=True, slots=True)
class TileBlock:
    """Headline numbers side by side."""

    headlines: Sequence[Headline]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines = [headline.text for headline in self.headlines]
        facts = {"headlines": [list(headline) for headline in self.headlines]}
        return _bundle(render_part("tiles.html", headlines=self.headlines), "\n".join(lines), facts)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Computed paragraphs."""

    paragraphs: Sequence[str]
    lead: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return _bundle(render_part("words.html", words=self), "\n".join(self.paragraphs))


@dataclass(frozen=True, slots=True)
class CaptionedFigure:
    """A figure with its caption."""

    figure: PageFigure
    caption: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        html = render_part("figure.html", figure=self.figure, caption=self.caption)
        return _bundle(html, self.figure.alt)


@dataclass(frozen=True, slots=True)
class CheckBlock:
    """Checks: name, result and meaning of each."""

    rows: Sequence[tuple[str, str, str]]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines = [f"{name}: {value}" for name, value, _ in self.rows]
        return _bundle(render_part("checks.html", checks=self.rows), "\n".join(lines))


@dataclass(frozen=True, slots=True)
class ProvenanceBlock:
    """The provenance of a report: parameters, fetched frames, versions of libraries."""

    parameters: Mapping[str, object]
    sources: Sequence[FrameSource]
    versions: Mapping[str, str]
    source: str
    simulated: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        html = render_part("provenance.html", provenance=self)
        facts = {
            "sources": [asdict(source) for source in self.sources],
            "source": self.source,
            "simulated": self.simulated,
        }
        return _bundle(
            html, "\n".join(f"{source.name}: {source.digest}" for source in self.sources), facts
        )


@dataclass(frozen=True, slots=True)
class BlockList:
    """Any number of blocks, one below the other."""

    blocks: Sequence[Block]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundles = [block._repr_mimebundle_() for block in self.blocks]
        joined = {kind: "\n".join(bundle[kind] for bundle in bundles) for kind in _JOINED_TYPES}
        return _bundle(joined["text/html"], joined["text/plain"])


_JOINED_TYPES: Final = ("text/html", "text/plain")


def title(kind: str, subject: str, line: str = "", *, simulated: bool = False) -> TitleBlock:
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
    return TitleBlock(kind, subject, line, simulated)


def tiles(headlines: Sequence[Headline | tuple[str, str] | tuple[str, str, str]]) -> TileBlock:
    """Return headline numbers: label, value, note.

    Examples
    --------
    >>> print(tiles([("net", "+1,160.77 USD", "after fees")])._repr_mimebundle_()["text/plain"])
    net: +1,160.77 USD (after fees)
    """
    return TileBlock([Headline(*headline) for headline in headlines])


def words(text: str | Sequence[str], *, lead: bool = False) -> TextBlock:
    """Return a computed paragraph, or several; with `lead` in larger letters."""
    return TextBlock([text] if isinstance(text, str) else text, lead)


def figure(draw: Draw, *results: object, caption: str, **options: object) -> CaptionedFigure:
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
    return CaptionedFigure(draw_page_figure(draw, *results, **options), caption)


def checks(rows: Sequence[Headline | tuple[str, str, str]]) -> CheckBlock:
    """Return checks: name, result and meaning of each."""
    return CheckBlock([(name, value, meaning) for name, value, meaning in rows])


def provenance(
    frames: Mapping[str, pd.DataFrame | None],
    parameters: Mapping[str, object],
    source: str,
    *,
    simulated: bool,
) -> ProvenanceBlock:
    """Return the provenance of a report.

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
    return ProvenanceBlock(
        dict(parameters), describe_frames(frames), library_versions(), source, simulated
    )


def _bundle(html: str, plain: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    bundle: dict[str, Any] = {"text/html": html, "text/plain": plain}
    return bundle if facts is None else {**bundle, FACTS: dict(facts)}
