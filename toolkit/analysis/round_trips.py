"""Round trips: from flat to flat, what a position brought and what it cost."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import pyarrow as pa

from toolkit.analysis import columns, engines, running, scaled
from toolkit.analysis.columns import HOUR_MS, Numbers
from toolkit.analysis.owners import Accounts, address, named, own
from toolkit.analysis.positions import by_chain, opened, pick
from toolkit.errors import MissingColumns

__all__ = ["round_trips"]


@dataclass(slots=True)
class _Trip:
    """One trip, in whole numbers; notionals and money in the units of closed PnL."""

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


def round_trips(fills: Any, funding: Any = None, *, account: str | None = None) -> Any:
    """Cut the fills of perps into trips from flat to flat, with what each brought and cost.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or many accounts in any order, as `tk.user_fills_by_time` gives them
        (pandas, Polars eager or lazy, DuckDB relation; numbers float or exact). Columns ``coin,
        px, sz, side, time, start_position, closed_pnl, fee``; ``user`` and ``tx_index`` where
        there are several accounts or ties; ``dir``, to tell liquidations.
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``), as
        `tk.builder_approved_funding_by_time` gives them; those of other accounts do not count.
    account : str, optional
        Whose fills they are, where nothing else says.

    Returns
    -------
    DataFrame
        Of the engine of `fills`, one row a trip, by user and coin, in the order of time:

        - ``user`` (where the fills have it), ``coin``, ``side`` (``"long"``, ``"short"``);
        - ``opened``, ``closed``: times, UTC; ``duration_hours`` float64 between them;
        - ``status``: ``"closed"``; ``"liquidated"`` where the fill that closed it was a
          liquidation (by its ``dir``; without that column it is closed); ``"open"`` where it
          still is; ``"late"`` where it was open before the first fill (``opened`` is missing);
          ``"broken"`` where fills are missing, which `tk.pnl.audit` shows. Only closed and
          liquidated trips are whole;
        - ``fills`` int64; ``size``: the largest position, positive;
        - ``entry_px``, ``exit_px`` float64: size-weighted averages of what opened and closed;
        - ``gross``: closed PnL as the exchange says, USD; ``fees``, negative; ``funding``,
          missing without funding rows of the account; ``net = gross + fees + funding``, without
          funding where it is missing;
        - ``return_`` float64: net over the notional that was opened.

    Raises
    ------
    MissingColumns
        If a column is missing, holds text, or has missing values.
    ValueError
        If funding holds several accounts and nothing says which one the fills are of.

    Notes
    -----
    A fill that flips a position closes one trip and opens the next one; its fee is shared by
    size. Funding counts for the trip that is open when it is paid; a fill in the same millisecond
    comes after it. Sums over the trips are the sums over the fills. Fees in another token than
    USDC are not money here: such fills are refused. Frames are read into memory. A row given
    twice breaks the chain, and its trip is marked so.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0, 105.0], "sz": [2.0, 3.0, 1.0],
    ...     "side": ["B", "A", "B"], "start_position": [0.0, 2.0, -1.0],
    ...     "time": pd.to_datetime([0, 3_600_000, 7_200_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 20.0, 5.0], "fee": [0.1, 0.3, 0.1]})
    >>> round_trips(fills)[["side", "duration_hours", "gross", "fees", "net"]]
        side  duration_hours  gross  fees   net
    0   long             1.0   20.0  -0.3  19.7
    1  short             1.0    5.0  -0.2   4.8
    """
    frame, kind = opened(fills, (*running.NEEDED, "fee"))
    whose = Accounts(frame, named(fills, account))
    frame = _perps(frame)
    payments = _payments(funding, kind, whose, frame)
    read = running.read(frame, {})
    cash = _Cash(frame, read, payments.decimals if payments else 0)
    order = by_chain(frame, read)
    ms = engines.milliseconds(frame["time"])
    found = _trips(read, order, cash, ms)
    users = _users(frame) if "user" in frame.columns else [""] * len(frame)
    if payments:
        coins = frame["coin"].to_list()
        _share(found, [(users[t.row], coins[t.row]) for t in found], payments, ms, cash.decimals)
    _name_liquidations(found, frame)
    known = set(payments.users) if payments else set()
    covered = [users[trip.row] in known for trip in found]
    made = _identity(frame, found, ms) | _money(found, read, cash, kind, covered)
    inputs = {"fills": fills, "funding": funding}
    return engines.result(pa.table(made), inputs, helper="pnl.round_trips")


def _perps(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    perp = ~nw.col("coin").str.contains(f"{columns.SPOT_COIN}|{columns.OUTCOME_COIN}")
    frame = frame.filter(perp)
    if "fee_token" in frame.columns:
        other = ~nw.col("fee_token").is_null() & ~nw.col("fee_token").is_in(("USDC", ""))
        odd = frame.filter(other & (nw.col("fee") != 0))
        if len(odd):
            raise MissingColumns(
                f"fills: {len(odd)} perp fills paid their fee in {odd['fee_token'][0]}, "
                "which has no price here; leave them out or convert them"
            )
    return frame


class _Cash:
    """Fees in whole numbers, in one unit with closed PnL."""

    def __init__(self, frame: nw.DataFrame[Any], read: running.Fills, least: int) -> None:
        fee, decimals = scaled.whole(frame["fee"])
        self.decimals = max(read.decimals, decimals, least)
        self.fee = scaled.rescaled(fee, decimals, self.decimals)
        self.closed = scaled.rescaled(read.closed, read.decimals, self.decimals)
        self.unit = read.unit * 10 ** (self.decimals - read.decimals)


def _trips(
    read: running.Fills, order: Sequence[int], cash: _Cash, ms: Sequence[int]
) -> list[_Trip]:
    """Walk along every chain and cut it where it is flat or changes sides."""
    found: list[_Trip] = []
    chains, last, position = read.chain.tolist(), -1, 0
    trip: _Trip | None = None
    for row in order:
        start, end = read.start[row], read.end[row]
        if chains[row] != last or start != position:
            broken = chains[row] == last
            if broken and trip is not None:
                trip.status = "broken"
            trip = None
            if start:
                trip = _Trip(row, _sign(start), None, "broken" if broken else "late")
                found.append(trip)
        last, position = chains[row], end
        trip = _apply(found, trip, row, read, cash, ms)
    return found


def _apply(
    found: list[_Trip],
    trip: _Trip | None,
    row: int,
    read: running.Fills,
    cash: _Cash,
    ms: Sequence[int],
) -> _Trip | None:
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
            trip = _Trip(row, _sign(change), ms[row])
            found.append(trip)
        trip.fills += 1
        trip.peak = max(trip.peak, abs(end))
        trip.opened_size += opening
        trip.opened_notional += opening * read.px[row]
        trip.gross += 0 if closing else cash.closed[row]
        trip.fees -= cash.fee[row] - (fee if closing else 0)
    return trip


def _name_liquidations(found: Sequence[_Trip], frame: nw.DataFrame[Any]) -> None:
    """Tell trips that the exchange closed from those that the account closed."""
    if "dir" not in frame.columns:
        return
    words = frame["dir"].cast(nw.String()).to_list()
    for trip in found:
        if trip.status == "closed" and trip.last is not None:
            word = words[trip.last]
            if isinstance(word, str) and word.startswith("Liquidated"):
                trip.status = "liquidated"


def _sign(size: int) -> int:
    return 1 if size > 0 else -1


class _Payments(NamedTuple):
    """Funding rows of the fills' accounts, in whole numbers."""

    users: list[str]
    coins: list[str]
    ms: list[int]
    usdc: list[int]
    decimals: int


def _payments(
    native: Any, kind: Numbers, whose: Accounts, frame: nw.DataFrame[Any]
) -> _Payments | None:
    if native is None:
        return None
    rows = engines.eager(native, "funding")
    users = "user" in frame.columns
    columns.need(rows, ("coin", "time", "usdc", *(["user"] if users else [])), "funding")
    columns.numbers(rows, ["usdc"], "funding", kind)
    mine: Any = own(rows, "user", whose, "funding")
    mine = mine.filter(~nw.col("usdc").is_null())
    if not isinstance(mine["usdc"].dtype, nw.Decimal):
        mine = mine.filter(~nw.col("usdc").is_nan())
    usdc, decimals = scaled.whole(mine["usdc"])
    return _Payments(
        _users(mine) if users else [""] * len(mine),
        mine["coin"].to_list(),
        engines.milliseconds(mine["time"]),
        usdc,
        decimals,
    )


def _users(frame: nw.DataFrame[Any]) -> list[str]:
    names: list[str] = frame.select(user=address("user"))["user"].to_list()
    return names


def _share(
    found: Sequence[_Trip],
    names: Sequence[tuple[str, str]],
    payments: _Payments,
    ms: Sequence[int],
    decimals: int,
) -> None:
    """Give every payment to the trip that it fell into."""
    trips: dict[tuple[str, str], list[_Trip]] = {}
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


def _ends(trips: Sequence[_Trip], ms: Sequence[int]) -> list[float]:
    """Give when each trip ended; a broken one at the latest when the next begins."""
    followers = [*(ms[trip.row] for trip in trips[1:]), math.inf]
    return [
        follower if trip.closed is None else trip.closed
        for trip, follower in zip(trips, followers, strict=True)
    ]


def _identity(
    frame: nw.DataFrame[Any], found: Sequence[_Trip], ms: Sequence[int]
) -> dict[str, Any]:
    rows = [trip.row for trip in found]
    kept = {
        name: engines.texts(pick(frame[name].to_list(), rows))
        for name in ("user", "coin")
        if name in frame.columns
    }
    hours = [
        None if trip.opened is None or trip.closed is None else trip.closed - trip.opened
        for trip in found
    ]
    return kept | {
        "side": engines.texts(["long" if trip.sign > 0 else "short" for trip in found]),
        "opened": engines.times([trip.opened for trip in found]),
        "closed": engines.times([trip.closed for trip in found]),
        "duration_hours": pa.array(
            [None if h is None else h / HOUR_MS for h in hours], type=pa.float64()
        ),
        "status": engines.texts([trip.status for trip in found]),
        "fills": pa.array([trip.fills for trip in found], type=pa.int64()),
    }


def _money(
    found: Sequence[_Trip],
    read: running.Fills,
    cash: _Cash,
    kind: Numbers,
    covered: Sequence[bool],
) -> dict[str, Any]:
    unit = 10**read.px_decimals
    paid = [trip.funding if has else None for trip, has in zip(found, covered, strict=True)]
    net = [trip.gross + trip.fees + (f or 0) for trip, f in zip(found, paid, strict=True)]
    return {
        "size": engines.numbers([trip.peak for trip in found], read.size_decimals, kind),
        "entry_px": _floats([_over(t.opened_notional, t.opened_size * unit) for t in found]),
        "exit_px": _floats([_over(t.closed_notional, t.closed_size * unit) for t in found]),
        "gross": engines.numbers([trip.gross for trip in found], cash.decimals, kind),
        "fees": engines.numbers([trip.fees for trip in found], cash.decimals, kind),
        "funding": engines.numbers(paid, cash.decimals, kind),
        "net": engines.numbers(net, cash.decimals, kind),
        "return_": _floats(
            [_over(n, t.opened_notional * cash.unit) for n, t in zip(net, found, strict=True)]
        ),
    }


def _over(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _floats(values: Sequence[float | None]) -> pa.Array:
    return pa.array(values, type=pa.float64())
