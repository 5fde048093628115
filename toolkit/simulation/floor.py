"""Where everything happens: the exchange, its books, and what is still to come."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from toolkit.contract.sources import AccountSnapshot, TwapSnapshot, Valuation
from toolkit.simulation.accounts import Account
from toolkit.simulation.books import Books
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.roles import SPOT_MAKER
from toolkit.simulation.twaps import Twap

__all__ = ["Floor", "Happening"]


class Happening(Protocol):
    """Something that happens at a time."""

    @property
    def time(self) -> int:
        """When, in milliseconds."""

    def happen(self, floor: "Floor") -> None:
        """Do it."""


@dataclass(slots=True)
class Floor:
    """The trading floor.

    Parameters
    ----------
    exchange : Exchange
        Positions, balances, tables.
    books : Books
        Resting orders.
    builders : list of str
        Addresses of the builders.
    twaps : list of Twap
        Every TWAP that was ever registered.
    account_snapshots, twap_snapshots : list
        Taken so far.
    delisted : set of int
        Perps that are no longer traded.
    settled : set of str
        Outcome markets that have ended.
    valuations : dict of int to list of Valuation
        What each account was worth, by its number.
    spot_flows : dict of int to int
        What came into each account's spot wallet without a trade, in micro-dollars.
    spot_seen : dict of (int, str) to int
        How much of each token that was at the last valuation.
    """

    exchange: Exchange
    books: Books
    builders: list[str]
    twaps: list[Twap] = field(default_factory=list)
    account_snapshots: list[AccountSnapshot] = field(default_factory=list)
    twap_snapshots: list[TwapSnapshot] = field(default_factory=list)
    delisted: set[int] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    valuations: defaultdict[int, list[Valuation]] = field(default_factory=lambda: defaultdict(list))
    spot_flows: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    spot_seen: defaultdict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    _later: list[tuple[int, int, Happening]] = field(default_factory=list)
    _number: int = 0

    @property
    def makers(self) -> list[Account]:
        """The market makers."""
        return self.books.makers

    @property
    def spot_maker(self) -> Account:
        """Who quotes the spot and outcome markets."""
        return next(a for a in self.exchange.accounts if a.manner == SPOT_MAKER)

    def is_delisted(self, coin: int) -> bool:
        """Say whether a perp is no longer traded."""
        return coin in self.delisted

    def plan(self, happening: Happening) -> None:
        """Let something happen later than now."""
        self._number += 1
        heapq.heappush(self._later, (happening.time, self._number, happening))

    def run(self, drawn: Iterable[Happening], end: int) -> None:
        """Let everything happen in the order of time, what was drawn before what was planned."""
        for happening in drawn:
            for planned in self._due(happening.time - 1):
                planned.happen(self)
            happening.happen(self)
        for planned in self._due(end):
            planned.happen(self)

    def _due(self, time: int) -> Iterator[Happening]:
        while self._later and self._later[0][0] <= time:
            yield heapq.heappop(self._later)[2]
