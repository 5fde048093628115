"""The state of the simulation: the exchange, its books, and the events that are still to come."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from toolkit.contract.source_tables import AccountSnapshot, TwapSnapshot, Valuation
from toolkit.simulation.engine.accounts import SPOT_MAKER, Account
from toolkit.simulation.engine.books import OrderBooks
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.orders import Twap


class Event(Protocol):
    """Something that happens at a time."""

    @property
    def time(self) -> int:
        """Its time, in milliseconds."""

    def apply(self, state: "SimulationState") -> None:
        """Apply the event to the state."""


@dataclass(slots=True)
class SimulationState:
    """Everything that events read and change.

    - ``exchange``: positions, balances, tables
    - ``books``: resting orders
    - ``builders``: addresses of the builders
    - ``twaps``: all TWAPs that were registered so far
    - ``account_snapshots``, ``twap_snapshots``: all snapshots so far
    - ``delisted``: perps that are no longer traded
    - ``settled``: outcome markets that have ended
    - ``valuations``: the valuations of each account, by its number
    - ``spot_flows``: the value that came into each account's spot wallet without a trade, in
      micro-dollars
    - ``valued_ledgers``: the ledger total of each account and token at the last valuation
    """

    exchange: Exchange
    books: OrderBooks
    builders: list[str]
    twaps: list[Twap] = field(default_factory=list)
    account_snapshots: list[AccountSnapshot] = field(default_factory=list)
    twap_snapshots: list[TwapSnapshot] = field(default_factory=list)
    delisted: set[int] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    valuations: defaultdict[int, list[Valuation]] = field(default_factory=lambda: defaultdict(list))
    spot_flows: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    valued_ledgers: defaultdict[tuple[int, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    _scheduled: list[tuple[int, int, Event]] = field(default_factory=list)
    _event_count: int = 0

    @property
    def makers(self) -> list[Account]:
        """The market makers."""
        return self.books.makers

    @property
    def spot_maker(self) -> Account:
        """The account that quotes the spot and outcome markets."""
        return next(account for account in self.exchange.accounts if account.strategy == SPOT_MAKER)

    def is_delisted(self, coin: int) -> bool:
        """Return whether a perp is no longer traded."""
        return coin in self.delisted

    def schedule_event(self, event: Event) -> None:
        """Schedule an event for later than now."""
        self._event_count += 1
        heapq.heappush(self._scheduled, (event.time, self._event_count, event))

    def run_events(self, drawn: Iterable[Event], end: int) -> None:
        """Apply all events in the order of time, drawn ones before scheduled ones."""
        for event in drawn:
            for scheduled in self._pop_due_events(event.time - 1):
                scheduled.apply(self)
            event.apply(self)
        for scheduled in self._pop_due_events(end):
            scheduled.apply(self)

    def _pop_due_events(self, time: int) -> Iterator[Event]:
        while self._scheduled and self._scheduled[0][0] <= time:
            yield heapq.heappop(self._scheduled)[2]
