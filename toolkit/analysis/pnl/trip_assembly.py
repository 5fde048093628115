"""Trips from flat to flat as integers: fills are split into trips and funding is assigned."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw

from toolkit.analysis.common import fill_kinds, fixed_point
from toolkit.analysis.pnl import execution_sequence
from toolkit.contract.dexes import is_perp_coin
from toolkit.times import HOUR


@dataclass(slots=True)
class Trip:
    """One trip, with notionals and money in the units of closed PnL."""

    row: int
    sign: int
    opened: int | None
    status: str = "open"
    closed: int | None = None
    last: int | None = None
    """The row of the fill that closed it."""
    fills: int = 0
    peak: int = 0
    opened_size: int = 0
    opened_notional: int = 0
    closed_size: int = 0
    closed_notional: int = 0
    gross: int = 0
    fees: int = 0
    funding: int = 0
    payments: int = 0
    """Number of funding rows."""
    basis: bool = True
    """Whether all opening prices are known."""
    whole: bool = True
    """Whether all that left was sold."""
    forced: bool = False
    at_par: bool = False
    priced: int = -1
    """A fill in a token that has a price; -1 if there is none."""


class TokenPrices(NamedTuple):
    """Prices of the tokens of fills, as integers in units of 10**-decimals; 1 by default.

    - ``of_closed``, ``of_fee``: row -> price of the token of closed PnL, or of the fee
    - ``decimals``: decimals of the prices
    - ``at_par``: rows in a token other than USDC that count at par
    """

    of_closed: dict[int, int]
    of_fee: dict[int, int]
    decimals: int
    at_par: frozenset[int]


class TripCash:
    """Fees and closed PnL as integers in one unit, both in USD."""

    def __init__(
        self,
        frame: nw.DataFrame[Any],
        integers: execution_sequence.IntegerFills,
        least: int,
        worth: TokenPrices,
    ) -> None:
        fee, decimals = fixed_point.to_integers(frame["fee"])
        self.decimals = max(integers.decimals, decimals, least)
        self.fee = fixed_point.rescale(fee, decimals, self.decimals)
        self.closed = fixed_point.rescale(integers.closed, integers.decimals, self.decimals)
        self.unit = integers.unit * 10 ** (self.decimals - integers.decimals)
        self.worth = worth
        if any(integers.token_fee):  # cost and closed PnL contain a fee in the bought token
            taken = zip(self.fee, integers.token_fee, strict=True)
            self.fee = [0 if token else paid for paid, token in taken]
        if worth.of_closed:
            one = 10**worth.decimals
            self.decimals += worth.decimals
            self.fee = [f * worth.of_fee.get(row, one) for row, f in enumerate(self.fee)]
            self.closed = [c * worth.of_closed.get(row, one) for row, c in enumerate(self.closed)]

    def notional(self, trip: Trip) -> int:
        """Return the opened notional of a trip in the unit of money."""
        one = 10**self.worth.decimals
        return int(trip.opened_notional * self.unit * self.worth.of_closed.get(trip.priced, one))


class Conversions(NamedTuple):
    """Rows that convert outcome tokens.

    - ``conversions``, ``swaps``: all conversions, and those of them whose prices have no meaning
    """

    conversions: frozenset[int]
    swaps: frozenset[int]


class FundingPayments(NamedTuple):
    """Funding rows of the fills' accounts, with integer amounts."""

    users: list[str]
    coins: list[str]
    ms: list[int]
    usdc: list[int]
    decimals: int


def cut_trips(
    integers: execution_sequence.IntegerFills,
    order: Sequence[int],
    cash: TripCash,
    ms: Sequence[int],
    marks: Conversions,
) -> list[Trip]:
    """Return the trips of all chains: a trip ends if the position is flat or changes its side."""
    found: list[Trip] = []
    chains, last, position = integers.chain.tolist(), -1, 0
    trip: Trip | None = None
    before = -1
    for row in order:
        start, end = integers.start[row], integers.end[row]
        if chains[row] == last and start != position and integers.spot[row]:
            trip = _spot_change(found, trip, row, before, integers)
        elif chains[row] != last or start != position:
            broken = chains[row] == last
            if broken and trip is not None:
                trip.status = "broken"
            trip = None
            if start:
                trip = Trip(
                    row, _size_sign(start), None, "broken" if broken else "late", basis=False
                )
                found.append(trip)
        last, position, before = chains[row], end, row
        trip = _apply_fill(found, trip, row, integers, cash, ms, marks)
    return found


def _spot_change(
    found: list[Trip],
    trip: Trip | None,
    row: int,
    before: int,
    integers: execution_sequence.IntegerFills,
) -> Trip | None:
    """Return the trip after a gap in a spot balance: tokens came or left without a fill."""
    start = integers.start[row]
    gap = start - integers.end[before]
    if trip is None and not start:
        return None
    if abs(gap) <= integers.tolerance[before] and start:
        return trip
    if trip is None:
        trip = Trip(row, 1, None, "moved", basis=False)
        found.append(trip)
    trip.status = "moved" if trip.status == "open" else trip.status
    trip.basis, trip.whole = trip.basis and gap < 0, trip.whole and gap > 0
    return trip if start else None


def _apply_fill(
    found: list[Trip],
    trip: Trip | None,
    row: int,
    integers: execution_sequence.IntegerFills,
    cash: TripCash,
    ms: Sequence[int],
    marks: Conversions,
) -> Trip | None:
    """Apply a fill, which closes, opens or does both; return the trip that is open after it."""
    start, change, end = integers.start[row], integers.change[row], integers.end[row]
    closing = (
        min(abs(start), abs(change)) if start and _size_sign(start) != _size_sign(change) else 0
    )
    opening = abs(change) - closing
    if integers.spot[row] and closing and opening <= integers.tolerance[row]:
        # A spot balance is never negative: a sell of one unit more is rounding and opens nothing.
        opening, end = 0, max(0, end)
    fee = cash.fee[row] * closing // abs(change) if opening and closing else 0
    fee = cash.fee[row] if not opening else fee
    counted = row not in marks.conversions
    begun = trip
    if closing and trip is not None:
        trip.fills += counted
        trip.whole = trip.whole and row not in marks.swaps
        trip.peak = max(trip.peak, abs(start))
        trip.closed_size += closing
        trip.closed_notional += closing * integers.px[row]
        trip.gross += cash.closed[row]
        trip.fees -= fee
        if end == 0 or opening:
            trip.closed, trip.last = ms[row], row
            trip.status = "closed" if trip.status == "open" else trip.status
            trip = None
    if opening:
        if trip is None:
            trip = Trip(row, _size_sign(change), ms[row])
            found.append(trip)
        trip.fills += counted
        trip.basis = trip.basis and row not in marks.swaps
        trip.peak = max(trip.peak, abs(end))
        trip.opened_size += opening - integers.token_fee[row]
        trip.opened_notional += opening * integers.px[row]
        trip.gross += 0 if closing else cash.closed[row]
        trip.fees -= cash.fee[row] - (fee if closing else 0)
    for changed in (begun, trip):
        if changed is not None and row in cash.worth.at_par:
            changed.at_par = True
        if changed is not None and row in cash.worth.of_closed:
            changed.priced = row
    return trip


def _size_sign(size: int) -> int:
    return 1 if size > 0 else -1


def mark_liquidations(found: Sequence[Trip], frame: nw.DataFrame[Any], account: str | None) -> None:
    """Mark the trips that the exchange closed."""
    column_names = frame.columns
    if not {"dir", "liquidated_user", "liquidation_method"} & set(column_names):
        return
    closes = frame.select(
        forced=fill_kinds.is_forced_close(column_names, account),
        liquidated=fill_kinds.is_liquidation(column_names, account),
    )
    forced, liquidated = closes["forced"].to_list(), closes["liquidated"].to_list()
    for trip in found:
        if trip.last is not None:
            trip.forced = forced[trip.last]
            if trip.status == "closed" and liquidated[trip.last]:
                trip.status = "liquidated"


def assign_funding(
    found: Sequence[Trip],
    names: Sequence[tuple[str, str]],
    payments: FundingPayments,
    ms: Sequence[int],
    decimals: int,
) -> None:
    """Add every payment to the trip that was open at its time."""
    trips = _by_name(found, names)
    ends = {name: _trip_ends(row, ms) for name, row in trips.items()}
    usdc = fixed_point.rescale(payments.usdc, payments.decimals, decimals)
    for name, time, amount in zip(
        zip(payments.users, payments.coins, strict=True), payments.ms, usdc, strict=True
    ):
        place = bisect_left(ends.get(name, []), time)
        if place == len(ends.get(name, [])):
            continue
        trip = trips[name][place]
        if trip.opened is None or trip.opened < time:
            trip.funding += amount
            trip.payments += 1


def find_unpaid(
    found: Sequence[Trip],
    names: Sequence[tuple[str, str]],
    last: Mapping[str, int],
    ms: Sequence[int],
) -> list[bool]:
    """Return for each trip of a perp whether it has full hours, but no funding row.

    - ``names``: user and coin of each trip
    - ``last``: user -> the last time at which a position is known; an open trip ends there
    """
    ends = {name: iter(_trip_ends(trips, ms)) for name, trips in _by_name(found, names).items()}
    unpaid = []
    for trip, (user, coin) in zip(found, names, strict=True):
        end = int(min(next(ends[user, coin]), last[user]))
        hours = end // HOUR - ms[trip.row] // HOUR
        unpaid.append(is_perp_coin(coin) and hours > 0 and not trip.payments)
    return unpaid


def _by_name(
    found: Sequence[Trip], names: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Trip]]:
    trips: dict[tuple[str, str], list[Trip]] = {}
    for trip, name in zip(found, names, strict=True):
        trips.setdefault(name, []).append(trip)
    return trips


def _trip_ends(trips: Sequence[Trip], ms: Sequence[int]) -> list[float]:
    """Return the end of each trip; a broken trip ends at the latest when the next one begins."""
    followers = [*(ms[trip.row] for trip in trips[1:]), math.inf]
    return [
        follower if trip.closed is None else trip.closed
        for trip, follower in zip(trips, followers, strict=True)
    ]
