"""Reconciliation: account tables against the change of account values between two times."""

from typing import Any

import numpy as np
import pandas as pd

from toolkit.funding._payments import sums as funding_sums
from toolkit.ledger import sums as ledger_sums
from toolkit.pnl._attribution import compute_attribution
from toolkit.pnl._reconcile_causes import find_causes
from toolkit.pnl._reconcile_tables import account_bounds, select_tables
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, Table, filled
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import finish
from toolkit.prepare.states import UNIFIED, ValuesAndPositions, read_values
from toolkit.prepare.trades import read_signs
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
        None if frame is None else Table(frame, what).frame
        for frame, what in ((fills, "fills"), (funding, "funding"), (ledger, "ledger"))
    )
    before = None if start is None else read_values(start, "start", start_time)
    after = read_values(end, "end", end_time)
    if before is not None and (before.worth["ms"] == NO_TIME).any():
        raise ValueError("start: the time of the values is not known. Pass start_time=")
    limit = _HALF_A_CENT if tolerance is None else tolerance
    other_quotes = set() if trades is None else _other_quote_coins(trades)
    tables = select_tables(account_bounds(before, after), trades, paid, moved, account)
    flows = None if tables.ledger is None else ledger_sums(tables.ledger, "account")
    payments = None if tables.funding is None else funding_sums(tables.funding, "user")
    traded = None
    if trades is not None:
        traded = compute_attribution(tables.perps, tables.funding, None, "user")
    users, modes = after.worth.index, after.worth["mode"]
    nothing = pd.Series(0.0, users)

    def part(frame: pd.DataFrame | None, key: str, name: str) -> pd.Series:
        """Return a part of each account: 0 without rows, NaN if it is not known."""
        if frame is None:
            return nothing + np.nan
        return frame.set_index(key)[name].astype("float64").reindex(users, fill_value=0.0)

    made = pd.DataFrame({"account_mode": modes.astype("Int64")}, users)
    made["start_value"] = 0.0 if before is None else before.worth["value"]
    made["end_value"] = after.worth["value"]
    made["change"] = made["end_value"] - made["start_value"]
    for name in FILL_PARTS:
        made[name] = part(traded, "user", name)
    made["funding"] = part(payments, "user", "net")
    begun = nothing if before is None else _unrealised(before, nothing)
    made["unrealised"] = _unrealised(after, nothing) - begun
    made["ledger"] = part(flows, "account", "perp")
    cash = nothing + np.nan
    if trades is not None:
        cash = _spot_cash(tables.spots, other_quotes).reindex(users, fill_value=0.0)
    cash += part(flows, "account", "spot_usdc")
    made["spot_cash"] = cash.where(modes >= UNIFIED, 0.0)
    left = made["change"] - made[[*PARTS]].sum(axis="columns", skipna=False)
    reasons = {} if traded is None else find_causes(tables, traded, flows, before, after)
    causes = np.array([next(iter(reasons.get(user, {})), "unexplained") for user in users])
    made["residual"], is_large = left, left.abs() > limit
    for name in CAUSES:
        made[name] = left.where((is_large & (causes == name)) | left.isna(), 0.0)
    named = made[["start_value", "end_value", *PARTS]]
    texts = []
    for user, large, lacks in zip(users, is_large, named.isna().to_numpy(), strict=True):
        unknown = [f"{name} not known" for name in named.columns[lacks]]
        words = list(reasons.get(user, {}).values()) if large or unknown else []
        texts.append(", ".join([*(words or ["no known cause"] * bool(large)), *unknown]))
    made = made.assign(causes=pd.Series(texts, users, dtype="str")).reset_index()
    first = end[0] if isinstance(end, tuple) else end
    inputs = {"end": first, "fills": trades, "funding": paid, "ledger": moved}
    return finish(made, inputs, helper="pnl.reconcile")


def _unrealised(values: ValuesAndPositions, nothing: pd.Series) -> pd.Series:
    """Return the unrealised PnL of accounts; NaN if it is not known."""
    if values.held is None:
        return nothing + np.nan
    gains = values.held["unrealized_pnl"].groupby(level="user").sum(skipna=False)
    return gains.reindex(nothing.index, fill_value=0.0)


def _spot_cash(spots: pd.DataFrame, other_quotes: set[str]) -> pd.Series:
    """Return the USDC by account that spot and outcome fills brought, less fees in USDC.

    Splits and merges of outcome tokens move USD, swaps do not (docs/live_service.md, section 7).
    Markets with another quote token move no USDC (section 6). The result is NaN if the cash of a
    fill is not known.
    """
    table = Table(spots, "fills", "none")
    if not len(table):
        return pd.Series(dtype="float64")
    counts = ~table.text("coin").facts(other_quotes.__contains__)
    if table.has("dir"):  # swaps of outcome tokens bring no USDC: their price has no meaning
        counts &= ~table.text("dir").facts(SWAPS.__contains__)
    notional = table.number("px", np.nan) * table.number("sz", np.nan)
    # ASSUMED: The exchange truncates the proceeds of a dust conversion (trade id 0) to eight
    # decimals.
    notional -= np.where(table.number("tid", np.nan) == 0, notional % 1e-8, 0.0)
    paid = filled(table.number("fee", np.nan))
    if table.has("fee_token"):
        paid = np.where(table.text("fee_token").facts(CASH.__contains__), paid, 0.0)
    cash = -read_signs(table.text("side")) * notional - paid
    users = table.text("user")
    return pd.Series(
        np.bincount(users.codes[counts], cash[counts], len(users.values)), users.values
    )


def _other_quote_coins(fills: Any) -> set[str]:
    """Return the coins whose quote token is not USDC."""
    prepared = Fills(fills)
    needed = ("coin", "side", "px", "sz", "closed_pnl", "fee", "fee_token")
    if not all(map(prepared.table.has, needed)):
        return set()
    coins, tokens = prepared.table.text("coin"), prepared.money.tokens
    other = tokens.facts(lambda token: token not in CASH)
    return {coins.values[code] for code in np.unique(coins.codes[other]).tolist()}
