"""Reconciliation: account tables against the change of account values between two times."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats
from toolkit.contract.dexes import NOT_PERP
from toolkit.display import count_text
from toolkit.funding._rates import sums as funding_sums
from toolkit.ledger import sums as ledger_sums
from toolkit.pnl._attribution import compute_attribution
from toolkit.prepare import Fills
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, filled, utc_times
from toolkit.prepare.money import is_other
from toolkit.prepare.provenance import account_names, finish
from toolkit.prepare.states import UNIFIED, ValuesAndPositions, read_values
from toolkit.prepare.trades import read_signs
from toolkit.times import Time

FILL_PARTS = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate")
PARTS = (*FILL_PARTS, "funding", "unrealised", "ledger", "spot_cash")
CAUSES = ("history_late", "funding_missing", "not_priced", "unexplained")
_HALF_A_CENT = 0.005
_LATER = 2**62
_POSITIONS = ("coin", "sz", "side", "time", "start_position")
"""The columns that determine how a fill changes a position."""


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
    users, modes = after.worth.index, after.worth["mode"]
    nothing = pd.Series(0.0, users)
    first = nothing.astype(np.int64) - _LATER
    if before is not None:
        first = before.worth["ms"].reindex(users, fill_value=_LATER)
    last = after.worth["ms"].replace(NO_TIME, _LATER)
    bounds = dict(zip(users, zip(first, last, strict=True), strict=True))
    if trades is not None:
        trades = trades.assign(spot_cash=_spot_cash(trades))
    tables = select_tables(bounds, trades, paid, moved, account)
    flows = None if tables.ledger is None else ledger_sums(tables.ledger, "account")
    payments = None if tables.funding is None else funding_sums(tables.funding, "user")
    traded = spots = None
    if trades is not None:
        traded = compute_attribution(tables.perps, tables.funding, None, "user")
        spots = tables.spots.groupby("user")[["spot_cash"]].sum(skipna=False).reset_index()

    def part(frame: pd.DataFrame | None, key: str, name: str) -> pd.Series:
        """Return a part of each account: 0 without rows, NaN if it is not known."""
        if frame is None:
            return nothing + np.nan
        return frame.set_index(key)[name].astype("float64").reindex(users, fill_value=0.0)

    def unrealised(values: ValuesAndPositions | None) -> pd.Series:
        """Return the unrealised PnL of each account; NaN if it is not known."""
        if values is None or values.held is None:
            return nothing if values is None else nothing + np.nan
        gains = values.held["unrealized_pnl"].groupby(level="user").sum(skipna=False)
        return gains.reindex(users, fill_value=0.0)

    cash = part(spots, "user", "spot_cash") + part(flows, "account", "spot_usdc")
    stated = {
        "start_value": nothing if before is None else before.worth["value"].reindex(users),
        "end_value": after.worth["value"],
        **{name: part(traded, "user", name) for name in FILL_PARTS},
        "funding": part(payments, "user", "net"),
        "unrealised": unrealised(after) - unrealised(before),
        "ledger": part(flows, "account", "perp"),
        "spot_cash": cash.where(modes >= UNIFIED, 0.0),
    }
    made = pd.DataFrame(stated, users)
    lacks = made.isna().to_numpy()
    made.insert(2, "change", made["end_value"] - made["start_value"])
    made.insert(0, "account_mode", modes.astype("Int64"))
    left = made["change"] - made[[*PARTS]].sum(axis="columns", skipna=False)
    is_large = left.abs() > (_HALF_A_CENT if tolerance is None else tolerance)
    reasons = {} if traded is None else _find_causes(tables, traded, flows, before, after)
    causes = np.array([next(iter(reasons.get(user, {})), "unexplained") for user in users])
    made["residual"] = left
    for name in CAUSES:
        made[name] = left.where((is_large & (causes == name)) | left.isna(), 0.0)
    texts = []
    for user, large, unknown in zip(users, is_large, lacks, strict=True):
        words = list(reasons.get(user, {}).values()) if large or unknown.any() else []
        gone = [f"{name} not known" for name, lack in zip(stated, unknown, strict=True) if lack]
        texts.append(", ".join([*(words or ["no known cause"] * bool(large)), *gone]))
    made = made.assign(causes=pd.Series(texts, users, dtype="str")).reset_index()
    inputs = {
        "end": end[0] if isinstance(end, tuple) else end,
        "fills": fills if trades is None else trades.drop(columns="spot_cash"),
        "funding": paid,
        "ledger": moved,
    }
    return finish(made, inputs, helper="pnl.reconcile")


class AccountTables(NamedTuple):
    """The tables of the accounts between the two times, with `user` in lower case.

    Without fills, `perps` and `spots` are empty and have no columns.
    """

    perps: pd.DataFrame
    spots: pd.DataFrame
    funding: pd.DataFrame | None
    ledger: pd.DataFrame | None


def select_tables(
    bounds: Mapping[str, tuple[int, int]],
    fills: pd.DataFrame | None,
    funding: pd.DataFrame | None,
    ledger: pd.DataFrame | None,
    account: str | None,
) -> AccountTables:
    """Return the accounts' rows after the first time, up to and including the second one.

    - ``bounds``: the two times of each account
    """
    found: dict[str, pd.DataFrame] = {}
    for frame, owner, what in (
        (fills, "user", "fills"), (funding, "user", "funding"), (ledger, "account", "ledger"),
    ):  # fmt: skip
        if frame is None:
            continue
        table = Table(frame, what, "none")
        table.require(("coin", "time") if owner == "user" else ("time",))
        ms, names = table.known_ms(), account_names(frame, account) or list(bounds)
        if not table.has(owner) and len(names) != 1:
            raise ValueError(
                f"{what}: the frame has no column {owner}, and the values are of {len(bounds)} "
                "accounts. Pass account="
            )
        owners = Names(np.zeros(len(table), dtype=np.int64), names)
        if table.has(owner):
            owners = table.text(owner)
        ends = [bounds.get(name, (_LATER, -_LATER)) for name in owners.values]
        after, until = np.array(ends, np.int64).reshape(-1, 2)[owners.codes].T
        rows = np.flatnonzero((ms > after) & (ms <= until))
        texts = {"coin": table.text("coin").texts(rows)} if table.has("coin") else {}
        kept = frame.iloc[rows].reset_index(drop=True)
        found[what] = kept.assign(**texts, **{owner: owners.texts(rows)}, time=utc_times(ms[rows]))
    perps = spots = pd.DataFrame()
    if (trades := found.get("fills")) is not None:
        other = trades["coin"].str.contains(NOT_PERP, na=False).astype(bool)
        perps, spots = (trades[kept].reset_index(drop=True) for kept in (~other, other))
    return AccountTables(perps, spots, found.get("funding"), found.get("ledger"))


def _spot_cash(fills: pd.DataFrame) -> Floats:
    """Return the USDC that each fill would bring to the spot wallet, less its fee in USDC.

    Splits and merges of outcome tokens move USD, swaps do not (docs/live_service.md, section 7).
    Markets with another quote token move no USDC (section 6). The result is NaN if the cash of a
    fill is not known.
    """
    prepared = Fills(fills)
    table, coins = prepared.table, prepared.table.text("coin")
    if not all(map(table.has, ("side", "px", "sz", "fee"))):
        return np.full(len(fills), np.nan)
    others = {coins.values[code] for code in coins.codes[prepared.money.tokens.facts(is_other)]}
    counts = ~coins.facts(others.__contains__) & ~prepared.roles.swap
    notional = table.number("px") * table.number("sz")
    # ASSUMED: The exchange truncates the proceeds of a dust conversion (trade id 0) to eight
    # decimals.
    notional -= np.where(table.number("tid", np.nan) == 0, notional % 1e-8, 0.0)
    paid = np.where(prepared.tokens.facts(is_other), 0.0, filled(table.number("fee")))
    return np.where(counts, -read_signs(table.text("side")) * notional - paid, 0.0)


def _find_causes(
    tables: AccountTables,
    traded: pd.DataFrame,
    moved: pd.DataFrame | None,
    before: ValuesAndPositions | None,
    after: ValuesAndPositions,
) -> dict[str, dict[str, str]]:
    """Return the possible causes of a residual by account and column, the first one first."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for user, coins in _broken_coins(tables.perps, before, after).items():
        found[user]["history_late"] = f"fills missing of {', '.join(sorted(coins))}"
    for user, covers in zip(traded["user"], traded["covers"], strict=True):
        if "funding (" in covers:
            found[user]["funding_missing"] = "funding (" + covers.split("funding (")[1]
    counts = [traded.set_index("user")[["missing_amounts", "unpriced_fees"]].sum(axis=1)]
    silent = tables.spots.reindex(columns=["side", "px", "sz", "fee"]).isna().any(axis=1)
    if silent.any():
        users = tables.spots.loc[silent, "user"]
        counts.append(users[users.map(after.worth["mode"]) >= UNIFIED].value_counts())
    if moved is not None:
        counts.append(moved.set_index("account")["unknown"])
    for user, count in pd.concat(counts).groupby(level=0).sum().items():
        if count:
            events = count_text(int(count), "fill, fee or flow", "fills, fees or flows")
            found[str(user)]["not_priced"] = f"{events} without an amount in USD"
    return found


def _broken_coins(
    perps: pd.DataFrame, before: ValuesAndPositions | None, after: ValuesAndPositions
) -> dict[str, set[str]]:
    """Return the coins whose fills do not connect the first positions with the last ones."""
    if any(name not in perps.columns for name in _POSITIONS):
        return {}
    kept = [name for name in ("user", *_POSITIONS, "tx_index") if name in perps.columns]
    silent = perps[list(_POSITIONS)].isna().any(axis="columns")
    # Positions do not depend on prices, so fills without a price are used, too.
    steps = Fills(perps.loc[~silent, kept]).steps
    first, chains = steps.first, pd.Series(steps.places())
    has_start = before is None or before.held is not None
    begun, ended = (
        values.held["szi"].dropna() if values is not None and values.held is not None
        else pd.Series(dtype="float64")
        for values in (before, after)
    )  # fmt: skip
    start, end = steps.sizes(steps.start), steps.sizes(steps.end)
    known, since = (np.append(0, each[:-1])[: len(steps)] for each in (end, steps.ms))
    known[first] = begun.reindex(chains.index, fill_value=0.0 if has_start else np.nan)
    since[first] = 0
    last = begun.index.union(ended.index).union(chains.index)
    ends = pd.Series(end[steps.last], chains.index)
    ends = ends.combine_first(begun).reindex(last, fill_value=0.0)
    until = pd.Series(steps.ms[steps.last], chains.index).reindex(last, fill_value=0)
    # A fill without a position leaves the position after it unknown.
    unknown = perps.loc[silent, ["user", "coin"]].itertuples(index=False, name=None)
    for place, ms in zip(unknown, Table(perps[silent], "fills", "none").ms(), strict=True):
        known[(steps.chain == chains.get(place, -1)) & (since <= ms) & (ms <= steps.ms)] = np.nan
        if place in ends.index and until[place] <= ms:
            ends[place] = np.nan
    broken = set(chains.index[np.unique(steps.chain[_differ(known, start)])])
    if after.held is not None and has_start:
        broken |= set(last[_differ(ends, ended.reindex(last, fill_value=0.0))])
    names: dict[str, set[str]] = defaultdict(set)
    for user, coin in broken:
        if user in after.worth.index:
            names[user].add(coin)
    return names


def _differ(known: Floats | pd.Series, stated: Floats | pd.Series) -> Flags:
    """Return which known sizes are not the stated ones."""
    return np.asarray(~np.isclose(known, stated, rtol=1e-12, atol=1e-9) & ~np.isnan(known))
