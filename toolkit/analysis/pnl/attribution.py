"""Attribution: how fills, funding and ledger changed the money of an account.

Each source is summed by group. Then the sums are stacked and summed again, so that a group that
occurs in only one source keeps its row. Decimal columns are never added to each other, because
Arrow decimals grow by one digit with each addition and fail at more than 38 digits.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fill_kinds, frame_access, grouping, row_owners, usd_values
from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import FillOwners
from toolkit.analysis.common.usd_values import PricesByToken
from toolkit.analysis.pnl import attribution_sources as sources
from toolkit.analysis.pnl.attribution_coverage import mark_uncovered, mark_unknown, source_state
from toolkit.analysis.pnl.attribution_sources import (
    FILL_NUMBERS,
    GAPS,
    MONEY,
    TokenRates,
    sum_groups,
)
from toolkit.analysis.pnl.fill_coverage import (
    CoveredPeriod,
    covered_period,
    mark_inside,
    rows_inside,
)
from toolkit.analysis.pnl.funding_hours import count_position_hours
from toolkit.times import Time

RESULT = ("fills", "volume", *MONEY, *GAPS, "covers")

POSITION_KEYS = ("user", "coin", "dex")
FUNDING_KEYS = ("user", "coin", "dex", *grouping.CALENDAR)
LEDGER_KEYS = ("user", *grouping.CALENDAR)


def attribution(
    fills: IntoFrameT,
    funding: IntoFrameT | None = None,
    ledger: IntoFrameT | None = None,
    by: str | Iterable[str] | None = None,
    *,
    positions: tuple[IntoFrame | None, IntoFrame | None] | None = None,
    account: str | None = None,
    prices: PricesByToken | None = None,
    meta: IntoFrame | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
) -> IntoFrameT:
    """Split the change of an account's money into its sources.

    All amounts are in USD and are positive if they are good for the account, so fees are negative:

    - ``net = closed_pnl + trading_fee + builder_fee + deployer_fee + rebate + funding``,
    - ``equity_change`` is the sum of ``ledger`` and the part of ``net`` that comes from perp fills
      and funding. This is the change of the perp account's equity without unrealised PnL. Spot and
      outcome fills are not in it, because they are paid from the spot balance.

    The `fee` of a fill contains its builder fee and deployer fee. They are split from it, not added
    to it. A part without data, such as funding that was not fetched, is missing (NA), never 0, and
    ``net`` does not contain it; `covers` states which parts are there.

    For spot and outcome markets, ``net`` equals the change of cash if the balance is zero before
    and after: the proceeds of sells, less the cost of buys and the fees in USDC. The fee of a spot
    buy in the bought token is a part of the token's cost. ``closed_pnl`` contains it, so it is not
    deducted again.

    Parameters
    ----------
    fills : DataFrame
        As `tk.user_fills_by_time` returns them (pandas, Polars, DuckDB, PySpark;
        numbers float or exact).
    funding : DataFrame, optional
        Funding rows of the same time: ``coin, time, usdc`` (and ``user``). If they are of several
        users, as `tk.builder_approved_funding_by_time` returns them, only the rows of the fills'
        accounts count: the accounts in the fills' ``user`` column, `account`, or the account that
        the fills were fetched for.
    ledger : DataFrame, optional
        Ledger updates of the same account and time, as `tk.user_non_funding_ledger_updates`
        returns them (for several accounts by `tk.many`, with a column ``account``). As in funding
        and `positions`, only the rows of the fills' accounts count. Cash into the perp account, on
        any dex, is positive. Movements of the spot balance and liquidation rows do not change the
        perp account's cash.
    by : str or list of str, optional
        One row per group: ``user``, ``coin``, ``dex``, ``hour``, ``day``, ``week`` (from Monday,
        UTC), ``side``, ``dir``, ``crossed``, ``builder``, or any other column of the fills. By
        default one row in total. With ``user``, each row of the fills' accounts counts for the user
        that it names, in lower case. An account without fills has a row only if the fills were
        fetched for it, or if it is `account`.
    positions : (before, after), optional
        The open positions before the first fill and after the last fill, for the change of
        unrealised PnL: frames of ``coin, unrealized_pnl`` (and ``user``), as
        `tk.batch_clearinghouse_states` or `tk.pnl.unrealised` return them. None for one of them
        means that no position was open.
    account : str, optional
        The account of fills, funding and ledger. Funding rows may be of many accounts, and
        transfers have two parties. By default the ledger's ``account`` column, or the address that
        fills and ledger were fetched for.
    prices : mapping of str to number, optional
        Token -> USD, for example ``{"USDH": 0.998}``, for amounts in tokens other than USDC: closed
        PnL, fees and funding of a dex with this collateral, and spot sells and outcome markets with
        this quote token. Upper and lower case do not matter. A warning lists names that no fill
        uses. Without a price such amounts count at par (one token is one USD), and ``at_par``
        counts the fills. ``volume`` is always px * sz.
    meta : DataFrame, optional
        As `tk.meta` returns it, with ``name`` and ``collateral_token``: the collateral of each dex,
        for funding of a dex without fills, and for fills without a fee token.
    start_time, end_time : int, datetime or text, optional
        The time range of the fills. By default the requested range, if the frame is complete and
        has its provenance. Otherwise it is the time from the first fill to the full hour after the
        last fill. This range is extended by earlier hours whose funding rows state the position
        before the first fill, and by later hours whose rows state the position after the last
        fill. Funding outside this range is not part of ``funding`` and ``net``.

    Returns
    -------
    DataFrame
        In the engine of `fills`, sorted by group. Amounts are in USD, and have the kind of numbers
        of the fills. The columns of `by`, then:

        - ``fills`` int64: number of fills, without conversions
        - ``volume`` float64: sum of px * sz, in USD, without conversions. Settlements, dust
          conversions and netted vaults count here and in ``fills``, because they have a real price.
          `tk.execution` excludes them: no order was filled
        - ``closed_pnl``: closed PnL before fees and funding, in USD
        - ``trading_fee``: fees paid to the exchange, in USD, negative: what remains of a fill's fee
          after its builder and deployer fees, if it is above 0
        - ``builder_fee``: fees paid to builders, in USD, negative
        - ``deployer_fee``: fees paid to the deployers of dexes, in USD, negative
        - ``rebate``: rebates, in USD, positive: what remains of a fill's fee after its builder and
          deployer fees, if it is below 0
        - ``funding``: funding in USD, positive if the account received it
        - ``net``: closed PnL plus funding less fees, in USD, positive for a gain
        - ``ledger``: cash into the perp account less cash out of it, in USD
        - ``equity_change``: ``net`` of perps plus ``ledger``, in USD
        - ``unrealised``: change of unrealised PnL, in USD; missing without `positions`, and if
          the unrealised PnL of one of the positions is missing. Together with ``equity_change`` it
          is the total change of the perp account's equity
        - ``priority_gas``: gas paid for priority, in the chain's native token, negative; not a part
          of ``net``
        - ``fees_in_cost``: fees that spot buys paid in the bought token, in USD at the price of the
          fill, negative; not a part of ``net``, because the cost and so ``closed_pnl`` contain them
        - ``funding_outside``: funding outside the time range of the fills, in USD; not a part of
          ``net``
        - ``missing_amounts`` int64: fills without px, sz, closed PnL or fee, funding rows without
          an amount, and positions without an unrealised PnL. No sum contains the missing values. If
          the fee of a fill is missing, its builder and deployer fee do not count either. If closed
          PnL is missing in all fills of a row, ``closed_pnl`` is missing; if the fee is missing in
          all, all fee columns are. ``net`` and ``equity_change`` are missing in both cases
        - ``unpriced_fees`` int64: fees in tokens without a known price; no sum contains them
        - ``unknown_flows`` int64: ledger rows whose amount is not known; no sum contains them
        - ``conversions`` int64: fills that convert outcome tokens (`Split Outcome`, ...). They are
          no trades and have no volume; ``closed_pnl`` contains what they close
        - ``at_par`` int64: fills in a token other than USDC that count at par
        - ``covers`` text: the sources that the row covers, for example ``"fills, funding"``. If
          funding rows are missing for some full hours with an open position, it states the share:
          ``"fills, funding (5 of 712 position hours)"``. Groups by hour, day or week state the
          share of the entire time, with the words ``"position hours in all"``. It also states how
          many funding rows are outside the time range of the fills, how many positions have no
          unrealised PnL, and how many amounts are known:
          ``"fills (13 of 13 closed PnLs, 0 of 13 fees known)"``

    Warns
    -----
    MissingAmounts
        If prices, sizes, closed PnL or fees of fills are missing.
    UnusedPrices
        If `prices` has tokens that no fill uses.

    Raises
    ------
    MissingColumns
        If a column is missing or contains text instead of numbers, or if fills are of several
        accounts and funding has no column of accounts.
    ValueError
        If funding or ledger are of several accounts and the account of the fills is not known; if
        fills and ledger were fetched for different accounts; if a price is not positive, a token
        has two prices, or USDC has a price other than 1; if fills are exact and a price has more
        than 18 decimals.

    Notes
    -----
    Spot, collateral and conversions: docs/live_service.md, sections 3, 6 and 7. The token of a dex
    is the ``fee_token`` of its fills. A fee of a native perp in a token other than USDC has no
    price unless `prices` has one. An exact amount times a price is rounded to 18 decimals.

    Position hours are computed from ``start_position``, up to the last fill or payment, or up to
    the end of the request if fills and funding are complete. Without ``start_position`` no share is
    stated. The position of a coin before its first fill is not counted. Sums of groups add up to
    the total. ``funding`` is missing, and ``net`` does not contain it, in these cases:

    - an account has fills but no funding rows;
    - a coin has positions but no funding rows;
    - an hour, day or week has no funding rows, but it has position hours without a payment.

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
    fills = drop_repeated_rows(fills, "fills")
    funding = drop_repeated_rows(funding, "funding")
    ledger = drop_repeated_rows(ledger, "ledger")
    result: IntoFrameT = compute_attribution(
        fills, funding, ledger, by, time, positions, account, prices, meta, warns=True
    )
    return result


def compute_attribution(
    fills: Any,
    funding: Any,
    ledger: Any,
    by: str | Iterable[str] | None = None,
    time: CoveredPeriod | None = None,
    positions: tuple[Any, Any] | None = None,
    account: str | None = None,
    prices: PricesByToken | None = None,
    meta: Any = None,
    *,
    owners: FillOwners | None = None,
    warns: bool = False,
) -> Any:
    """Return the attribution of rows without repeats; without a `time` all funding counts.

    Funding and ledger count for the accounts of `owners`, by default those of the fills. With
    `warns` it warns of missing values in the fills.
    """
    keys = grouping.list_keys(by, ("time", *FILL_NUMBERS, *RESULT))
    opened = frame_access.open_table(fills, "fills")
    rates = _token_rates(opened, funding, prices, meta)
    rows, kind = sources.measure_fills(opened, keys, rates)
    if warns:
        usd_values.warn_missing_amounts(opened, "fills")
        usd_values.warn_missing_tokens(opened, "fills")
        fill_kinds.warn_missing_directions(opened, "fills", outcomes_alone=True)
    owners = owners or row_owners.FillOwners(opened, row_owners.account_names(fills, account))
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
        payment_rows = nw.from_native(frame_access.normalise_frame(funding))
        frame_access.require_columns(payment_rows, ("coin", "time", "usdc"), "funding")
        row_owners.check_owner(payment_rows, owners.fills, "funding")
        marked = mark_inside(funding, fills, time)
        payments = sources.measure_funding(marked, keys, kind, owners, rates)
        hours = count_position_hours(fills, rows_inside(marked), keys, owners.names)
        parts.append(sum_groups(payments, keys, kind))
    if covers.get("ledger") == "ledger":
        fetched_for = _ledger_owner(ledger, owners) if account is None else account
        parts.append(
            sum_groups(sources.measure_ledger(ledger, keys, kind, fetched_for, owners), keys, kind)
        )
    if positions is not None and covers["unrealised"] == "unrealised":
        parts += [
            sum_groups(rows, keys, kind)
            for rows in sources.measure_positions(positions, keys, kind, owners)
        ]
    whole = sum_groups(frame_access.stack_frames(parts), keys, kind) if len(parts) > 1 else parts[0]
    whole = whole.with_columns(_rows=nw.col("fills"), fills=nw.col("fills") - nw.col("conversions"))
    result = mark_uncovered(whole, keys, kind, covers, hours)
    if warns:
        result = mark_unknown(result)
    result = result.select(*keys, *RESULT)
    if keys:
        result = result.sort(*keys, nulls_last=True)
    facts = {"helper": "pnl.attribution", "by": keys, "covers": ", ".join(covers.values())}
    inputs = {"fills": fills, "funding": funding, "ledger": ledger}
    made = frame_access.result_from_frame(result, inputs, **facts)
    if isinstance(made, pd.DataFrame):
        made = _restore_nullable_keys(made, result, fills, keys)
    if isinstance(made, pd.DataFrame) and made["at_par"].any():
        made.attrs["toolkit"]["at_par"] = [
            token for token in usd_values.tokens_at_par(fills) if token.upper() not in rates.prices
        ]
    return made


def _restore_nullable_keys(
    made: pd.DataFrame, result: Any, fills: pd.DataFrame, keys: Sequence[str]
) -> pd.DataFrame:
    """Return the result with the nullable types of the fills, which Arrow does not know."""
    nullable = (pd.arrays.BooleanArray, pd.arrays.IntegerArray, pd.arrays.FloatingArray)
    for key in grouping.own_columns(keys):
        if isinstance(fills[key].array, nullable):
            made[key] = pd.array(result[key].to_list(), dtype=fills[key].dtype)
    return made


def _token_rates(
    opened: Frame, funding: Any, prices: PricesByToken | None, meta: Any
) -> TokenRates:
    """Return the prices of tokens and the collateral of dexes."""
    known = usd_values.parse_prices(prices)
    dexes = usd_values.dex_tokens(meta)
    if known and funding is not None:
        dexes = {**usd_values.dex_tokens_in_fills(opened), **dexes}
    usd_values.warn_unused_prices(known, opened, dexes)
    return TokenRates(known, dexes)


def _ledger_owner(ledger: Any, owners: FillOwners) -> str | None:
    """Return the address that the ledger was fetched for, from its provenance."""
    names = row_owners.account_names(ledger)
    if len(names) != 1:
        return None
    if len(owners.names) == 1 and list(owners.names) != names:
        raise ValueError(
            f"the ledger was fetched for {names[0]}, but the fills for {owners.names[0]}. "
            "Fetch both for one account, or pass account="
        )
    return names[0]
