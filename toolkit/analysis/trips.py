"""Trips from flat to flat, in whole numbers: cut out of fills, and given the funding they got."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw

from toolkit.analysis import running, scaled


@dataclass(slots=True)
class Trip:
    """One trip; notionals and money in the units of closed PnL."""

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


class Cash:
    """Fees in whole numbers, in one unit with closed PnL."""

    def __init__(self, frame: nw.DataFrame[Any], read: running.Fills, least: int) -> None:
        fee, decimals = scaled.whole(frame["fee"])
        self.decimals = max(read.decimals, decimals, least)
        self.fee = scaled.rescaled(fee, decimals, self.decimals)
        self.closed = scaled.rescaled(read.closed, read.decimals, self.decimals)
        self.unit = read.unit * 10 ** (self.decimals - read.decimals)


class Payments(NamedTuple):
    """Funding rows of the fills' accounts, in whole numbers."""

    users: list[str]
    coins: list[str]
    ms: list[int]
    usdc: list[int]
    decimals: int


def cut(read: running.Fills, order: Sequence[int], cash: Cash, ms: Sequence[int]) -> list[Trip]:
    """Walk along every chain and cut it where it is flat or changes sides."""
    found: list[Trip] = []
    chains, last, position = read.chain.tolist(), -1, 0
    trip: Trip | None = None
    for row in order:
        start, end = read.start[row], read.end[row]
        if chains[row] != last or start != position:
            broken = chains[row] == last
            if broken and trip is not None:
                trip.status = "broken"
            trip = None
            if start:
                trip = Trip(row, _sign(start), None, "broken" if broken else "late")
                found.append(trip)
        last, position = chains[row], end
        trip = _apply(found, trip, row, read, cash, ms)
    return found


def _apply(
    found: list[Trip],
    trip: Trip | None,
    row: int,
    read: running.Fills,
    cash: Cash,
    ms: Sequence[int],
) -> Trip | None:
    """Let one fill close, open, or both; give the trip that is open after it."""
    start, change, end = read.start[row], read.change[row], read.end[row]
    closing = min(abs(start), abs(change)) if start and _sign(start) != _sign(change) else 0
    opening = abs(change) - closing
    fee = cash.fee[row] * closing // abs(change) if opening and closing else 0
    fee = cash.fee[row] if not opening else fee
    if closing and trip is not None:
        trip.fills += 1
        trip.peak = max(trip.peak, abs(start))
        trip.closed_size += closing
        trip.closed_notional += closing * read.px[row]
        trip.gross += cash.closed[row]
        trip.fees -= fee
        if end == 0 or opening:
            trip.closed, trip.last = ms[row], row
            trip.status = "closed" if trip.status == "open" else trip.status
            trip = None
    if opening:
        if trip is None:
            trip = Trip(row, _sign(change), ms[row])
            found.append(trip)
        trip.fills += 1
        trip.peak = max(trip.peak, abs(end))
        trip.opened_size += opening
        trip.opened_notional += opening * read.px[row]
        trip.gross += 0 if closing else cash.closed[row]
        trip.fees -= cash.fee[row] - (fee if closing else 0)
    return trip


def _sign(size: int) -> int:
    return 1 if size > 0 else -1


def name_liquidations(found: Sequence[Trip], frame: nw.DataFrame[Any]) -> None:
    """Tell trips that the exchange closed from those that the account closed."""
    if "dir" not in frame.columns:
        return
    words = frame["dir"].cast(nw.String()).to_list()
    for trip in found:
        if trip.status == "closed" and trip.last is not None:
            word = words[trip.last]
            if isinstance(word, str) and word.startswith("Liquidated"):
                trip.status = "liquidated"


def share_funding(
    found: Sequence[Trip],
    names: Sequence[tuple[str, str]],
    payments: Payments,
    ms: Sequence[int],
    decimals: int,
) -> None:
    """Give every payment to the trip that it fell into."""
    trips: dict[tuple[str, str], list[Trip]] = {}
    for trip, name in zip(found, names, strict=True):
        trips.setdefault(name, []).append(trip)
    ends = {name: _ends(row, ms) for name, row in trips.items()}
    usdc = scaled.rescaled(payments.usdc, payments.decimals, decimals)
    for name, time, amount in zip(
        zip(payments.users, payments.coins, strict=True), payments.ms, usdc, strict=True
    ):
        place = bisect_left(ends.get(name, []), time)
        if place == len(ends.get(name, [])):
            continue
        trip = trips[name][place]
        if trip.opened is None or trip.opened < time:
            trip.funding += amount


def _ends(trips: Sequence[Trip], ms: Sequence[int]) -> list[float]:
    """Give when each trip ended; a broken one at the latest when the next begins."""
    followers = [*(ms[trip.row] for trip in trips[1:]), math.inf]
    return [
        follower if trip.closed is None else trip.closed
        for trip, follower in zip(trips, followers, strict=True)
    ]
