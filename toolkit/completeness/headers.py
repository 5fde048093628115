"""The headers in which a service states how complete an answer is: their writer and their reader.

A service that has everything sends neither of them. A service that serves an archive sends

- ``x-toolkit-incomplete``: why the answer is not proved complete, in percent-encoded words;
- ``x-toolkit-covered``: the complete time range of the history around the requested one, as two
  Unix milliseconds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from toolkit.completeness.coverage import TimeRange
from toolkit.errors import Incomplete

__all__ = ["Completeness", "read_completeness", "write_completeness"]

_INCOMPLETE: Final = "x-toolkit-incomplete"
_COVERED: Final = "x-toolkit-covered"
_PLAIN: Final = " ,;:=()/"  # besides letters and digits, these are not percent-encoded
_LONGEST_WRITTEN: Final = 600  # characters
_LONGEST_READ: Final = 1_000  # characters, also of a service that is not ours
_RANGE: Final = re.compile(r"(-?\d{1,13}),(-?\d{1,13})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Completeness:
    """What a service states about the completeness of an answer.

    Attributes
    ----------
    missing_reason : str
        Why the answer is not proved complete; empty if the service states nothing.
    covered : tuple of (int, int) or None
        The complete time range of the history around the requested one, in Unix milliseconds;
        None if the service states nothing.
    """

    missing_reason: str = ""
    covered: TimeRange | None = None

    def check_complete(self) -> None:
        """Raise an error if the service states that the answer is not proved complete.

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
