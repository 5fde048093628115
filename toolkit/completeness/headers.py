"""The headers in which a service of this package describes itself: their writer and their reader.

Every answer states its source:

- ``x-toolkit-now``: the present of the source, in Unix milliseconds;
- ``x-toolkit-clock``: ``live`` if this clock runs, else ``fixed``;
- ``x-toolkit-source``: the name of the source, in percent-encoded words;
- ``x-toolkit-simulated``: ``true`` or ``false``;
- ``x-toolkit-history``: what may be missing from any answer, in percent-encoded words.

A service that serves an archive also states how complete the answer is:

- ``x-toolkit-incomplete``: why the answer may lack rows, in percent-encoded words;
- ``x-toolkit-covered``: the complete time range of the history around the requested one, as two
  Unix milliseconds.
"""

import functools
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from toolkit.completeness.covered_ranges import TimeRange
from toolkit.errors import Incomplete

_NOW: Final = "x-toolkit-now"
_CLOCK: Final = "x-toolkit-clock"
_SOURCE: Final = "x-toolkit-source"
_SIMULATED: Final = "x-toolkit-simulated"
_HISTORY: Final = "x-toolkit-history"
_INCOMPLETE: Final = "x-toolkit-incomplete"
_COVERED: Final = "x-toolkit-covered"
_PLAIN: Final = " ,;:=()/"  # besides letters and digits, these are not percent-encoded
_LONGEST_WRITTEN: Final = 600  # characters
_LONGEST_READ: Final = 1_000  # characters; other services may write longer headers
_LONGEST_NAME: Final = 200  # characters
_TIME: Final = re.compile(r"\d{1,15}", re.ASCII)  # milliseconds; thirty thousand years
_RANGE: Final = re.compile(r"(-?\d{1,13}),(-?\d{1,13})", re.ASCII)


class Completeness(NamedTuple):
    """What a service states about the completeness of an answer.

    Attributes
    ----------
    missing_reason : str
        Why the answer may lack rows; empty if the service states nothing.
    covered : tuple of (int, int) or None
        The complete time range of the history around the requested one, in Unix milliseconds;
        None if the service states nothing.
    """

    missing_reason: str = ""
    covered: TimeRange | None = None

    def check_complete(self) -> None:
        """Raise `Incomplete` if the headers state that rows may be missing.

        Raises
        ------
        Incomplete
            With what is missing, and what to do.
        """
        if self.missing_reason:
            raise Incomplete(self.missing_reason)


def write_completeness(completeness: Completeness) -> dict[str, str]:
    """Return the headers for a statement; names are in lower case.

    Examples
    --------
    >>> write_completeness(Completeness("there is more"))
    {'x-toolkit-incomplete': 'there is more'}
    >>> write_completeness(Completeness(covered=(1756684800000, 1756688400000)))
    {'x-toolkit-covered': '1756684800000,1756688400000'}
    """
    headers = {}
    if completeness.missing_reason:
        headers[_INCOMPLETE] = quote(completeness.missing_reason[:_LONGEST_WRITTEN], safe=_PLAIN)
    if completeness.covered is not None:
        headers[_COVERED] = "{},{}".format(*completeness.covered)
    return headers


def read_completeness(headers: Mapping[str, str]) -> Completeness:
    """Return what the headers of an answer state; names are in lower case.

    Examples
    --------
    >>> read_completeness({"x-toolkit-incomplete": "there%20is%20more"}).missing_reason
    'there is more'
    >>> read_completeness({"x-toolkit-covered": "1756684800000,1756688400000"}).covered
    (1756684800000, 1756688400000)
    """
    words = unquote(headers.get(_INCOMPLETE, ""))[:_LONGEST_READ]
    reason = "".join(letter if letter.isprintable() else " " for letter in words)
    found = _RANGE.fullmatch(headers.get(_COVERED, ""))
    return Completeness(reason, (int(found[1]), int(found[2])) if found else None)


class SourceStatement(NamedTuple):
    """What a service states about its source.

    Attributes
    ----------
    now_ms : int
        The present of the source, in Unix milliseconds.
    is_live : bool
        Whether this clock runs.
    label : str
        The name of the source.
    simulated : bool
        Whether its data is simulated.
    history : str
        What may be missing from any answer; empty if nothing.
    """

    now_ms: int
    is_live: bool
    label: str
    simulated: bool
    history: str = ""


@functools.lru_cache(maxsize=8)
def write_source(source: SourceStatement) -> dict[str, str]:
    """Return the headers for a source; names are in lower case.

    Examples
    --------
    >>> write_source(SourceStatement(1756684800000, False, "simulated", True))["x-toolkit-clock"]
    'fixed'
    """
    headers = {
        _NOW: str(source.now_ms),
        _CLOCK: "live" if source.is_live else "fixed",
        _SOURCE: quote(source.label, safe=_PLAIN),
        _SIMULATED: "true" if source.simulated else "false",
    }
    if source.history:
        headers[_HISTORY] = quote(source.history, safe=_PLAIN)
    return headers


def read_source(headers: Mapping[str, str]) -> SourceStatement | None:
    """Return what headers state about a source, or None if they state no present.

    Examples
    --------
    >>> read_source({"x-toolkit-now": "1756684800000", "x-toolkit-simulated": "true"}).simulated
    True
    >>> read_source({"content-type": "application/json"})
    """
    now = headers.get(_NOW, "")
    if not _TIME.fullmatch(now):
        return None
    # What cannot be shown below a figure is left out.
    texts = (unquote(headers.get(name, ""))[:_LONGEST_NAME] for name in (_SOURCE, _HISTORY))
    label, history = (text if text.isprintable() else "" for text in texts)
    is_live, simulated = headers.get(_CLOCK) == "live", headers.get(_SIMULATED) == "true"
    return SourceStatement(int(now), is_live, label, simulated, history)
