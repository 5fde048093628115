"""Round trips: from flat to flat, with gain, fees and funding."""

from typing import Any

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Flags, Floats, Ints
from toolkit.display import count_text
from toolkit.errors import HistoryWarning, MissingColumns, warn_caller
from toolkit.prepare import Fills
from toolkit.prepare import funding as payments
from toolkit.prepare.door import NO_TIME, Frame, utc_times
from toolkit.prepare.fills import check_chains, owner_columns
from toolkit.prepare.groups import sum_groups
from toolkit.prepare.money import Prices, warn_unused_prices
from toolkit.prepare.provenance import finish, frame_provenance
from toolkit.prepare.steps import POSITION_COLUMNS
from toolkit.times import HOUR, to_ms


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
    if fills.prices:
        warn_unused_prices(fills.prices, table, fills.collateral)
    check_chains(fills, (*POSITION_COLUMNS, "fee"), outcomes_alone=False)
    steps, legs, money, roles = fills.steps, Legs(fills), fills.money, fills.roles
    if money.is_unpriced.any():
        row = np.flatnonzero(money.is_unpriced)[:1]
        (coin,), (token,) = table.text("coin").texts(row), fills.tokens.texts(row).str.upper()
        raise MissingColumns(
            f"fills: the fee of a perp fill of {coin} is in {token}, which has no price here. "
            f"Pass prices={{{token!r}: ...}}, or remove such fills"
        )
    rows, px, fee = legs.rows, table.number("px")[legs.rows], (steps.fee / steps.scale)[legs.step]
    around = np.where(legs.closes, steps.start[legs.step], steps.end[legs.step])
    opening, closing = (np.where(legs.closes == closes, legs.size, 0.0) for closes in (False, True))
    opened_size = legs.sums(opening - np.where(legs.is_first, fee, 0))
    opened_usd = legs.sums(opening * px * money.price[rows])
    closed_size = legs.sums(closing)
    gross = legs.sums(np.where(legs.is_first, money.closed_pnl[rows], 0.0))
    fees = 0.0 - legs.sums(money.fee[rows] * legs.share)
    at, last = legs.step[legs.heads], legs.step[legs.tails]
    opened = np.where(legs.opened, steps.ms[at], NO_TIME)
    closed = np.where(legs.closed, steps.ms[last], NO_TIME)
    status = legs.status
    status[(status == "closed") & roles.liquidated[steps.rows[last]]] = "liquidated"
    usd, held, facts = np.full(len(at), np.nan), np.zeros(len(at), np.int64), dict[str, int]()
    funded, has_rows = held, held > 0
    if funding is not None:
        period = payments.covered_period(table)
        paid = payments.read_payments(fills, funding, period, named=True)
        facts["funding_outside"] = outside = int((paid.mine & ~paid.inside).sum())
        if outside:
            lying = count_text(outside, "row lies", "rows lie")
            warn_caller(
                f"funding: {lying} outside the time of the fills. Such rows do not count. "
                "Fetch fills of the same time. tk.pnl.attribution returns the "
                "sum of such rows as funding_outside",
                HistoryWarning,
            )
        is_paid = paid.mine & paid.inside & ~np.isnan(paid.usd)
        usd, held, funded, has_rows = trip_funding(fills, legs, paid, is_paid)
        # Missing if the account has no rows, or if one of the hours of the trip has none.
        usd = np.where(has_rows & (funded == held), usd, np.nan)
    net = gross + fees + np.where(has_rows, usd, 0.0)
    is_full = legs.basis & ~np.isin(status, ("late", "broken"))
    with np.errstate(divide="ignore", invalid="ignore"):
        made = {
            **owner_columns(fills, at),
            "side": pd.Series(np.where(legs.sign > 0, "long", "short"), dtype="str"),
            "opened": utc_times(opened),
            "closed": utc_times(closed),
            "duration_hours": np.where(legs.opened & legs.closed, (closed - opened) / HOUR, np.nan),
            "status": pd.Series(status, dtype="str"),
            "fills": legs.sums(~roles.conversion[rows] + 0),
            "size": legs.sums(np.abs(around) / steps.scale[legs.step], np.maximum),
            "entry_px": np.where(
                is_full & (opened_size != 0), legs.sums(opening * px) / opened_size, np.nan
            ),
            "exit_px": np.where(
                legs.whole & (closed_size > 0), legs.sums(closing * px) / closed_size, np.nan
            ),
            "gross": gross,
            "fees": fees,
            "funding": usd,
            "net": net,
            "return_": np.where(is_full & legs.whole & (opened_usd > 0), net / opened_usd, np.nan),
            "forced": legs.closed & roles.forced[steps.rows[last]],
            "at_par": legs.sums(money.is_at_par[rows], np.logical_or),
            "held_hours": held,
            "funded_hours": funded,
        }
    inputs = {"fills": table.frame, "funding": funding}
    return finish(pd.DataFrame(made, copy=False), inputs, helper="pnl.round_trips", **facts)


class Legs:
    """Legs of fills in the order of execution, and their trips; a flip has two legs.

    One value per leg:

    - ``step``: the number of the step
    - ``rows``: the row of the prepared table
    - ``closes``: whether it closes or opens
    - ``size``: its size, in units of the coin
    - ``share``: its share of the fill's size
    - ``is_first``: whether it is the first leg of its fill

    One value per trip:

    - ``heads``, ``tails``: the first and the last leg
    - ``sign``: 1 for long, -1 for short
    - ``opened``, ``closed``: whether a fill opened it, and whether a fill closed it
    - ``status``: ``closed``, ``open``, ``late``, ``broken`` or ``moved``
    - ``basis``: whether all opening prices are known
    - ``whole``: whether all that left was sold
    """

    def __init__(self, fills: Fills) -> None:
        steps = fills.steps
        start, change, spot, end = steps.start, steps.change, steps.spot, steps.end
        size, rounding, before = np.abs(change), steps.same_start, start - steps.gap
        is_opposed = (start != 0) & ((start > 0) != (change > 0))
        closing = np.where(is_opposed, np.minimum(np.abs(start), size), 0)
        # A spot balance is never negative: a sell of one unit more is rounding and opens nothing.
        is_rest = spot & (closing > 0) & (size - closing <= steps.tolerance)
        opening = np.where(is_rest, 0, size - closing)
        gap = steps.is_gap & ~rounding
        is_new = steps.first | (gap & (~spot | (before == 0)))
        begins = is_new & (start != 0)  # a trip that no known fill opened
        alive = (start != 0) & ~(rounding & (before == 0) & ~steps.first)
        flip = (closing > 0) & (opening > 0) & alive
        lost = (closing > 0) & ~alive  # a rest of rounding, which no trip has

        step = np.repeat(np.arange(len(start)), 1 + flip)
        is_first = np.diff(step, prepend=-1) != 0
        head = ~is_first | (begins | ~alive)[step]
        if lost.any():
            kept = ~lost[step]
            step, is_first, head = step[kept], is_first[kept], head[kept]
        self.step, self.is_first, self.rows = step, is_first, steps.rows[step]
        self.closes = closes = (closing > 0)[step] & is_first
        self.heads = heads = np.flatnonzero(head)
        self.tails = tails = np.append(heads[1:], len(step))[: len(heads)] - 1
        units = np.where(closes, closing[step], opening[step])
        self.size = units / steps.scale[step]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.share = np.where(flip[step] & (size[step] > 0), units / size[step], 1.0)
        at, tail = step[heads], step[tails]
        self.opened = opened = ~(begins[at] & is_first[heads])
        self.closed = closed = closes[tails] & ((end[tail] == 0) | flip[tail])
        # What happens between the last fill of a trip and the next one of its chain.
        after = np.minimum(tail + 1, max(len(start) - 1, 0))
        ends_in_gap = ~steps.last[tail] & gap[after] & ~closed
        left = ends_in_gap & spot[at] & (start[after] == 0)
        inner = gap[step] & is_first & ~head
        moved, came = inner & spot[step], inner & (steps.gap[step] > 0)
        swap, either = fills.roles.swap[self.rows], np.logical_or
        broken, late = ends_in_gap & ~spot[at], ~opened & steps.first[at]
        is_moved = (~opened & spot[at]) | (opened & (self.sums(moved, either) | left))
        cases = (broken, late, is_moved, ~opened, closed)
        words = ("broken", "late", "moved", "broken", "closed")
        self.status = np.select(cases, words, "open").astype(object)
        self.sign = np.where(opened, np.sign(change[at]), np.sign(start[at]))
        self.basis = opened & ~self.sums(came | (swap & ~closes), either)
        lost_tokens = (moved & (steps.gap[step] < 0)) | (swap & closes)
        self.whole = ~(self.sums(lost_tokens, either) | left)

    def sums(self, values: Any, how: np.ufunc = np.add) -> Any:
        """Return the sum of values of legs by trip, or what another function makes of them."""
        return how.reduceat(values, self.heads) if len(self.heads) else values[:0]


def trip_funding(
    fills: Fills, legs: Legs, paid: payments.Payments, rows: Flags
) -> tuple[Floats, Ints, Ints, Flags]:
    """Return the funding of each trip, its full hours with an open position and with a payment.

    - ``rows``: the funding rows that count

    A payment belongs to the trip that was open at its full hour. Also returned is whether the
    account has any payment; without one its trips are alike. The hours of a trip end at the last
    fill or payment of the account, or at the end of the time that both frames were requested for.
    """
    steps, at, number = fills.steps, legs.step[legs.heads], len(legs.heads)
    funding, places = paid.table, np.flatnonzero(rows & (paid.table.ms() != NO_TIME))
    # A row that sums payments has several hours, and one amount, which counts at the last of them.
    spans = payments.payment_spans(funding)[places]
    again, last_hour = np.repeat(np.arange(len(places)), spans), np.cumsum(spans) - spans
    hours = (funding.ms()[places] // HOUR)[again]
    hours += np.repeat(last_hour, spans) - np.arange(len(again))
    ms, chain = hours * HOUR, payments.chains_of(funding, steps)[places][again]
    amount = np.zeros(len(ms))
    amount[last_hour] = paid.usd[places]
    # The number of each payer; one more than the last for an account without fills.
    users = {name: place for place, name in enumerate(steps.users)}
    payers = np.full(len(ms), next((place for name, place in users.items() if name), 0))
    if any(users) and funding.has("user"):
        payer = funding.text("user").facts(lambda name: users.get(name, len(users)))
        payers = payer[places][again]
    # A broken trip ends at the latest when the next one begins.
    begins, chains = steps.ms[at], steps.chain[at]
    begin = int(min(ms.min(initial=0), steps.ms.min(initial=0)))
    end = int(max(ms.max(initial=0), steps.ms.max(initial=0))) + 1
    never = np.iinfo(np.int64).max
    is_last = np.diff(chains, append=-1) != 0
    following = np.where(is_last, never, np.append(begins[1:], never)[:number])
    ends = np.where(legs.closed, steps.ms[legs.step[legs.tails]], following)
    # The first trip of the chain that ends at the time of the payment or later.
    bits = (end - begin).bit_length()
    trip = np.searchsorted(
        (chains << bits) | (np.minimum(ends, end) - begin),
        (np.maximum(chain, 0) << bits) | (ms - begin),
    )
    found = np.flatnonzero((trip < number) & (chain >= 0))
    found = found[chains[trip[found]] == chain[found]]
    is_later = begins[trip[found]] < ms[found]
    paid_hours = np.unique((trip << 24 | hours)[found[is_later]])  # an hour may have two rows
    counts = np.bincount(paid_hours >> 24, minlength=number)
    found = found[is_later | ~legs.opened[trip[found]]]
    usd = sum_groups(trip[found], amount[found], number)
    of_fills, of_funding = map(frame_provenance, (fills.table.frame, funding.frame))
    bounds = list[int]()
    # If the user removed fills, the end of the remaining ones is not known.
    if of_funding and of_fills.get("rows") == len(fills):
        asked = (of_fills.get("asked_at"), of_funding.get("asked_at"))
        bounds = [to_ms(time) for time in asked if isinstance(time, str)]
        if isinstance(asked_end := of_fills.get("parameters", {}).get("end"), int):
            bounds.append(asked_end)
    last = np.full(len(steps.users) + 1, min(bounds, default=0))
    np.maximum.at(last, steps.user, steps.ms)
    np.maximum.at(last, payers, ms)
    held = np.minimum(ends, last[steps.user[at]]) // HOUR - begins // HOUR
    held = np.where(steps.spot[at], 0, np.maximum(held, 0))
    funded = np.minimum(counts, held)
    has_rows = (np.bincount(payers, minlength=len(last)) > 0)[steps.user[at]]
    return usd, held, funded, has_rows
