"""Sentences and headline numbers of reports: templates, and the values in their places.

``{volume:dollars}`` is the place of the value `volume`, which `formats.whole_dollars` writes.
``{fills:count fill}`` is a count with its noun, and ``{orders:count order runs|orders run}`` one
with a noun and a verb. A template has no other numbers, so the values of a sentence are data, and a
test recomputes each of them from the report's frames.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from string import Formatter
from typing import Any, Final, NamedTuple, ParamSpec

import pandas as pd

from toolkit.display import count_text
from toolkit.plots import formats

P = ParamSpec("P")

WRITERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "": str,
    "bps": formats.basis_points,
    "capacity": formats.order_capacity,
    "cents": formats.two_decimals,
    "count": formats.whole_number,
    "dollars": formats.whole_dollars,
    "exact": formats.exact_usd,
    "funding": lambda value: f"{formats.signed_cents(value)} USD",
    "number": formats.exact_number,
    "power": "{:.2f}".format,
    "ratio": formats.two_decimals,
    "rate": formats.signed_rate,
    "share": formats.percent_share,
    "short_usd": formats.short_usd,
    "signed": formats.signed_cents,
    "times": lambda value: f"{value:,.{0 if value >= 10 else 1}f}",
}
"""The name after the colon of a place -> the function that writes the value."""


class _Writer(Formatter):
    """Writes values into a template; a missing value is a dash, never 0."""

    def format_field(self, value: Any, format_spec: str) -> str:
        name, _, nouns = format_spec.partition(" ")
        if not isinstance(value, str | Mapping) and pd.isna(value):
            return "not covered" if name == "funding" else formats.MISSING
        return count_text(int(value), *nouns.split("|")) if nouns else WRITERS[name](value)


_WRITER: Final = _Writer()


class Sentence(str):
    """The text of a sentence or of several, with the values of each in `parts`.

    A part is a template and its values, by place.
    """

    parts: tuple[tuple[str, Mapping[str, Any]], ...]


def say(template: str, /, **values: Any) -> Sentence:
    """Return a sentence: a template with its values.

    Examples
    --------
    >>> fees = say("Fees came to {paid:cents} USD in {n:count fill}.", paid=None, n=1)
    >>> fees, fees.parts[0][1]
    ('Fees came to \N{EM DASH} USD in 1 fill.', {'paid': None, 'n': 1})
    """
    sentence = Sentence(_WRITER.vformat(template, (), values))
    sentence.parts = ((template, values),)
    return sentence


def paragraph(tell: Callable[P, Iterable[Sentence]]) -> Callable[P, Sentence]:
    """Return a function that joins the sentences of another one with spaces."""

    @wraps(tell)
    def join(*arguments: P.args, **options: P.kwargs) -> Sentence:
        return join_sentences(tell(*arguments, **options))

    return join


def join_sentences(sentences: Iterable[Sentence]) -> Sentence:
    """Return sentences as one text."""
    every = list(sentences)
    joined = Sentence(" ".join(every))
    joined.parts = tuple(part for sentence in every for part in sentence.parts)
    return joined


class Headline(NamedTuple):
    """A headline number, or a check: a label, a value, and a note on it.

    - ``templates``, ``values``: the templates of the three texts, and their values by place
    """

    label: str
    value: str
    note: str = ""
    templates: tuple[str, ...] = ()
    values: Mapping[str, Any] = {}


def headline(label: str, value: str, note: str, /, **values: Any) -> Headline:
    """Return a headline number of three templates, with its values."""
    texts = [_WRITER.vformat(each, (), values) for each in (label, value, note)]
    return Headline(texts[0], texts[1], texts[2], (label, value, note), values)
