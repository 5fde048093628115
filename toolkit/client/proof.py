"""What a service says in headers of how complete an answer is.

`toolkit.service.proving` writes them; a source that holds everything says nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from toolkit.errors import Incomplete

__all__ = ["Proof", "proof_in"]

_LONGEST: Final = 1_000  # characters
_RANGE: Final = re.compile(r"(-?\d{1,13}),(-?\d{1,13})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Proof:
    """How complete an answer is.

    Attributes
    ----------
    lacks : str
        Why it is not proved to be all there is; empty where nothing is said.
    covered : tuple of (int, int) or None
        From when to when the history is complete around what was asked, in Unix milliseconds;
        None where nothing is said.
    """

    lacks: str = ""
    covered: tuple[int, int] | None = None

    def check(self) -> None:
        """Refuse what is not proved.

        Raises
        ------
        Incomplete
            With what is missing, and what to do.
        """
        if self.lacks:
            raise Incomplete(self.lacks)


def proof_in(headers: Mapping[str, str]) -> Proof:
    """Read the headers of an answer; names are in lower case.

    Examples
    --------
    >>> proof_in({"x-toolkit-incomplete": "there%20is%20more"}).lacks
    'there is more'
    >>> proof_in({"x-toolkit-covered": "1756684800000,1756688400000"}).covered
    (1756684800000, 1756688400000)
    """
    words = unquote(headers.get("x-toolkit-incomplete", ""))[:_LONGEST]
    lacks = "".join(one if one.isprintable() else " " for one in words)
    found = _RANGE.fullmatch(headers.get("x-toolkit-covered", ""))
    return Proof(lacks, (int(found[1]), int(found[2])) if found else None)
