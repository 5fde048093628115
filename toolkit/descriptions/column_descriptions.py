"""Unit and meaning of the columns of results, read from the docstrings of the analysis helpers."""

import functools
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple, get_type_hints


class ColumnWords(NamedTuple):
    """The unit and the meaning of a column, in words; empty if not known."""

    unit: str
    meaning: str


def find_words(known: Mapping[str, ColumnWords], name: str) -> ColumnWords:
    """Return unit and meaning of a column or a figure.

    A family of names has one entry, with N for the number: ``qN`` describes q10 and q90.

    Examples
    --------
    >>> known = {"qN": ColumnWords("USD", "N % quantile of the depth")}
    >>> find_words(known, "q10").meaning
    '10 % quantile of the depth'
    """
    number = _NUMBER.search(name)
    if name in known or not number:
        return known.get(name, ColumnWords("", ""))
    unit, meaning = known.get(_NUMBER.sub("N", name), ColumnWords("", ""))
    return ColumnWords(unit, re.sub(r"\bN\b", number[0], meaning))


@functools.cache
def estimate_columns(estimate: type) -> Mapping[str, Mapping[str, ColumnWords]]:
    """Read the docstring of the estimate's class. Return unit and meaning of each column, by frame.

    The entry ``params`` also has unit and meaning of each figure, by the name of the figure.
    """
    attributes = _FRAME.findall((inspect.getdoc(estimate) or "") + "\n")
    return {name: parse_columns(text) for name, text in attributes}


def returned_class(helper: str) -> type | None:
    """Return the class of a helper's result, such as Cascade; None if it returns a frame."""
    result = get_type_hints(_find_helper(helper)).get("return") if helper else None
    return result if isinstance(result, type) and is_dataclass(result) else None


@functools.cache
def returned_columns(helper: str) -> Mapping[str, ColumnWords]:
    """Return unit and meaning of the columns in the Returns section of a helper's docstring."""
    found = _RETURNS.search(inspect.getdoc(_find_helper(helper)) or "")
    return parse_columns(found[1]) if found else {}


def _find_helper(helper: str) -> Any:
    topic, _, name = helper.partition(".")
    return getattr(import_module(f"toolkit.{topic}"), name)


_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_RETURNS: Final = re.compile(r"\nReturns\n-+\n[^\n]*\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", re.S)
_FRAME: Final = re.compile(r"^(\w+) : DataFrame.*\n((?: +.*\n|\n)*)", re.M)
_ITEM: Final = re.compile(r"``([^`]+)``(?: \w+)?: (.+?)[.;]?")

_SUFFIXES: Final = {
    "USD": ("usd", "usdc", "ntl"),
    "basis points": ("bps",),
    "USD per unit": ("px", "vwap", "twap"),
    "hours": ("hours",),
    "days": ("days",),
    "seconds": ("seconds", "secs"),
    "fraction": ("share", "ratio", "rate", "apr", "apy", "return_", "retention"),
    "units of the coin": ("sz", "size", "position"),
}
_UNIT_OF_SUFFIX: Final = {suffix: unit for unit, each in _SUFFIXES.items() for suffix in each}
_UNIT_IN_WORDS: Final = (
    (re.compile(r"\bin USD\b"), "USD"),
    (re.compile(r"\bin basis points\b"), "basis points"),
    (re.compile(r"^share\b|\bas a share\b"), "fraction"),
    (re.compile(r"\bin the unit of the figure\b"), "that of the figure"),
    (re.compile(r"\bin the unit of the measure\b"), "that of the measure"),
    (re.compile(r"\bin seconds\b"), "seconds"),
    (re.compile(r"\bUTC\b"), "UTC"),
    (re.compile(r"\bin units of the coin\b"), "units of the coin"),
    (re.compile(r"\bin units of the token\b"), "units of the token"),
    (re.compile(r"\bin gas\b"), "gas"),
    (re.compile(r"^number of(?: executed)? slices\b"), "slices"),
)


def parse_columns(text: str) -> dict[str, ColumnWords]:
    r"""Return unit and meaning of the columns that the description of a frame lists.

    A list item describes one column: its name, perhaps its dtype, a colon, and the sentence. The
    unit is taken from the name of the column, such as ``cost_bps``, or else from the sentence.

    Examples
    --------
    >>> columns = parse_columns("- ``size``: size of the order\n- ``cost_bps``: cost against mid")
    >>> columns["size"].meaning, columns["cost_bps"].unit
    ('size of the order', 'basis points')
    """
    items = re.split(r"^- ", textwrap.dedent(text), flags=re.M)[1:]
    paragraphs = (" ".join(item.partition("\n\n")[0].split()) for item in items)
    columns = (found.groups() for item in paragraphs if (found := _ITEM.fullmatch(item)))
    return {
        name: ColumnWords(unit_of(name, sentence), sentence.replace("``", ""))
        for name, sentence in columns
    }


def unit_of(name: str, meaning: str) -> str:
    """Return the unit of a column, from its name or else from its meaning."""
    for ending in (name, name.rpartition("_")[2]):
        if ending in _UNIT_OF_SUFFIX:
            return _UNIT_OF_SUFFIX[ending]
    first = re.split(r"[.;]", meaning)[0]
    return next((unit for words, unit in _UNIT_IN_WORDS if words.search(first)), "")
