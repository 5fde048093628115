"""Words for the columns of results, read from the docstrings of the analysis helpers."""

import functools
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Final, NamedTuple, get_type_hints

from toolkit import (
    accounts,
    auctions,
    builders,
    depth,
    execution,
    funding,
    ledger,
    liquidations,
    orders,
    performance,
    pnl,
    slippage,
    staking,
    twaps,
)

__all__ = [
    "DEFAULT_USD",
    "ColumnWords",
    "estimate_columns",
    "parse_columns",
    "returned_class",
    "returned_columns",
    "unit_of",
]

_TOPICS: Final[dict[str, ModuleType]] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        accounts,
        auctions,
        builders,
        depth,
        execution,
        funding,
        ledger,
        liquidations,
        orders,
        performance,
        pnl,
        slippage,
        staking,
        twaps,
    )
}


class ColumnWords(NamedTuple):
    """The unit and the meaning of a column.

    Attributes
    ----------
    unit, meaning : str
        In words; empty if not known.
    is_shared : bool
        Whether the meaning is the text around the column, which has no words of its own there.
    """

    unit: str
    meaning: str
    is_shared: bool = False


def estimate_columns(estimate: type) -> Mapping[str, ColumnWords]:
    """Return the words of the figures of an estimate, from the docstring of its class."""
    found = re.search(r"\nparams : DataFrame\n((?: +.*\n|\n)*)", inspect.getdoc(estimate) or "")
    own = parse_columns(found[1]) if found else {}
    unit = own["estimate"].unit if "estimate" in own else ""
    return {
        **{name: words for name, words in own.items() if not words.is_shared},
        "name": ColumnWords("", "name of the figure"),
        "estimate": ColumnWords(unit, "the figure"),
        "low": ColumnWords(unit, "lower end of the interval of the figure"),
        "high": ColumnWords(unit, "upper end of the interval of the figure"),
        "usd": ColumnWords("USD", "the figure as a sum of money"),
        "n": ColumnWords("", "number of observations"),
        "missing": ColumnWords("", "number of observations without a value"),
        "clusters": ColumnWords("", "number of clusters, which the interval draws again"),
    }


def returned_class(helper: str) -> type | None:
    """Return the class of a helper's result, such as Cascade; None if it returns a frame."""
    topic, _, name = helper.partition(".")
    result = get_type_hints(getattr(_TOPICS[topic], name)).get("return")
    return result if isinstance(result, type) else None


@functools.cache
def returned_columns(helper: str) -> Mapping[str, ColumnWords]:
    """Return the words of the columns in the Returns section of a helper's docstring."""
    topic, _, name = helper.partition(".")
    function = getattr(_TOPICS[topic], name)
    found = _RETURNS.search("\n" + (inspect.getdoc(function) or ""))
    return parse_columns(found[1].partition("\n")[2]) if found else {}


_RETURNS: Final = re.compile(r"\nReturns\n-+\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", re.S)
_NAMES: Final = re.compile(r"``([a-z_]\w*(?:, [a-z_]\w*)*)(?: = ([^`]+))?``")
# Where the next columns of a list item begin: after a semicolon, or before names with a colon. A
# sentence that only begins with a name, such as "``x`` is missing", does not begin a column.
_NEXT: Final = re.compile(
    r"(?:; (?:and )?|, and )(?=``[a-z_][^`]*``(?:, ``[a-z_][^`]*``)*(?: \([^)]*\))?"
    r"(?: (?:Int64|int64|float64|bool|boolean|text))?(?: \([^)]*\))?(?::|,|;|\.|$))"
    r"|; (?=``[a-z_][^`]*`` (?!(?:is|are|has|have|says|was|replaces)\b))"
)
_DTYPE: Final = re.compile(r"^\s*(?:Int64|int64|float64|bool|boolean|text)\b")
DEFAULT_USD: Final = "USD if it is an amount"
"""The unit of a column that is USD only if its values are amounts."""

_UNIT_OF_SUFFIX: Final = {
    "usd": "USD",
    "usdc": "USD",
    "bps": "basis points",
    "px": "USD per unit",
    "hours": "hours",
    "days": "days",
    "seconds": "seconds",
    "secs": "seconds",
    "share": "fraction",
    "ratio": "fraction",
    "rate": "fraction",
    "apr": "fraction",
    "apy": "fraction",
    "return_": "fraction",
    "retention": "fraction",
    "ntl": "USD",
    "sz": "units of the coin",
    "size": "units of the coin",
    "position": "units of the coin",
}
_UNIT_IN_WORDS: Final = (
    (re.compile(r"\bUSD\b"), "USD"),
    (re.compile(r"\bbasis points\b"), "basis points"),
    (re.compile(r"^\W*(?:the )?share\b"), "fraction"),
    (re.compile(r"\bUTC\b"), "UTC"),
    (re.compile(r"\bin units of the coin\b"), "units of the coin"),
    (re.compile(r"\bin units of the token\b"), "units of the token"),
    (re.compile(r"\bin gas\b"), "gas"),
    (re.compile(r"^number of slices\b"), "slices"),
)


def parse_columns(text: str) -> dict[str, ColumnWords]:
    """Return the words of the columns that the description of a frame lists.

    A list item begins with the names of columns; after a colon follows what they mean. Further
    columns of the same item follow after a semicolon. A unit is taken from the name of the column,
    such as ``cost_bps``, or from its meaning; if the text before the list says that amounts are in
    USD, that holds for amounts without another unit.

    Examples
    --------
    >>> columns = parse_columns("- ``size``: of the order; ``cost_bps``: against mid")
    >>> columns["size"].meaning, columns["cost_bps"].meaning, columns["cost_bps"].unit
    ('of the order', 'against mid', 'basis points')
    """
    head, *items = re.split(r"^- ", textwrap.dedent(text), flags=re.M)
    default = DEFAULT_USD if re.search(r"\bUSD\b", head) else ""
    prose = re.split(r"\.(?: |$)", " ".join(head.split()))[0]
    columns = list(_prose_columns(prose, shared=prose))
    for item in items:
        paragraph = " ".join(item.partition("\n\n")[0].split())
        for entry in _NEXT.split(paragraph):
            columns += _entry_columns(entry.strip().rstrip(";."))
    columns.sort(key=lambda column: not column[2])  # own words come last, and count
    return {
        name: ColumnWords(unit_of(name, meaning, default), meaning, is_shared)
        for name, meaning, is_shared in columns
    }


def _entry_columns(entry: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the columns of an entry with their meaning: names, a colon, the meaning."""
    head, colon, meaning = _split_at_colon(entry)
    if not colon:
        yield from _prose_columns(entry, shared=entry)
        return
    for names, formula, note in _named_parts(head):
        words = "; ".join(filter(None, (formula, meaning, note)))
        for name in names:
            yield name, _plain_text(words), False
    for match in _NAMES.finditer(meaning):  # columns that are only mentioned
        for name in match[1].split(", "):
            yield name, _plain_text(meaning), True


def _prose_columns(entry: str, shared: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the columns of an entry without a colon: each name is followed by its own words.

    A name without own words means what `shared` says.
    """
    for names, formula, note in _named_parts(entry):
        words = "; ".join(filter(None, (formula, note)))
        for name in names:
            yield name, _plain_text(words or shared), not words


def _named_parts(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield names, their formula and the note that follows them."""
    found = list(_NAMES.finditer(text))
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text)
        note = _DTYPE.sub("", text[match.end() : end]).strip(" ,;:.")
        note = re.sub(r"(?:^| )(?:and|or|then)$", "", note).strip(" ,;:.")
        if note.startswith("(") and note.endswith(")") and note.count("(") == 1:
            note = note[1:-1]
        yield match[1].split(", "), match[2] or "", note


def _split_at_colon(entry: str) -> tuple[str, str, str]:
    """Split at the first colon that is not inside quotes or parentheses."""
    depth, quoted = 0, False
    for at, letter in enumerate(entry):
        if entry.startswith("``", at) and not entry.startswith("``", at - 1):
            quoted = not quoted
        depth += (letter == "(") - (letter == ")")
        if letter == ":" and not quoted and depth == 0:
            return entry[:at], ":", entry[at + 1 :].strip()
    return entry, "", ""


def _plain_text(words: str) -> str:
    return words.replace("``", "").strip()


def unit_of(name: str, meaning: str, default: str) -> str:
    """Return the unit of a column, from its name or else from its meaning; else the default."""
    for ending in (name, name.rpartition("_")[2]):
        if ending in _UNIT_OF_SUFFIX:
            return _UNIT_OF_SUFFIX[ending]
    first = re.split(r"[.;]", meaning)[0]
    return next((unit for words, unit in _UNIT_IN_WORDS if words.search(first)), default)
