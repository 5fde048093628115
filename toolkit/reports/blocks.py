"""What a report's notebook shows: title, headline numbers, words, tables, figures, provenance.

Each block draws itself in a notebook and in the page of a report, with the same HTML. Text is
escaped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd

from toolkit.reports.figures import PageFigure, page_figure
from toolkit.reports.filling import fill
from toolkit.reports.provenance import Source, sources_of, versions
from toolkit.reports.sentences import Headline

__all__ = [
    "FACTS",
    "Blocks",
    "Checks",
    "Headline",
    "Provenance",
    "Shown",
    "Tiles",
    "Title",
    "Words",
    "checks",
    "figure",
    "provenance",
    "tiles",
    "title",
    "words",
]

FACTS: Final = "application/vnd.exchange-toolkit.facts+json"
"""Beside the HTML of a block: what the page and the command line take from it."""


@dataclass(frozen=True, slots=True)
class Title:
    """Head of a report: its kind, what it is about, the source, from when to when."""

    kind: str
    subject: str
    line: str
    simulated: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        facts = {"title": f"{self.kind}: {self.subject}", "subject": self.subject}
        return _bundle(fill("title.html", title=self), f"{self.kind}: {self.subject}", facts)


@dataclass(frozen=True, slots=True)
class Tiles:
    """Headline numbers, side by side."""

    headlines: Sequence[Headline]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines = [one.text for one in self.headlines]
        facts = {"headlines": [list(one) for one in self.headlines]}
        return _bundle(fill("tiles.html", headlines=self.headlines), "\n".join(lines), facts)


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph that was computed."""

    text: str
    lead: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return _bundle(fill("words.html", words=self), self.text)


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure with its caption."""

    figure: PageFigure
    caption: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        html = fill("figure.html", figure=self.figure, caption=self.caption)
        return _bundle(html, self.figure.alt)


@dataclass(frozen=True, slots=True)
class Checks:
    """What was checked: the check, its result, what it means."""

    rows: Sequence[tuple[str, str, str]]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        lines = [f"{name}: {value}" for name, value, _ in self.rows]
        return _bundle(fill("checks.html", checks=self.rows), "\n".join(lines))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a report comes from: parameters, what was asked and came, versions."""

    parameters: Mapping[str, Any]
    sources: Sequence[Source]
    versions: Mapping[str, str]
    source: str
    simulated: bool

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        html = fill("provenance.html", provenance=self)
        facts = {
            "sources": [asdict(one) for one in self.sources],
            "source": self.source,
            "simulated": self.simulated,
        }
        return _bundle(html, "\n".join(f"{one.name}: {one.digest}" for one in self.sources), facts)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Several blocks, one below the other; or none."""

    blocks: Sequence[Any]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundles = [one._repr_mimebundle_() for one in self.blocks]
        joined = {kind: "\n".join(one[kind] for one in bundles) for kind in _TEXTS}
        return _bundle(joined["text/html"], joined["text/plain"])


_TEXTS: Final = ("text/html", "text/plain")


def title(kind: str, subject: str, line: str = "", *, simulated: bool = False) -> Title:
    """Head a report.

    Parameters
    ----------
    kind : str
        What sort of report it is, such as ``"Wallet report"``.
    subject : str
        What it is about, such as an address.
    line : str, default ""
        Period and source.
    simulated : bool, default False
        Whether the data is invented.
    """
    return Title(kind, subject, line, simulated)


def tiles(headlines: Sequence[Headline | tuple[str, str] | tuple[str, str, str]]) -> Tiles:
    """Show headline numbers: label, value, note.

    Examples
    --------
    >>> print(tiles([("net", "+1,160.77 USD", "after fees")])._repr_mimebundle_()["text/plain"])
    net: +1,160.77 USD (after fees)
    """
    return Tiles([Headline(*one) for one in headlines])


def words(text: str, *, lead: bool = False) -> Words:
    """Show a computed paragraph; `lead` sets it a little larger."""
    return Words(text, lead)


def figure(draw: Callable[..., Any], *results: Any, caption: str, **options: Any) -> Shown:
    """Draw results for light and for dark.

    Parameters
    ----------
    draw : callable
        A function of `toolkit.plots`, or one that takes ``theme`` and ``transparent`` as they do.
    *results
        What it draws.
    caption : str
        What stands below.
    **options
        Passed on to `draw`.
    """
    return Shown(page_figure(draw, *results, **options), caption)


def checks(rows: Sequence[Headline | tuple[str, str, str]]) -> Checks:
    """Show what was checked: the check, its result, what it means."""
    return Checks([(name, value, meaning) for name, value, meaning in rows])


def provenance(
    frames: Mapping[str, pd.DataFrame | None],
    parameters: Mapping[str, Any],
    source: str,
    *,
    simulated: bool,
) -> Provenance:
    """Show where a report comes from.

    Parameters
    ----------
    frames : mapping
        What was fetched, by name; None for what could not be had.
    parameters : mapping
        What the report was asked for.
    source : str
        What the session calls its source.
    simulated : bool
        Whether it is invented.
    """
    return Provenance(dict(parameters), sources_of(frames), versions(), source, simulated)


def _bundle(html: str, plain: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    bundle: dict[str, Any] = {"text/html": html, "text/plain": plain}
    return bundle if facts is None else {**bundle, FACTS: dict(facts)}
