"""Reconciliation: account tables against the change of account values between two times."""

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
from toolkit.prepare.fills import owner_columns
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
    before, begun = (None, _NONE_HELD) if start is None else read_values(start, "start", start_time)
    after, ended = read_values(end, "end", end_time)
    if before is not None and (before["ms"] == NO_TIME).any():
        raise ValueError("start: the time of the values is not known. Pass start_time=")
    users, modes = after.index, after["mode"]
    if before is None:
        before = pd.DataFrame({"value": 0.0, "ms": -_LATER}, users)
    first = before["ms"].reindex(users, fill_value=_LATER)
    last = after["ms"].replace(NO_TIME, _LATER)
    bounds = dict(zip(users, zip(first, last, strict=True), strict=True))
    given = {"fills": fills, "funding": funding, "ledger": ledger}
    tables = {what: Table(frame, what) for what, frame in given.items() if frame is not None}
    inputs = {what: table.frame for what, table in tables.items()}
    if fills is not None:
        cash = _spot_cash(Fills(inputs["fills"]))
        tables["fills"] = Table(inputs["fills"].assign(spot_cash=cash), "fills", "none")
    rows = {what: select_rows(table, bounds, account) for what, table in tables.items()}
    parts, reasons = _sum_tables(rows, begun, ended, modes)
    stated = pd.DataFrame(
        {"start_value": before["value"].reindex(users), "end_value": after["value"], **parts}, users
    )
    lacks, made = stated.isna(), stated.copy()
    made.insert(2, "change", made["end_value"] - made["start_value"])
    made.insert(0, "account_mode", modes.astype("Int64"))
    made["residual"] = left = made["change"] - parts.sum(axis="columns", skipna=False)
    is_large = left.abs() > (_HALF_A_CENT if tolerance is None else tolerance)
    cause = np.select([reasons[name] != "" for name in reasons], [*reasons], CAUSES[-1])
    for name in CAUSES:
        made[name] = left.where((is_large & (cause == name)) | left.isna(), 0.0)
    reasons[~(is_large | lacks.any(axis="columns"))] = ""
    reasons["none"] = np.where(is_large & (cause == CAUSES[-1]), "no known cause", "")
    gone = [np.where(lacks[name], f"{name} not known", "") for name in stated]
    words = zip(*reasons.to_numpy().T, *gone, strict=True)
    causes = pd.Series([", ".join(filter(None, row)) for row in words], users, dtype="str")
    made = made.assign(causes=causes).reset_index()
    values_at_end = end[0] if isinstance(end, tuple) else end
    return finish(made, {"end": values_at_end, **given, **inputs}, helper="pnl.reconcile")


def select_rows(
    table: Table, bounds: Mapping[str, tuple[int, int]], account: str | None
) -> pd.DataFrame:
    """Return the accounts' rows after the first time, up to and including the second one.

    - ``bounds``: the two times of each account

    The column of the account, `account` in a ledger and else `user`, is in lower case.
    """
    what, owner = table.what, "account" if table.what == "ledger" else "user"
    table.require(("time",) if what == "ledger" else ("coin", "time"))
    ms, names = table.known_ms(), account_names(table.frame, account) or list(bounds)
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
    kept = table.frame.iloc[rows].reset_index(drop=True)
    return kept.assign(**texts, **{owner: owners.texts(rows)}, time=utc_times(ms[rows]))


def _spot_cash(fills: Fills) -> Floats:
    """Return the USDC that each fill would bring to the spot wallet, less its fee in USDC.

    Splits and merges of outcome tokens move USD, swaps do not (docs/live_service.md, section 7).
    Markets with another quote token move no USDC (section 6). The result is NaN if the cash of a
    fill is not known.
    """
    table, coins = fills.table, fills.table.text("coin")
    if not all(map(table.has, ("side", "px", "sz", "fee"))):
        return np.full(len(fills), np.nan)
    in_usdc = fills.money.tokens.facts(CASH.__contains__)
    others = {coins.values[code] for code in coins.codes[~in_usdc]}
    counts = ~coins.facts(others.__contains__) & ~fills.roles.swap
    notional = table.number("px") * table.number("sz")
    # ASSUMED: The exchange truncates the proceeds of a dust conversion (trade id 0) to eight
    # decimals.
    notional -= np.where(table.number("tid", np.nan) == 0, notional % 1e-8, 0.0)
    paid = np.where(fills.tokens.facts(CASH.__contains__), filled(table.number("fee")), 0.0)
    return np.where(counts, -read_signs(table.text("side")) * notional - paid, 0.0)


def _sum_tables(
    rows: Mapping[str, pd.DataFrame],
    begun: pd.DataFrame | None,
    ended: pd.DataFrame | None,
    modes: pd.Series,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the parts of the change by account, and texts of possible causes of a residual.

    A part is 0 without rows, and missing if its table is. The first cause applies.
    """
    users = modes.index
    sums, counts, texts = [pd.DataFrame(index=users)], list[pd.Series](), dict[str, pd.Series]()
    if begun is not None and ended is not None:
        gain, had = (
            held.groupby("user")[["unrealized_pnl"]].sum(skipna=False).reindex(users, fill_value=0)
            for held in (ended, begun)
        )
        sums.append((gain - had).set_axis(["unrealised"], axis="columns"))
    if "funding" in rows:
        paid = funding_sums(rows["funding"], "user").set_index("user")
        sums.append(paid[["net"]].set_axis(["funding"], axis="columns"))
    if "ledger" in rows:
        flows = ledger_sums(rows["ledger"], "account").set_index("account")
        sums.append(flows[["perp", "spot_usdc"]].set_axis(["ledger", "spot_usdc"], axis="columns"))
        counts.append(flows["unknown"])
    if "fills" in rows:
        is_spot = rows["fills"]["coin"].str.contains(NOT_PERP, na=False).astype(bool)
        perps, spots = (rows["fills"][kept].reset_index(drop=True) for kept in (~is_spot, is_spot))
        traded = compute_attribution(perps, rows.get("funding"), None, "user").set_index("user")
        sums += [traded[[*FILL_PARTS]], spots.groupby("user")[["spot_cash"]].sum(skipna=False)]
        silent = spots.reindex(columns=["side", "px", "sz", "fee"]).isna().any(axis="columns")
        silent &= spots["user"].map(modes) >= UNIFIED
        counts += [silent.groupby(spots["user"]).sum()]
        counts += [traded["missing_amounts"], traded["unpriced_fees"]]
        count = pd.concat(counts).groupby(level=0).sum()
        events = "fill, fee or flow", "fills, fees or flows"
        texts = {
            "history_late": "fills missing of " + _broken_coins(perps, begun, ended),
            "funding_missing": traded["covers"].str.extract(r"(funding \(.*)", expand=False),
            "not_priced": count[count > 0].map(
                lambda number: f"{count_text(int(number), *events)} without an amount in USD"
            ),
        }
    parts = pd.concat([part.reindex(users, fill_value=0.0) for part in sums], axis="columns")
    parts = parts.reindex(columns=[*PARTS, "spot_usdc"]).astype("float64")
    cash = parts["spot_cash"] + parts.pop("spot_usdc")
    parts["spot_cash"] = cash.where(modes >= UNIFIED, 0.0)
    return parts, pd.DataFrame(texts, users, [*CAUSES[:-1]]).astype("str").fillna("")


def _broken_coins(
    perps: pd.DataFrame, begun: pd.DataFrame | None, ended: pd.DataFrame | None
) -> pd.Series:
    """Return the coins whose fills do not connect the first positions with the last ones, by user.

    They are not known if the fills do not state positions.
    """
    if any(name not in perps for name in _POSITIONS):
        return pd.Series(dtype="str")
    fills = perps.filter(["user", *_POSITIONS, "tx_index"])
    silent = perps[[*_POSITIONS]].isna().any(axis="columns")
    # Positions do not depend on prices, so fills without a price are used, too.
    stated = Fills(fills[~silent])
    steps = stated.steps
    start, end = steps.start / steps.scale, steps.end / steps.scale
    rows = [
        pd.DataFrame({"ms": steps.ms, "start": start, "end": end}).assign(
            **owner_columns(stated, np.arange(len(steps)))
        ),
        fills.loc[silent, ["user", "coin"]].assign(ms=Table(fills[silent], "fills", "none").ms()),
    ]
    ended = None if begun is None else ended
    for held, name, ms in ((begun, "end", -_LATER), (ended, "start", _LATER)):
        if held is not None:
            rows.append(held["szi"].rename(name).reset_index().assign(ms=ms))
    key = ["user", "coin"]
    table = pd.concat([rows[0], *(each for each in rows[1:] if len(each))], ignore_index=True)
    # In the order of accounts, coins and times.
    table["chain"] = table.groupby(key).ngroup()
    table = table.sort_values(["chain", "ms"], ignore_index=True)
    # A fill without a position leaves the positions of its time unknown.
    unknown = table["start"].isna() & table["end"].isna()
    if unknown.any():
        unknown = unknown.groupby([table["chain"], table["ms"]]).transform("any")
        table[["start", "end"]] = table[["start", "end"]].mask(unknown)
    # Without a row of a position, an account had none.
    nothing, none_left = (np.nan if held is None else 0.0 for held in (begun, ended))
    chains = table.groupby("chain")
    before = chains["end"].shift(fill_value=nothing)
    after = chains["start"].shift(-1, fill_value=none_left)
    is_broken = _differ(before, table["start"]) | _differ(table["end"], after)
    return table.loc[is_broken, key].drop_duplicates().groupby("user")["coin"].agg(", ".join)


def _differ(known: pd.Series, stated: pd.Series) -> Flags:
    """Return which known sizes are not the stated ones."""
    is_same = np.isclose(known, stated, rtol=1e-12, atol=1e-9)
    return np.asarray(~is_same & known.notna() & stated.notna())
