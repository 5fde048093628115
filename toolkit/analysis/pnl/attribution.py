"""Where an account's money came from: closed PnL, fees by kind, funding, ledger flows.

Each source is summed over its groups first, then the sums are stacked and summed again: a group
that only one source knows keeps its row, and no decimal column is added to another one (Arrow
decimals grow by a digit at every addition and fail past 38).
"""

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import columns, directions, fees, grouping, owners
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.fees import Prices
from toolkit.analysis.common.owners import Accounts
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.pnl import attribution_sources as sources
from toolkit.analysis.pnl.attribution_coverage import mark_uncovered, mark_unknown, source_state
from toolkit.analysis.pnl.attribution_sources import (
    FILL_NUMBERS,
    GAPS,
    MONEY,
    TokenRates,
    sum_groups,
)
from toolkit.analysis.pnl.funding_hours import position_hours
from toolkit.analysis.pnl.periods import Period, covered_period, mark_inside, rows_inside
from toolkit.times import Time

RESULT = ("fills", "volume", *MONEY, *GAPS, "covers")

POSITION_KEYS = ("user", "coin", "dex")
FUNDING_KEYS = ("user", "coin", "dex", *grouping.CALENDAR)
LEDGER_KEYS = ("user", *grouping.CALENDAR)


def attribution(
    fills: Any,
    funding: Any = None,
    ledger: Any = None,
    by: str | Iterable[str] | None = None,
    *,
    positions: tuple[Any, Any] | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Any = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
) -> Any:
    """Split what fills, funding and ledger did to an account into its causes.

    All money is in USD and positive where it is good for the account, so fees are negative and

    - ``net = closed_pnl + trading_fee + builder_fee + deployer_fee + rebate + funding``,
    - ``equity_change = net + ledger``, without the net of spot and outcome fills, which another
      balance pays: the change of the perp account's equity but for unrealised PnL.

    `fee` of a fill already contains its builder and deployer fee; they are taken out of it, not
    added to it. What is not covered is missing, never 0, and `covers` says what is.

    For spot and outcome markets, from a flat balance to a flat one, ``net`` is the cash:
    ``sum(-side * px * sz)`` less the fees in USDC. A spot buy's fee in the bought token is a part
    of what the token cost, so ``closed_pnl`` contains it; it is not deducted again.

    Parameters
    ----------
    fills : DataFrame
        As `tk.user_fills_by_time` gives it (pandas, Polars eager or lazy, DuckDB relation;
        numbers float or exact).
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``). Of several users,
        as `tk.builder_approved_funding_by_time` gives them, only the rows of the fills' accounts
        count: those in the fills' ``user`` column, `account`, or whom the fills were fetched for.
    ledger : DataFrame, optional
        Ledger updates of the same account and time, as `tk.user_non_funding_ledger_updates`
        gives them (for several by `tk.many`: with a column ``account``). Cash into the perp
        account, on any dex, is positive; spot-only movements and liquidation rows move none.
    by : str or list of str, optional
        One row for each group: ``user``, ``coin``, ``dex``, ``hour``, ``day``, ``week`` (Monday,
        UTC), ``side``, ``dir``, ``crossed``, ``builder``, or any other column of the fills.
        Without it, one row. By ``user``, rows of each source count for the user they name, in
        lower case.
    positions : (before, after), optional
        What was open before the first and after the last fill, for the change of unrealised PnL:
        frames of ``coin, unrealized_pnl`` (and ``user``), as `tk.batch_clearinghouse_states` or
        `tk.pnl.unrealised` give them. None for one of them: nothing was open.
    account : str, optional
        Whose fills, funding and ledger they are: funding rows name many accounts, transfers
        both parties. Without it the ledger's ``account`` column, or the address that fills and
        ledger were fetched for.
    prices : mapping of str to number, optional
        Token -> USD, e.g. ``{"USDH": 0.998}``, for money in other tokens than USDC: closed PnL,
        fees and funding of a dex with this collateral, spot sells and outcomes that are quoted
        in it. Case means nothing in a token's name; a warning says which names no fill uses.
        Without a price such money counts at par, one token as one USD, and ``at_par``
        counts the fills. ``volume`` stays px * sz.
    meta : DataFrame, optional
        Of `tk.meta`, with ``name`` and ``collateral_token``: the collateral of each dex, for
        funding of a dex without fills, and fills that do not name their fee token.
    start_time, end_time : int, datetime or text, optional
        The time that the fills cover. Without it the time that the fills were asked for, if the
        frame is whole and tells it; else from the first fill to the full hour after the last one,
        and beyond as far as funding rows state the position that the first fill started from, or
        that the last one left. Funding outside this time is not part of ``funding`` and ``net``.

    Returns
    -------
    DataFrame
        Of the engine of `fills`, sorted by the groups: the columns of `by`, then

        - ``fills`` int64: how many, without conversions;
        - ``volume`` float64: USD, px * sz, without conversions. Settlements, dust conversions and
          netted vaults count in both: they pay a real price (docs/live_service.md, section 7,
          names conversions alone). `tk.execution` leaves them out, since no order was filled;
        - ``closed_pnl``: USD, before fees and funding; like all money below, of the kind of
          numbers of the fills;
        - ``trading_fee, builder_fee, deployer_fee``: USD, negative: what was paid to the exchange,
          to builders, to the deployers of dexes;
        - ``rebate``: USD, positive: fees below 0;
        - ``funding``: USD, positive where the account received it;
        - ``net``: USD, the sum of these parts;
        - ``ledger``: USD, positive where it came into the perp account;
        - ``equity_change``: USD, net of perps and ledger;
        - ``unrealised``: change of unrealised PnL; equity_change + unrealised is the whole
          change of the perp account's equity. Missing without `positions`;
        - ``priority_gas``: in the chain's native token, negative, not part of net;
        - ``fees_in_cost``: USD, negative, not part of net: fees that spot buys paid in the bought
          token, at the price of the fill. They are in the cost, so ``closed_pnl`` contains them;
        - ``funding_outside``: USD, not part of net: funding outside the time of the fills;
        - ``missing_amounts`` int64: fills without px, sz, closed PnL or fee, funding rows without
          an amount; what they lack is not part of any sum. Builder and deployer fee are parts of
          a fill's fee, and do not count without it. Where all fills of a row lack their closed
          PnL, ``closed_pnl`` is missing; where all lack their fee, ``trading_fee``,
          ``builder_fee``, ``deployer_fee``, ``rebate`` and ``fees_in_cost`` are; and ``net`` and
          ``equity_change`` with either;
        - ``unpriced_fees`` int64: fees in tokens whose price the fills do not tell; they are
          not part of any sum;
        - ``unknown_flows`` int64: ledger rows whose amount cannot be told; likewise;
        - ``conversions`` int64: fills that convert outcome tokens (`Split Outcome`, ...): no
          trades, so they are in no volume; what they close is in ``closed_pnl``;
        - ``at_par`` int64: fills in another token than USDC that count at par;
        - ``covers`` text: which sources the row covers, e.g. ``"fills, funding"``, or ``"fills,
          funding (5 of 712 position hours)"`` where funding rows lack for some of the full hours
          at which the fills show a position (of the row's user, coin, dex; by the calendar, of
          the whole time, and then ``"position hours in all"``). Not covered by `funding` is an
          account with fills and no funding row at all, a coin with positions and none, and an
          hour, day or week without one where any position hour lacks its row: its `funding` is
          missing, and its `net` is without it. What groups have sums up to the whole. It also
          says how many funding rows lie outside the time of the fills, and where fills lack
          amounts how many are known: ``"fills (13 of 13 closed PnLs, 0 of 13 fees known)"``.

    Warns
    -----
    MissingAmounts
        If fills lack prices, sizes, closed PnL or fees.
    UnusedPrices
        If `prices` names tokens that no fill uses.

    Raises
    ------
    MissingColumns
        If a frame lacks a column, or holds numbers as text; if fills name several accounts and
        funding none.
    ValueError
        If funding or ledger hold several accounts and nothing says which one the fills are of,
        or if fills and ledger were fetched for different ones; if a price is not positive, a
        token has two, or USDC has one other than 1.

    Notes
    -----
    Spot, collateral and conversions: docs/live_service.md, sections 3, 6 and 7. The token of a
    dex is the ``fee_token`` of its fills. A fee of a native perp in another token than USDC has no
    price, unless `prices` names one.

    Position hours are told from ``start_position`` (without it no share is said), up to the last
    fill or payment, or to when whole fills and funding were asked for. A coin's position before
    its first fill is not counted.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": ["BTC", "BTC"], "px": [100.0, 110.0], "sz": [1.0, 1.0], "side": ["B", "A"],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 10.0], "fee": [0.05, 0.06], "builder_fee": [0.01, 0.01]})
    >>> attribution(fills)[["fills", "closed_pnl", "trading_fee", "builder_fee", "net", "covers"]]
       fills  closed_pnl  trading_fee  builder_fee   net covers
    0      2        10.0        -0.09        -0.02  9.89  fills
    """
    time = None if funding is None else covered_period(fills, start_time, end_time)
    fills = count_once(fills, "fills")
    funding = count_once(funding, "funding")
    ledger = count_once(ledger, "ledger")
    return compute_attribution(
        fills, funding, ledger, by, time, positions, account, prices, meta, warns=True
    )


def compute_attribution(
    fills: Any,
    funding: Any,
    ledger: Any,
    by: str | Iterable[str] | None = None,
    time: Period | None = None,
    positions: tuple[Any, Any] | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Any = None,
    *,
    warns: bool = False,
) -> Any:
    """Return the attribution of rows that stand once; without a `time` all funding counts.

    With `warns` it says what the fills leave out.
    """
    keys = grouping.list_keys(by, ("time", *FILL_NUMBERS, *RESULT))
    opened = columns.open_frame(fills, "fills")
    rates = _token_rates(opened, funding, prices, meta)
    rows, kind = sources.measure_fills(opened, keys, rates)
    if warns:
        fees.warn_missing_amounts(opened, "fills")
        fees.warn_missing_tokens(opened, "fills")
        directions.warn_missing_directions(opened, "fills", outcomes_alone=True)
    whose = owners.Accounts(opened, owners.account_names(fills, account))
    parts = [sum_groups(rows, keys, kind)]
    covers = {"fills": "fills"}
    if funding is not None:
        covers["funding"] = source_state("funding", keys, FUNDING_KEYS)
    if ledger is not None:
        covers["ledger"] = source_state("ledger", keys, LEDGER_KEYS)
    if positions is not None:
        covers["unrealised"] = source_state("unrealised", keys, POSITION_KEYS)
    hours = None
    if covers.get("funding") == "funding":
        columns.require_columns(nw.from_native(funding), ("coin", "time", "usdc"), "funding")
        owners.check_owner(nw.from_native(funding), opened, "funding")
        marked = mark_inside(funding, fills, time)
        payments = sources.measure_funding(marked, keys, kind, whose, rates)
        hours = position_hours(fills, rows_inside(marked), keys, whose.names)
        parts.append(sum_groups(payments, keys, kind))
    if covers.get("ledger") == "ledger":
        fetched_for = _ledger_owner(ledger, whose) if account is None else account
        parts.append(
            sum_groups(sources.measure_ledger(ledger, keys, kind, fetched_for, whose), keys, kind)
        )
    if positions is not None and covers["unrealised"] == "unrealised":
        parts += [
            sum_groups(one, keys, kind)
            for one in sources.measure_positions(positions, keys, kind, whose)
        ]
    whole = sum_groups(columns.stack_frames(parts), keys, kind) if len(parts) > 1 else parts[0]
    whole = whole.with_columns(_rows=nw.col("fills"), fills=nw.col("fills") - nw.col("conversions"))
    result = mark_uncovered(whole, keys, kind, covers, hours)
    if warns:
        result = mark_unknown(result, kind)
    result = result.select(*keys, *RESULT)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    facts = {"helper": "pnl.attribution", "by": keys, "covers": ", ".join(covers.values())}
    inputs = {"fills": fills, "funding": funding, "ledger": ledger}
    made = columns.result_from_frame(result, inputs, **facts)
    if isinstance(made, pd.DataFrame) and made["at_par"].any():
        made.attrs["toolkit"]["at_par"] = [
            token for token in fees.tokens_at_par(fills) if token.upper() not in rates.prices
        ]
    return made


def _token_rates(opened: Frame, funding: Any, prices: Prices | None, meta: Any) -> TokenRates:
    """Return what tokens are worth, and which dex has which as its collateral."""
    known = fees.parse_prices(prices)
    dexes = fees.dex_tokens(meta)
    if known and funding is not None:
        dexes = {**fees.dex_tokens_in_fills(opened), **dexes}
    fees.warn_unused_prices(known, opened, dexes)
    return TokenRates(known, dexes)


def _ledger_owner(ledger: Any, whose: Accounts) -> str | None:
    """Give the address a pandas frame was fetched for, where its provenance tells it."""
    names = owners.account_names(ledger)
    if len(names) != 1:
        return None
    if len(whose.names) == 1 and list(whose.names) != names:
        raise ValueError(
            f"ledger: it was fetched for {names[0]}, the fills for {whose.names[0]}; "
            "fetch both for one account, or say whose they are (account=)"
        )
    return names[0]
