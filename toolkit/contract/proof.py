"""What is proved of a source that does not hold everything, as an archive.

A history is proved in ranges of time, any other answer by the questions that were answered. Who
reads an archive and who asks a service that serves it are told the same, by this one rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from toolkit.contract.dexes import ALL_DEXES, name_in, native_bare
from toolkit.contract.operations import Operation, Parameter
from toolkit.times import to_ms

__all__ = ["PAGING", "Covered", "Proof", "is_history", "names_of", "subject_of", "wider"]

PAGING: Final = frozenset({"start", "end", "cursor", "page_size", "max_rows"})
"""Parameters that say which part of an answer is wanted, not of what."""


class Covered(msgspec.Struct, frozen=True):
    """What is known of one history.

    Attributes
    ----------
    ranges : sequence of (int, int)
        Ranges of time that are complete, in milliseconds, both ends inclusive; ascending.
    first, last : int
        The first and the last moment of which anything is known: rows of a page that was cut lie
        outside of every range.
    """

    ranges: list[tuple[int, int]]
    first: int
    last: int

    @classmethod
    def of(cls, ranges: Sequence[tuple[int, int]], times: Iterable[int] = ()) -> "Covered":
        """Put together complete ranges and the times of rows."""
        known = [*times, *(moment for one in ranges for moment in one)]
        return cls(list(ranges), min(known, default=0), max(known, default=0))

    def holding(
        self, operation: Operation, start: int | None, end: int | None, now_ms: int
    ) -> tuple[int, int] | None:
        """Give the complete range that a question lies in, None if it lies in none.

        A question without a start begins with what is known. One without an end, or with one that
        is not before the present `now_ms`, ends with what is known: when histories are refreshed
        one after the other, none of them reaches up to the present of all. It has to begin before
        that: else nothing of what it asks for is known. Before the first day of the operation
        there is nothing to miss.

        Examples
        --------
        >>> from toolkit.contract.operations import operation
        >>> known = Covered.of([(1_000, 2_000), (3_000, 4_000)])
        >>> funding = operation("builderApprovedFundingByTime")
        >>> known.holding(funding, 1_500, 2_000, now_ms=5_000)
        (1000, 2000)
        >>> known.holding(funding, 3_500, None, now_ms=5_000)
        (3000, 4000)
        >>> known.holding(funding, 1_500, 3_500, now_ms=5_000)
        >>> known.holding(funding, 4_000, None, now_ms=5_000)
        """
        first = self.first if start is None else start
        if operation.since:
            first = max(first, to_ms(operation.since))
        if end is None or end >= now_ms:
            if first >= self.last < now_ms and first > self.first:
                return None
            last = self.last if end is None else min(end, self.last)
        else:
            last = end
        last = max(first, last)
        return next((one for one in self.ranges if one[0] <= first and last <= one[1]), None)


@dataclass(frozen=True, slots=True)
class Proof:
    """Which questions a source answers in full; names are those of `names_of`.

    Attributes
    ----------
    histories : mapping of str to Covered
        Name -> what is known of it.
    answers : mapping of str to int or None
        Name -> of how many of the latest rows the answer is known; None for all that there is.
    """

    histories: Mapping[str, Covered] = field(default_factory=dict)
    answers: Mapping[str, int | None] = field(default_factory=dict)


def is_history(operation: Operation) -> bool:
    """Whether an operation answers with a history that only grows at its end."""
    return operation.paging in ("cursor", "open cursor", "forward")


def subject_of(operation: Operation, parameters: Mapping[str, Any]) -> str:
    """Say of whom or what a history is: an account, a builder, a coin and an amount.

    Examples
    --------
    >>> from toolkit.contract.operations import operation
    >>> subject_of(operation("slippageHistory"), {"coin": "BTC", "amount": 1000.0, "start": 0})
    'BTC 1000'
    """
    said = (parameters[one.python] for one in operation.parameters if _is_subject(one))
    return " ".join(f"{one:.15g}" if isinstance(one, int | float) else str(one) for one in said)


def names_of(operation: Operation, parameters: Mapping[str, Any]) -> list[str]:
    """Name what has to be known to answer a question, whichever part of it is wanted.

    Parameters
    ----------
    operation : Operation
        What is asked.
    parameters : mapping
        Python name -> value, every default filled in.

    Examples
    --------
    >>> from toolkit.contract.operations import operation
    >>> names_of(operation("meta"), {"dex": ""}), names_of(operation("meta"), {"dex": "flx"})
    (['meta hyperliquid'], ['meta flx'])
    """
    dex = name_in("rows", parameters.get("dex") or "")
    match operation.type:
        case "batchClearinghouseStates":
            return [f"{operation.type} {dex} {user}" for user in parameters["users"]]
        case "meta" | "metaAndAssetCtxs" | "perpDexLimits":
            return [f"{operation.type} {dex}"]
        case "userFills":  # its filters choose which rows are the latest
            wanted = (parameters["builder"] or "all", dex if parameters["dex"] else "all")
            return [f"{operation.type} {parameters['user']} {' '.join(wanted)}"]
        case _:
            return [f"{operation.type} {native_bare(subject_of(operation, parameters))}".strip()]


def wider(name: str) -> list[str]:
    """Give the names of which any would answer a question too, itself the first.

    Examples
    --------
    >>> wider("meta flx")
    ['meta flx', 'metaAndAssetCtxs flx']
    """
    type, *rest = name.split(" ")
    match type:
        case "meta":
            return [name, " ".join(["metaAndAssetCtxs", *rest])]
        case "batchClearinghouseStates":
            return [name, f"{type} {ALL_DEXES} {rest[-1]}"]
        case "userFills":
            return [name, f"{type} {rest[0]} all all"]
        case _:
            return [name]


def _is_subject(one: Parameter) -> bool:
    return one.required and one.python not in PAGING
