"""Round trips: from flat to flat, with gain, fees and funding."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, MissingColumns, warn_caller
from toolkit.pnl._positions import owner_columns
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, utc_times
from toolkit.prepare.fills import check_chains
from toolkit.prepare.funding import (
    common_end,
    covered_period,
    payment_hours,
    payment_spans,
    read_payments,
)
from toolkit.prepare.money import Prices, warn_unused_prices
from toolkit.prepare.provenance import finish
from toolkit.prepare.steps import POSITION_COLUMNS
from toolkit.times import HOUR


def round_trips(
    fills: Frame | Fills,
    funding: Frame | None = None,
    *,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | None = None,
) -> pd.DataFrame:
    """Split fills into trips from flat to flat, each with its gain, fees and funding.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them.
        Columns ``coin, px, sz, side, time, start_position, closed_pnl, fee``; ``user`` if there are
        several accounts; ``tx_index`` if there are ties; ``dir`` and ``liquidated_user`` for
        liquidations; ``fee_token`` for spot and for dexes with a collateral other than USDC.
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``), as
        `tk.builder_approved_funding_by_time` returns them. Rows of other accounts do not count.
    account : str, optional
        The account of the fills, if the frame does not state it.
    prices, meta : optional
        Prices of tokens other than USDC, see `tk.pnl.attribution`. Without a price they count at
        par. They convert amounts, and not the prices at which a trip opened and closed.

    Returns
    -------
    DataFrame
        One row per trip, by user and coin, in the order of time:

        - ``user``: the account, if the fills have this column
        - ``coin``: the coin
        - ``side`` text: ``"long"`` or ``"short"``
        - ``opened``: time of the first fill, UTC; missing if the trip began before the fills
        - ``closed``: time of the last fill, UTC; missing if the trip is open
        - ``duration_hours`` float64: hours from ``opened`` to ``closed``
        - ``status`` text: ``"closed"``; ``"liquidated"`` if a liquidation of the account closed it,
          by market order or by the backstop; ``"open"``; ``"late"`` if it was open before the first
          fill; ``"broken"`` if fills are missing, which `tk.pnl.audit` shows; ``"moved"`` if spot
          tokens came or left without a fill. Only closed and liquidated trips are complete
        - ``fills`` int64: number of fills, without conversions
        - ``size``: the largest position, in units of the coin, positive
        - ``entry_px`` float64: size-weighted average of the opening prices, in the collateral or
          quote token, also with `prices`; missing if one of them is not known
        - ``exit_px`` float64: size-weighted average of the closing prices, in the collateral or
          quote token, also with `prices`
        - ``gross``: closed PnL that the exchange states, in USD
        - ``fees``: fees in USD, negative
        - ``funding``: funding in USD, positive if received; missing if the account has no funding
          rows, or if the trip was open at a full hour without one
        - ``net``: ``gross + fees + funding``, in USD; without funding if the account has no funding
          rows, and missing if only this trip lacks some
        - ``return_`` float64: ``net`` as a share of the opened notional; missing if the trip began
          before the fills, or if fills, entry prices or proceeds are missing
        - ``forced`` bool: whether the exchange closed it, by liquidation, auto-deleveraging
          or the settlement of a delisted coin
        - ``at_par`` bool: whether its amounts are in a token other than USDC and count at par
        - ``held_hours`` int64: full hours at which the trip was open; 0 without `funding`
        - ``funded_hours`` int64: full hours of the trip with a funding row

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If funding is of several accounts and the account of the fills is not known.

    Warns
    -----
    HistoryWarning
        If funding rows are outside the time of the fills.

    Notes
    -----
    A fill that changes the side of a position closes one trip and opens the next one. Its fee is
    divided between both trips in proportion to their sizes. Funding counts for the trip that is
    open at the time of the payment, before any fill in the same millisecond. Funding outside the
    time of the fills does not count (`tk.pnl.attribution`); a warning and ``funding_outside`` in
    the provenance state the number of rows. Sums over the trips equal the sums over the fills. If
    the fee of a native perp is in a token other than USDC, `prices` must have the token. Repeated
    rows count once.

    Liquidations, spot and collateral: docs/live_service.md, sections 2, 3 and 6. The entry price
    and ``gross`` of a spot trip contain its fees in the bought token.

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
    fills = prepare.fills(fills, account, prices, meta)
    table = fills.table
    warn_unused_prices(fills.prices, table, fills.collateral)
    check_chains(fills, (*POSITION_COLUMNS, "fee"), outcomes_alone=False)
    _refuse_unpriced_fees(fills)
    steps, legs, money, roles = fills.steps, fills.legs, fills.money, fills.roles
    px, fee = table.number("px")[legs.rows], steps.sizes(steps.fee)[legs.step]
    counted = ~roles.conversion[legs.rows]
    around = np.where(legs.closes, steps.start[legs.step], steps.end[legs.step])
    opened_size = legs.sums(np.where(legs.closes, 0.0, legs.size) - np.where(legs.is_first, fee, 0))
    opened_px = legs.sums(np.where(legs.closes, 0.0, legs.size * px))
    opened_usd = legs.sums(np.where(legs.closes, 0.0, legs.size * px * money.price[legs.rows]))
    closed_size = legs.sums(np.where(legs.closes, legs.size, 0.0))
    closed_px = legs.sums(np.where(legs.closes, legs.size * px, 0.0))
    gross = legs.sums(np.where(legs.is_first, money.closed_pnl[legs.rows], 0.0))
    fees = 0.0 - legs.sums(money.fee[legs.rows] * legs.share)
    at, last = legs.step[legs.heads], legs.step[legs.tails]
    opened = np.where(legs.opened, steps.ms[at], NO_TIME)
    closed = np.where(legs.closed, steps.ms[last], NO_TIME)
    last_rows = steps.rows[last]
    status = np.array(legs.status, dtype=object)
    status[(status == "closed") & roles.liquidated[last_rows]] = "liquidated"
    no_hours = np.zeros(len(at), dtype=np.int64)
    paid = _TripFunding(np.full(len(at), np.nan), no_hours, no_hours, no_hours > 0, 0)
    if funding is not None:
        paid = _funding_of_trips(fills, funding)
    net = gross + fees + np.where(paid.has_rows, paid.usd, 0.0)
    is_full = legs.basis & ~np.isin(status, ("late", "broken"))
    complete = (opened != NO_TIME) & (closed != NO_TIME)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = {
            **owner_columns(fills, at),
            "side": pd.Series(np.where(legs.sign > 0, "long", "short"), dtype="str"),
            "opened": utc_times(opened),
            "closed": utc_times(closed),
            "duration_hours": np.where(complete, (closed - opened) / HOUR, np.nan),
            "status": pd.Series(status, dtype="str"),
            "fills": legs.sums(counted.astype(np.float64)).astype(np.int64),
            "size": legs.sums(np.abs(around) / steps.scale[legs.step], np.maximum),
            "entry_px": np.where(is_full & (opened_size != 0), opened_px / opened_size, np.nan),
            "exit_px": np.where(legs.whole & (closed_size > 0), closed_px / closed_size, np.nan),
            "gross": gross,
            "fees": fees,
            "funding": paid.usd,
            "net": net,
            "return_": np.where(is_full & legs.whole & (opened_usd > 0), net / opened_usd, np.nan),
            "forced": legs.closed & roles.forced[last_rows],
            "at_par": legs.sums(money.is_at_par[legs.rows], np.logical_or),
            "held_hours": paid.held,
            "funded_hours": paid.funded,
        }
    facts = {} if funding is None else {"funding_outside": paid.outside}
    inputs = {"fills": table.frame, "funding": funding}
    return finish(pd.DataFrame(made, copy=False), inputs, helper="pnl.round_trips", **facts)


def _refuse_unpriced_fees(fills: Fills) -> None:
    """Raise `MissingColumns` if the fee of a native perp is in a token without a price."""
    unpriced = fills.money.is_unpriced
    if unpriced.any():
        row = int(np.flatnonzero(unpriced)[0])
        coins, tokens = fills.table.text("coin"), fills.tokens
        coin, token = coins.values[coins.codes[row]], tokens.values[tokens.codes[row]].upper()
        raise MissingColumns(
            f"fills: the fee of a perp fill of {coin} is in {token}, which has no price here. "
            f"Pass prices={{{token!r}: ...}}, or remove such fills"
        )


class _TripFunding(NamedTuple):
    """Funding of trips: USD, full hours with an open position, and those with a payment.

    - ``has_rows``: whether the account has any payment; without one its trips are alike
    - ``outside``: the number of rows outside the time of the fills
    """

    usd: Floats
    held: Ints
    funded: Ints
    has_rows: Flags
    outside: int


def _funding_of_trips(fills: Fills, frame: Frame) -> _TripFunding:
    """Return the funding of each trip.

    A payment belongs to the trip that was open at its full hour. Funding is missing if the account
    has no rows, or if one of the hours has none.
    """
    funding, mine, inside, usdc = read_payments(
        fills, frame, covered_period(fills.table), named=True
    )
    outside = int((mine & ~inside).sum())
    if outside:
        lying = count_text(outside, "row lies", "rows lie")
        warn_caller(
            f"funding: {lying} outside the time of the fills. Such rows do not count. "
            "Fetch fills of the same time. tk.pnl.attribution returns the "
            "sum of such rows as funding_outside",
            HistoryWarning,
        )
    steps, legs = fills.steps, fills.legs
    is_paid = mine & inside & ~np.isnan(usdc)
    # A row that sums payments has several hours, and one amount, which counts at the last of them.
    hours, chain, payers = payment_hours(funding, steps, is_paid)
    ms = hours * HOUR
    spans = payment_spans(funding)[is_paid]
    amount = np.zeros(len(ms))
    amount[np.cumsum(spans) - spans] = usdc[is_paid]
    at, number = legs.step[legs.heads], len(legs.heads)
    begins, ends = steps.ms[at], trip_ends(fills)
    begin = int(min(ms.min(initial=0), steps.ms.min(initial=0)))
    end = int(max(ms.max(initial=0), steps.ms.max(initial=0))) + 1
    bits = (end - begin).bit_length()
    # The first trip of the chain that ends at the time of the payment or later.
    key = (steps.chain[at] << bits) | (np.minimum(ends, end) - begin)
    trip = np.searchsorted(key, (np.maximum(chain, 0) << bits) | (ms - begin))
    found = np.flatnonzero((trip < number) & (chain >= 0))
    found = found[steps.chain[at][trip[found]] == chain[found]]
    found = found[~legs.opened[trip[found]] | (begins[trip[found]] < ms[found])]
    paid, funded = (np.bincount(trip[found], weights, number) for weights in (amount[found], None))
    last = np.full(len(steps.users) + 1, common_end(fills.table.frame, funding.frame))
    np.maximum.at(last, steps.user, steps.ms)
    np.maximum.at(last, payers, ms)
    held = np.where(steps.spot[at], 0, np.minimum(ends, last[steps.user[at]]) // HOUR)
    held = np.maximum(held - np.where(steps.spot[at], 0, begins // HOUR), 0)
    funded = np.minimum(funded.astype(np.int64), held)
    has_rows = (np.bincount(payers, minlength=len(last)) > 0)[steps.user[at]]
    usd = np.where(has_rows & (funded == held), paid, np.nan)
    return _TripFunding(usd, held, funded, has_rows, outside)


def trip_ends(fills: Fills) -> Ints:
    """Return the end of each trip; a broken trip ends at the latest when the next one begins."""
    steps, legs = fills.steps, fills.legs
    at, last = legs.step[legs.heads], legs.step[legs.tails]
    follows = np.append(steps.chain[at][1:] == steps.chain[at][:-1], False)[: len(at)]
    following = np.append(steps.ms[at][1:], 0)[: len(at)]
    never = np.iinfo(np.int64).max
    return np.where(legs.closed, steps.ms[last], np.where(follows, following, never))
