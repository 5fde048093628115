"""Round trips: from flat to flat, what a position brought and what it cost."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from toolkit.analysis import columns, engines, markets, running, scaled
from toolkit.analysis.columns import Numbers
from toolkit.analysis.identity import count_once
from toolkit.analysis.owners import Accounts, address, named, own
from toolkit.analysis.positions import by_chain, opened, pick
from toolkit.analysis.trips import Cash, Payments, Trip, cut, name_liquidations, share_funding
from toolkit.errors import MissingColumns
from toolkit.times import HOUR

__all__ = ["round_trips"]


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
    USDC are not money here: such fills are refused. Frames are read into memory. Rows given
    twice count once.

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
    fills = count_once(fills, "fills")
    funding = count_once(funding, "funding")
    frame, kind = opened(fills, (*running.NEEDED, "fee"))
    whose = Accounts(frame, named(fills, account))
    frame = _perps(frame)
    payments = _payments(funding, kind, whose, frame)
    read = running.read(frame, {})
    cash = Cash(frame, read, payments.decimals if payments else 0)
    order = by_chain(frame, read)
    ms = engines.milliseconds(frame["time"])
    found = cut(read, order, cash, ms)
    users = _users(frame) if "user" in frame.columns else [""] * len(frame)
    if payments:
        coins = frame["coin"].to_list()
        share_funding(
            found, [(users[t.row], coins[t.row]) for t in found], payments, ms, cash.decimals
        )
    name_liquidations(found, frame)
    known = set(payments.users) if payments else set()
    covered = [users[trip.row] in known for trip in found]
    made = _identity(frame, found, ms) | _money(found, read, cash, kind, covered)
    inputs = {"fills": fills, "funding": funding}
    return engines.result(pa.table(made), inputs, helper="pnl.round_trips")


def _perps(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    perp = markets.is_perp(nw.col("coin"))
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


def _payments(
    native: Any, kind: Numbers, whose: Accounts, frame: nw.DataFrame[Any]
) -> Payments | None:
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
    return Payments(
        _users(mine) if users else [""] * len(mine),
        mine["coin"].to_list(),
        engines.milliseconds(mine["time"]),
        usdc,
        decimals,
    )


def _users(frame: nw.DataFrame[Any]) -> list[str]:
    names: list[str] = frame.select(user=address("user"))["user"].to_list()
    return names


def _identity(frame: nw.DataFrame[Any], found: Sequence[Trip], ms: Sequence[int]) -> dict[str, Any]:
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
            [None if h is None else h / HOUR for h in hours], type=pa.float64()
        ),
        "status": engines.texts([trip.status for trip in found]),
        "fills": pa.array([trip.fills for trip in found], type=pa.int64()),
    }


def _money(
    found: Sequence[Trip],
    read: running.Fills,
    cash: Cash,
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
