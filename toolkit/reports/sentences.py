"""Sentences and headline numbers of reports: text with places, and the values that fill them.

A report keeps its sentences in tables: name -> text, where ``{volume:dollars}`` is a place for the
value `volume`, which `formats.whole_dollars` writes. The text has no other numbers, so the values
of a sentence are data, and a test recomputes each of them from the frames of the report.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Final

import pandas as pd

from toolkit.plots import formats
from toolkit.plots.formats import short_usd
from toolkit.reports import tables

__all__ = ["Headline", "Paragraph", "Sentence", "fill_text", "headline", "places", "sentence"]

_TAKES_MISSING: Final = ("funding",)


def _write_funding(value: Any) -> str:
    return "not covered" if pd.isna(value) else f"{tables.signed_usd(value)} USD"


WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "": str,
    "bps": formats.basis_points,
    "capacity": formats.order_capacity,
    "cents": tables.cents,
    "count": formats.whole_number,
    "dollars": formats.whole_dollars,
    "exact": tables.exact_usd,
    "funding": _write_funding,
    "number": formats.exact_number,
    "power": "{:.2f}".format,
    "rate": lambda value: formats.true_minus(f"{value:+.1%}").replace("%", " %"),
    "share": formats.percent_share,
    "short_usd": short_usd,
    "signed": tables.signed_usd,
    "times": lambda value: f"{value:,.{0 if value >= 10 else 1}f}",
}
"""How a value is written: what stands behind the colon of a place."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a report.

    Attributes
    ----------
    name : str
        Which one of the report's sentences it is.
    text : str
        As it is read.
    values : mapping
        What its places were filled with.
    """

    name: str
    text: str
    values: Mapping[str, Any]


class Paragraph(str):
    """The text of sentences, one behind the other, which knows them as `sentences`."""

    sentences: tuple[Sentence, ...]

    def __new__(cls, sentences: Iterable[Sentence]) -> "Paragraph":
        """Join the sentences with a space."""
        kept = tuple(sentences)
        made = super().__new__(cls, " ".join(one.text for one in kept))
        made.sentences = kept
        return made


@dataclass(frozen=True)
class Headline:
    """A headline number: what it is, its value, what to know about it.

    Attributes
    ----------
    label, value, note : str
        As they are read.
    name : str
        Which one of the report's headline numbers it is.
    values : mapping
        What its places were filled with.
    """

    label: str
    value: str
    note: str = ""
    name: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Any:
        return iter((self.label, self.value, self.note))

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.label}: {self.value} ({self.note})"


def sentence(table: Mapping[str, str], name: str, **values: Any) -> Sentence:
    """Return a sentence of a report's table with its places filled.

    Examples
    --------
    >>> said = sentence({"fees": "Fees came to {paid:cents} USD."}, "fees", paid=1234.5)
    >>> said.text, said.values
    ('Fees came to 1,234.50 USD.', {'paid': 1234.5})
    """
    return Sentence(name, fill_text(table[name], values), values)


def headline(table: Mapping[str, tuple[str, str, str]], name: str, **values: Any) -> Headline:
    """Return a headline number of a report's table with its places filled."""
    label, value, note = (fill_text(text, values) for text in table[name])
    return Headline(label, value, note, name, values)


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """Fill the places of a text; a value that is missing is a dash, never 0."""
    parts = []
    for before, place, writer, _ in Formatter().parse(text):
        parts.append(before)
        if place is not None:
            value = values[place]
            told = isinstance(value, str | Mapping) or writer in _TAKES_MISSING
            missing = not told and pd.isna(value)
            parts.append(tables.MISSING if missing else WRITERS[writer or ""](value))
    return "".join(parts)


def places(text: str) -> set[str]:
    """Return the names of a text's places."""
    return {place for _, place, _, _ in Formatter().parse(text) if place is not None}
