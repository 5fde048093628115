"""Sentences and headline numbers of reports: texts with placeholders, and their values.

A report has its sentences in tables: name -> text. ``{volume:dollars}`` is a placeholder for the
value `volume`, which `formats.whole_dollars` writes. ``{fills:count fill}`` is a count with its
noun, and ``{orders:count order runs|orders run}`` one with a noun and a verb. The text has no other
numbers, so the values of a sentence are data, and a test recomputes each of them from the report's
frames.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Final

import pandas as pd

from toolkit.display import count_text
from toolkit.plots import formats
from toolkit.plots.formats import short_usd
from toolkit.reports import tables

_ACCEPT_MISSING: Final = ("funding",)


def _write_funding(value: Any) -> str:
    return "not covered" if pd.isna(value) else f"{tables.signed_usd(value)} USD"


WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "": str,
    "bps": formats.basis_points,
    "capacity": formats.order_capacity,
    "cents": tables.usd_text,
    "count": formats.whole_number,
    "dollars": formats.whole_dollars,
    "exact": tables.exact_usd,
    "funding": _write_funding,
    "number": formats.exact_number,
    "power": "{:.2f}".format,
    "ratio": lambda value: formats.true_minus(f"{value:,.2f}"),
    "rate": formats.signed_rate,
    "share": formats.percent_share,
    "short_usd": short_usd,
    "signed": tables.signed_usd,
    "times": lambda value: f"{value:,.{0 if value >= 10 else 1}f}",
}
"""The name after the colon of a place -> the function that writes the value."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a report.

    - ``name``: name of the sentence in its table
    - ``text``: the text with its values
    - ``values``: place -> value
    """

    name: str
    text: str
    values: Mapping[str, Any]


class Paragraph(str):
    """The text of several sentences, and the sentences in `sentences`."""

    sentences: tuple[Sentence, ...]

    def __new__(cls, sentences: Iterable[Sentence]) -> "Paragraph":
        """Join the sentences with a space."""
        parts = tuple(sentences)
        paragraph = super().__new__(cls, " ".join(part.text for part in parts))
        paragraph.sentences = parts
        return paragraph


@dataclass(frozen=True)
class Headline:
    """A headline number: a label, a value, and a note on it.

    - ``label``, ``value``, ``note``: the texts with their values
    - ``name``: name of the headline in its table
    - ``values``: place -> value
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
        """The three texts in one line."""
        return f"{self.label}: {self.value} ({self.note})"


def sentence(table: Mapping[str, str], name: str, **values: Any) -> Sentence:
    """Return the sentence `name` of a table of templates, with its placeholders filled.

    Examples
    --------
    >>> fees = sentence({"fees": "Fees came to {paid:cents} USD."}, "fees", paid=1234.5)
    >>> fees.text, fees.values
    ('Fees came to 1,234.50 USD.', {'paid': 1234.5})
    """
    return Sentence(name, fill_text(table[name], values), values)


def headline(table: Mapping[str, tuple[str, str, str]], name: str, **values: Any) -> Headline:
    """Return the headline number `name` of a table of templates, with its placeholders filled."""
    label, value, note = (fill_text(text, values) for text in table[name])
    return Headline(label, value, note, name, values)


def fill_text(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with its values; a missing value is a dash, never 0.

    Examples
    --------
    >>> fill_text("{n:count fill} of {usd:dollars} USD", {"n": 1, "usd": None})
    '1 fill of \N{EM DASH} USD'
    """
    parts = []
    for before, place, writer, _ in Formatter().parse(text):
        parts.append(before)
        if place is not None:
            value = values[place]
            is_known = isinstance(value, str | Mapping) or writer in _ACCEPT_MISSING
            is_missing = not is_known and pd.isna(value)
            parts.append(formats.MISSING if is_missing else _write_value(writer or "", value))
    return "".join(parts)


def _write_value(writer: str, value: Any) -> str:
    name, _, nouns = writer.partition(" ")
    return count_text(int(value), *nouns.split("|")) if nouns else WRITERS[name](value)
