"""Reconciliation: account tables against the change of account values between two times."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common.account_values import (
    AccountValue,
    Amount,
    ValuesAndPositions,
    column_list,
    read_values,
    sum_amounts,
)
from toolkit.analysis.funding.payments import sums as funding_sums
from toolkit.analysis.pnl.attribution import compute_attribution
from toolkit.analysis.pnl.ledger import sums as ledger_sums
from toolkit.analysis.pnl.reconcile_causes import column_by_account, find_causes
from toolkit.analysis.pnl.reconcile_tables import AccountTables, account_bounds, select_tables
from toolkit.prepare import Fills
from toolkit.prepare.door import Frame, Table, with_floats
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import finish
from toolkit.prepare.states import UNIFIED
from toolkit.rules.spot_cost import SWAPS
from toolkit.times import Time

FILL_PARTS = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate")
PARTS = (*FILL_PARTS, "funding", "unrealised", "ledger", "spot_cash")
CAUSES = ("history_late", "funding_missing", "not_priced", "unexplained")
_HALF_A_CENT = 0.005


def reconcile(
    start: Frame | tuple[Frame, ...] | None,
    end: Frame | tuple[Frame, ...],
    fills: Frame | None,
    funding: Frame | None,
    ledger: Frame | None,
    *,
    start_time: Time | None = None,
    end_time: Time | None = None,
    account: str | None = None,
    tolerance: float | None = None,
) -> pd.DataFrame:
    """Explain the change of account values between two times by fills, funding and ledger.

    ``end_value - start_value = closed_pnl + fees + funding + unrealised + ledger + spot_cash +
    residual``. ``fees`` are trading fee, builder fee, deployer fee and rebate. A residual above
    `tolerance` is repeated in the column of the first cause that applies.

    Parameters
    ----------
    start, end : DataFrame, (DataFrame, DataFrame), or None
        Account values and open positions at the two times: the result of
        `tk.batch_clearinghouse_states`; or a pair of values (a frame of
        `tk.account_value_snapshots` of all dexes and tokens) and positions (``user, coin,
        unrealized_pnl``, and ``szi`` to find missing fills), as `tk.pnl.unrealised` returns them.
        Without positions the unrealised PnL is missing. If `start` is None, the accounts were
        empty.
    fills, funding, ledger : DataFrame or None
        Tables of the accounts that cover at least this time range, see `tk.pnl.attribution`. If
        they are of several accounts, fills and funding have a column ``user``, and the ledger
        ``account``. If one is None, the residual is missing.
    start_time, end_time : int or datetime, optional
        The times of the values, in milliseconds or with a time zone; by default their column
        ``time``. Rows after `start_time` up to and including `end_time` count. If a state has no
        time (as in recordings of 2023) and `end_time` is missing, all rows count.
    account : str, optional
        The account of the tables, if they do not state it.
    tolerance : float, optional
        Residuals up to this amount in USD have no cause. By default half a cent.

    Returns
    -------
    DataFrame
        One row per account of `end`, sorted. Amounts are in USD, positive
        for a gain:

        - ``user``: the account
        - ``account_mode`` Int64: the mode of the account; missing if the values do not state it
        - ``start_value``: account value at the start, in USD
        - ``end_value``: account value at the end, in USD
        - ``change``: ``end_value - start_value``, in USD
        - ``closed_pnl``: closed PnL of perps, in USD
        - ``trading_fee``: fees of perps paid to the exchange, in USD, negative
        - ``builder_fee``: fees of perps paid to builders, in USD, negative
        - ``deployer_fee``: fees of perps paid to deployers of dexes, in USD, negative
        - ``rebate``: rebates of perps, in USD, positive
        - ``funding``: funding in USD, positive if received
        - ``unrealised``: change of unrealised PnL, in USD
        - ``ledger``: cash into the perp account less cash out of it, in USD
        - ``spot_cash``: USDC into the spot wallet by ledger and spot fills, in USD, for unified and
          portfolio-margin accounts, whose value includes the wallet; 0 for other accounts. It is
          missing if price, size or side of a fill is missing. If sells of a market pay their fees
          in a token other than USDC, this token is the quote token of the market. Fills of such a
          market move no USDC. Other markets
          are quoted in USDC
        - ``residual``: the unexplained rest, in USD; missing if a part is missing
        - ``history_late``: the residual in USD if fills are missing, else 0
        - ``funding_missing``: the residual in USD if funding rows are missing for hours with a
          position, else 0
        - ``not_priced``: the residual in USD if amounts or tokens have no price, else 0
        - ``unexplained``: the residual in USD if no cause is known, else 0
        - ``causes`` text: all possible causes, and the parts that are missing

    Raises
    ------
    MissingColumns
        If a column is missing or contains text instead of numbers.
    ValueError
        If the time of `start` is not known; if the account of the tables is not known; if values or
        positions are from several times.

    Notes
    -----
    The mode decides what the account value is (specification, "Account value snapshot"): the perp
    equity over all dexes for standard accounts; for unified and portfolio-margin accounts also the
    USDC of the spot wallet. Clearinghouse states have only the perp equity in all modes, so compare
    unified accounts by snapshots. Collateral other than USDC counts as USD. The ledger row of a
    liquidation moves no cash; its fills do. Repeated rows count once. Frames
    are read into memory.

    Examples
    --------
    >>> import pandas as pd
    >>> day = pd.to_datetime([0], unit="ms", utc=True)
    >>> values = pd.DataFrame({"user": ["0xa"], "account_value": [109.9], "time": day})
    >>> positions = pd.DataFrame({"user": ["0xa"], "coin": ["BTC"], "unrealized_pnl": [10.0]})
    >>> fills = pd.DataFrame({"user": ["0xa"], "coin": ["BTC"], "px": [50.0], "sz": [1.0],
    ...     "side": ["B"], "time": day, "start_position": [0.0], "closed_pnl": [0.0],
    ...     "fee": [0.1]})
    >>> ledger = pd.DataFrame({"account": ["0xa"], "type": ["deposit"], "usdc": [100.0],
    ...     "time": day})
    >>> none = pd.DataFrame({"user": ["0xa"], "coin": ["BTC"], "usdc": [0.0], "time": day})
    >>> made = reconcile(None, (values, positions), fills, none, ledger)
    >>> made[["change", "trading_fee", "unrealised", "ledger", "residual"]].round(9)
       change  trading_fee  unrealised  ledger  residual
    0   109.9         -0.1        10.0   100.0       0.0
    """
    trades, paid, moved = (
        None if frame is None else Table(with_floats(frame, what), what).frame
        for frame, what in ((fills, "fills"), (funding, "funding"), (ledger, "ledger"))
    )
    before = None if start is None else read_values(start, "start", start_time)
    after = read_values(end, "end", end_time)
    if before is not None and any(value.ms is None for value in before.worth.values()):
        raise ValueError("start: the time of the values is not known. Pass start_time=")
    limit = _HALF_A_CENT if tolerance is None else tolerance
    other_quotes = set() if trades is None else _other_quote_coins(trades)
    tables = select_tables(account_bounds(before, after), trades, paid, moved, account)
    rows = _account_rows(tables, before, after, trades is not None, other_quotes, limit)
    first = end[0] if isinstance(end, tuple) else end
    inputs = {"end": first, "fills": trades, "funding": paid, "ledger": moved}
    return finish(_result_frame(rows), inputs, helper="pnl.reconcile")


def _account_rows(
    tables: AccountTables,
    before: ValuesAndPositions | None,
    after: ValuesAndPositions,
    has_fills: bool,
    other_quotes: set[str],
    limit: float,
) -> list[dict[str, Any]]:
    """Return the rows of accounts, in the order of their values."""
    moved = None if tables.ledger is None else ledger_sums(tables.ledger, "account")
    traded = None
    if has_fills:
        traded = compute_attribution(tables.perps, tables.funding, None, "user")
    parts = _change_parts(tables, traded, moved, before, after, other_quotes)
    reasons = {} if traded is None else find_causes(tables, traded, moved, before, after)
    return [
        _account_row(user, before, after, parts[user], reasons.get(user, {}), limit)
        for user in after.worth
    ]


def _account_row(
    user: str,
    before: ValuesAndPositions | None,
    after: ValuesAndPositions,
    parts: Mapping[str, Amount],
    reasons: Mapping[str, str],
    limit: float,
) -> dict[str, Any]:
    """Return the parts and the residual of one account's change, with its first cause."""
    worth = after.worth[user]
    begun = AccountValue(0.0, None, None) if before is None else before.worth.get(user)
    start_value = None if begun is None else begun.value
    change = _subtract(worth.value, start_value)
    left = _subtract(change, sum_amounts([parts[name] for name in PARTS]))
    row = {
        "user": user,
        "account_mode": worth.mode,
        "start_value": start_value,
        "end_value": worth.value,
        "change": change,
        **parts,
        "residual": left,
    }
    large = left is not None and abs(left) > limit
    cause = next(iter(reasons), "unexplained")
    for name in CAUSES:
        row[name] = left if left is None or (large and name == cause) else 0.0
    named_parts = ("start_value", "end_value", *PARTS)
    lacks = [f"{name} not known" for name in named_parts if row[name] is None]
    words = list(reasons.values()) if large or lacks else []
    row["causes"] = ", ".join([*(words or (["no known cause"] if large else [])), *lacks])
    return row


def _subtract(one: Amount, other: Amount) -> Amount:
    return None if one is None or other is None else one - other


def _result_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    money = ("start_value", "end_value", "change", *PARTS, "residual", *CAUSES)
    types = {"user": "str", "account_mode": "Int64", **dict.fromkeys(money, "float64")}
    types["causes"] = "str"
    made = {name: pd.Series([row[name] for row in rows], dtype="object") for name in types}
    return pd.DataFrame(made).astype(types)


def _change_parts(
    tables: AccountTables,
    traded: pd.DataFrame | None,
    moved: pd.DataFrame | None,
    before: ValuesAndPositions | None,
    after: ValuesAndPositions,
    other_quotes: set[str],
) -> dict[str, dict[str, Amount]]:
    """Return all parts of each account's change; None if a part is not known.

    - ``other_quotes``: spot markets that are not quoted in USDC
    """
    trades = {
        name: None if traded is None else column_by_account(traded, "user", name)
        for name in FILL_PARTS
    }
    paid = (
        None
        if tables.funding is None
        else column_by_account(funding_sums(tables.funding, "user"), "user", "net")
    )
    perp = None if moved is None else column_by_account(moved, "account", "perp")
    wallet = None if moved is None else column_by_account(moved, "account", "spot_usdc")
    spent = _spot_cash(tables.spots, other_quotes)
    opened, closed = _unrealised_sums(before), _unrealised_sums(after)
    parts = {}
    for user, worth in after.worth.items():
        cash: Amount = 0.0
        if (worth.mode or 0) >= UNIFIED:
            known = None if traded is None else spent
            cash = sum_amounts([_value_of(wallet, user), _value_of(known, user)])
        begun = 0.0 if before is None else _value_of(opened, user)
        parts[user] = {
            **{name: _value_of(values, user) for name, values in trades.items()},
            "funding": _value_of(paid, user),
            "unrealised": _subtract(_value_of(closed, user), begun),
            "ledger": _value_of(perp, user),
            "spot_cash": cash,
        }
    return parts


def _value_of(values: Mapping[str, Amount] | None, user: str) -> Amount:
    return None if values is None else values.get(user, 0.0)


def _unrealised_sums(values: ValuesAndPositions | None) -> dict[str, Amount] | None:
    """Return the unrealised PnL by account; None without positions."""
    if values is None or values.held is None:
        return None
    gains: dict[str, list[Amount]] = {}
    for (user, _), held in values.held.items():
        gains.setdefault(user, [0.0]).append(held.unrealised)
    return {user: sum_amounts(each) for user, each in gains.items()}


def _spot_cash(spots: pd.DataFrame, other_quotes: set[str]) -> dict[str, Amount]:
    """Return the USDC by account that spot and outcome fills brought, less fees in USDC.

    Splits and merges of outcome tokens move USD, swaps do not (docs/live_service.md, section 7).
    Markets with another quote token move no USDC (section 6). The result is None if the cash of a
    fill is not known.
    """
    cash: dict[str, Amount] = {}
    if "dir" in spots.columns:  # swaps of outcome tokens bring no USDC: their price has no meaning
        spots = spots[~spots["dir"].isin(SWAPS)]
    if "coin" in spots.columns:
        spots = spots[~spots["coin"].isin(other_quotes)]
    names = ("user", "side", "px", "sz", "fee", "fee_token", "tid")
    for user, *fill in zip(*(column_list(spots, name) for name in names), strict=True):
        got = _cash_of_fill(*fill)
        cash[user] = sum_amounts([cash[user], got]) if user in cash else got
    return cash


def _other_quote_coins(fills: Any) -> set[str]:
    """Return the coins whose quote token is not USDC."""
    prepared = Fills(fills)
    needed = ("coin", "side", "px", "sz", "closed_pnl", "fee", "fee_token")
    if not all(map(prepared.table.has, needed)):
        return set()
    coins, tokens = prepared.table.text("coin"), prepared.money.tokens
    other = tokens.facts(lambda token: token not in CASH)
    return {coins.values[code] for code in np.unique(coins.codes[other]).tolist()}


def _cash_of_fill(side: Any, px: Amount, sz: Amount, fee: Amount, token: Any, tid: Any) -> Amount:
    if side is None or px is None or sz is None:
        return None
    notional = px * sz
    # ASSUMED: The exchange truncates the proceeds of a dust conversion (trade id 0) to eight
    # decimals.
    if tid == 0:
        notional -= notional % 1e-8
    paid = fee if fee is not None and token in (None, *CASH) else notional - notional
    return (-notional if side == "B" else notional) - paid
