"""Reconciliation: account tables against the change of account values between two times."""

from collections import defaultdict
from collections.abc import Mapping

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
from toolkit.prepare.money import CASH
from toolkit.prepare.provenance import account_names, finish
from toolkit.prepare.states import UNIFIED, read_values
from toolkit.prepare.trades import read_signs
from toolkit.times import Time

FILL_PARTS = ("closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate")
PARTS = (*FILL_PARTS, "funding", "unrealised", "ledger", "spot_cash")
CAUSES = ("history_late", "funding_missing", "not_priced", "unexplained")
_HALF_A_CENT = 0.005
_LATER = 2**62
_POSITIONS = ("coin", "sz", "side", "time", "start_position")
"""The columns that determine how a fill changes a position."""

_NONE_HELD = pd.DataFrame(
    {"szi": np.zeros(0), "unrealized_pnl": np.zeros(0)},
    pd.MultiIndex.from_arrays([[], []], names=["user", "coin"]),
)
"""The positions of an empty account."""


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
    before, begun = (None, _NONE_HELD) if start is None else read_values(start, "start", start_time)
    after, ended = read_values(end, "end", end_time)
    if before is not None and (before["ms"] == NO_TIME).any():
        raise ValueError("start: the time of the values is not known. Pass start_time=")
    users, modes = after.index, after["mode"]
    nothing = pd.Series(0.0, users)
    start_value, first = nothing, nothing.astype(np.int64) - _LATER
    if before is not None:
        start_value = before["value"].reindex(users)
        first = before["ms"].reindex(users, fill_value=_LATER)
    last = after["ms"].replace(NO_TIME, _LATER)
    bounds = dict(zip(users, zip(first, last, strict=True), strict=True))
    if trades is not None:
        trades = trades.assign(spot_cash=_spot_cash(trades))
    perps, spots, paid_rows, moved_rows = select_tables(bounds, trades, paid, moved, account)
    flows = None if moved_rows is None else ledger_sums(moved_rows, "account")
    payments = None if paid_rows is None else funding_sums(paid_rows, "user")
    traded = spent = None
    if trades is not None:
        traded = compute_attribution(perps, paid_rows, None, "user")
        spent = spots.groupby("user")[["spot_cash"]].sum(skipna=False).reset_index()

    def part(frame: pd.DataFrame | None, key: str, name: str) -> pd.Series:
        """Return a part of each account: 0 without rows, NaN if it is not known."""
        if frame is None:
            return nothing + np.nan
        return frame.set_index(key)[name].astype("float64").reindex(users, fill_value=0.0)

    gained = nothing
    for held, sign in ((ended, 1.0), (begun, -1.0)):
        gains = None if held is None else held.groupby("user").sum(skipna=False).reset_index()
        gained = gained + sign * part(gains, "user", "unrealized_pnl")
    cash = part(spent, "user", "spot_cash") + part(flows, "account", "spot_usdc")
    stated = {
        "start_value": start_value,
        "end_value": after["value"],
        **{name: part(traded, "user", name) for name in FILL_PARTS},
        "funding": part(payments, "user", "net"),
        "unrealised": gained,
        "ledger": part(flows, "account", "perp"),
        "spot_cash": cash.where(modes >= UNIFIED, 0.0),
    }
    made = pd.DataFrame(stated, users)
    lacks = made.isna().to_numpy()
    made.insert(2, "change", made["end_value"] - made["start_value"])
    made.insert(0, "account_mode", modes.astype("Int64"))
    left = made["change"] - made[[*PARTS]].sum(axis="columns", skipna=False)
    is_large = left.abs() > (_HALF_A_CENT if tolerance is None else tolerance)
    reasons: dict[str, dict[str, str]] = {}
    if traded is not None:
        reasons = _find_causes(perps, spots, traded, flows, begun, ended, modes)
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


def select_tables(
    bounds: Mapping[str, tuple[int, int]],
    fills: pd.DataFrame | None,
    funding: pd.DataFrame | None,
    ledger: pd.DataFrame | None,
    account: str | None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None, pd.DataFrame | None]:
    """Return the accounts' rows after the first time, up to and including the second one.

    - ``bounds``: the two times of each account

    Returns: fills of perps, other fills, funding and ledger, with `user` in lower case. Without
    fills, theirs are empty and have no columns.
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
    return perps, spots, found.get("funding"), found.get("ledger")


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
    in_usdc = prepared.money.tokens.facts(CASH.__contains__)
    others = {coins.values[code] for code in coins.codes[~in_usdc]}
    counts = ~coins.facts(others.__contains__) & ~prepared.roles.swap
    notional = table.number("px") * table.number("sz")
    # ASSUMED: The exchange truncates the proceeds of a dust conversion (trade id 0) to eight
    # decimals.
    notional -= np.where(table.number("tid", np.nan) == 0, notional % 1e-8, 0.0)
    paid = np.where(prepared.tokens.facts(CASH.__contains__), filled(table.number("fee")), 0.0)
    return np.where(counts, -read_signs(table.text("side")) * notional - paid, 0.0)


def _find_causes(
    perps: pd.DataFrame,
    spots: pd.DataFrame,
    traded: pd.DataFrame,
    moved: pd.DataFrame | None,
    begun: pd.DataFrame | None,
    ended: pd.DataFrame | None,
    modes: pd.Series,
) -> dict[str, dict[str, str]]:
    """Return the possible causes of a residual by account and column, the first one first."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for user, coin in sorted(
        place for place in _broken_coins(perps, begun, ended) if place[0] in modes.index
    ):
        late = found[user].get("history_late")
        found[user]["history_late"] = f"{late}, {coin}" if late else f"fills missing of {coin}"
    for user, covers in zip(traded["user"], traded["covers"], strict=True):
        if "funding (" in covers:
            found[user]["funding_missing"] = "funding (" + covers.split("funding (")[1]
    counts = [traded.set_index("user")[["missing_amounts", "unpriced_fees"]].sum(axis=1)]
    silent = spots.reindex(columns=["side", "px", "sz", "fee"]).isna().any(axis=1)
    if silent.any():
        users = spots.loc[silent, "user"]
        counts.append(users[users.map(modes) >= UNIFIED].value_counts())
    if moved is not None:
        counts.append(moved.set_index("account")["unknown"])
    for user, count in pd.concat(counts).groupby(level=0).sum().items():
        if count:
            events = count_text(int(count), "fill, fee or flow", "fills, fees or flows")
            found[str(user)]["not_priced"] = f"{events} without an amount in USD"
    return found


def _broken_coins(
    perps: pd.DataFrame, begun: pd.DataFrame | None, ended: pd.DataFrame | None
) -> set[tuple[str, str]]:
    """Return users and coins whose fills do not connect the first positions with the last ones."""
    if any(name not in perps.columns for name in _POSITIONS):
        return set()
    kept = [name for name in ("user", *_POSITIONS, "tx_index") if name in perps.columns]
    silent = perps[list(_POSITIONS)].isna().any(axis="columns")
    # Positions do not depend on prices, so fills without a price are used, too.
    steps = Fills(perps.loc[~silent, kept]).steps
    first, chains = steps.first, pd.Series(steps.places())
    before, after = (
        pd.Series(dtype="float64") if held is None or held.empty else held["szi"].dropna()
        for held in (begun, ended)
    )
    start, end = steps.start / steps.scale, steps.end / steps.scale
    known, since = (np.append(0, each[:-1])[: len(steps)] for each in (end, steps.ms))
    known[first] = before.reindex(chains.index, fill_value=np.nan if begun is None else 0.0)
    since[first] = 0
    last = before.index.union(after.index).union(chains.index)
    ends = pd.Series(end[steps.last], chains.index)
    ends = ends.combine_first(before).reindex(last, fill_value=0.0)
    until = pd.Series(steps.ms[steps.last], chains.index).reindex(last, fill_value=0)
    # A fill without a position leaves the position after it unknown.
    unknown = perps.loc[silent, ["user", "coin"]].itertuples(index=False, name=None)
    for place, ms in zip(unknown, Table(perps[silent], "fills", "none").ms(), strict=True):
        known[(steps.chain == chains.get(place, -1)) & (since <= ms) & (ms <= steps.ms)] = np.nan
        if place in ends.index and until[place] <= ms:
            ends[place] = np.nan
    broken = set(chains.index[np.unique(steps.chain[_differ(known, start)])])
    if ended is not None and begun is not None:
        broken |= set(last[_differ(ends, after.reindex(last, fill_value=0.0))])
    return broken


def _differ(known: Floats | pd.Series, stated: Floats | pd.Series) -> Flags:
    """Return which known sizes are not the stated ones."""
    return np.asarray(~np.isclose(known, stated, rtol=1e-12, atol=1e-9) & ~np.isnan(known))
