"""Equity over time, from an empty account on."""

import numpy as np
import pandas as pd

from toolkit.analysis.pnl.attribution import compute_attribution
from toolkit.analysis.pnl.positions import positions
from toolkit.arrays import Floats, Ints
from toolkit.prepare import Fills
from toolkit.prepare.average import SizeDecimals, size_decimals
from toolkit.prepare.door import Frame, Table, utc_times, with_floats
from toolkit.prepare.funding import covered_period, rows_inside
from toolkit.prepare.groups import CALENDAR
from toolkit.prepare.markets import dex_of, is_perp
from toolkit.prepare.money import (
    Prices,
    parse_prices,
    warn_missing_tokens,
    warn_unused_prices,
)
from toolkit.prepare.owners import Owners, account_names, refuse_several_accounts
from toolkit.prepare.provenance import finish
from toolkit.prepare.single_account import check_one_account
from toolkit.prepare.steps import POSITION_COLUMNS, Steps
from toolkit.prepare.words import CURVE_GAPS, curve_coverage


def equity(
    fills: Frame,
    funding: Frame | None = None,
    ledger: Frame | None = None,
    by: str = "hour",
    *,
    marks: Frame | None = None,
    sz_decimals: SizeDecimals | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | None = None,
) -> pd.DataFrame:
    """Return the perp account's equity over time: realised and unrealised PnL, and flows.

    Parameters
    ----------
    fills, funding, ledger, account
        See `tk.pnl.attribution`. Spot and outcome fills have their own column, because they are
        paid from the spot balance. Fills with a column ``user`` have one curve per account.
    by : {"hour", "day", "week"}
        The distance between points (UTC, weeks from Monday).
    marks : DataFrame, optional
        Mark prices over time: ``time, name, mark_px``, as collected from `tk.meta_and_asset_ctxs`,
        or the oracle prices of `tk.funding.implied_oracle`. Each point uses the last price of each
        coin, if this price is not older than one step.
    sz_decimals : mapping or DataFrame, optional
        See `tk.pnl.positions`; required with `marks`.
    prices, meta : optional
        Prices of tokens other than USDC, see `tk.pnl.attribution`. Without a price they count at
        par.

    Returns
    -------
    DataFrame
        One row per step between the first and the last event, sorted by
        user and time. Amounts are in USD at the end of the step, positive for a gain:

        - ``user``: the account, if the fills have this column
        - ``time``: the end of the step, UTC
        - ``realised``: closed PnL, fees and funding so far, in USD; without funding if `covers`
          says so
        - ``unrealised``: unrealised PnL of the open positions, in USD; missing if a mark price is
          missing; 0 without positions
        - ``pnl``: ``realised + unrealised``, in USD; missing if one of the two is missing
        - ``flows``: ledger flows so far, in USD; missing without a ledger
        - ``equity``: ``flows + pnl``, in USD, since the account was empty
        - ``long``: notional of the long perp positions at the mark prices, in USD, at least 0;
          missing if a mark price is missing
        - ``short``: notional of the short perp positions at the mark prices, in USD, at least 0;
          missing if a mark price is missing
        - ``spot_realised``: closed PnL less fees of spot and outcome fills so far, in USD; not a
          part of ``pnl`` and ``equity``, which describe the perp account
        - ``unpriced_fees`` int64: fees so far in tokens without a known price; ``realised``,
          ``pnl`` and ``equity`` do not contain them
        - ``unknown_flows`` int64: ledger rows so far whose amount is not known; ``flows`` and
          ``equity`` do not contain them
        - ``missing_amounts`` int64: funding rows so far without an amount; ``realised``, ``pnl``
          and ``equity`` do not contain them
        - ``covers`` text: the sources that are covered, see `tk.pnl.attribution`. It also states
          the number of fees in other tokens, and of flows and funding rows of unknown amount, which
          the entire curve leaves out

    Raises
    ------
    MissingColumns
        If a column is missing or contains text instead of numbers.
    ValueError
        If `by` is not a step, if `marks` come without `sz_decimals`, or if the fills are of several
        accounts and no column names the account.

    Notes
    -----
    Funding outside the time range of the fills does not count; ``covers`` states how many rows. The
    last point equals `tk.pnl.attribution` of the entire time. Repeated rows count once. A lazy
    frame is read a few accounts at a time.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0, 90.0], "sz": 1.0, "side": ["B", "A", "A"],
    ...     "time": pd.to_datetime([0, 3_600_000, 10_800_000], unit="ms", utc=True),
    ...     "closed_pnl": [0.0, 10.0, -2.0], "fee": 0.5})
    >>> equity(fills)["realised"].tolist()
    [-0.5, 9.0, 9.0, 6.5]
    """
    if by not in CALENDAR:
        raise ValueError(f"unknown by={by!r}; choose one of {', '.join(CALENDAR)}")
    if marks is not None and sz_decimals is None:
        raise ValueError("marks require the size decimals of the coins. Pass sz_decimals=")
    table = Table(with_floats(fills, "fills"), "fills")
    period = None if funding is None else covered_period(table)
    refuse_several_accounts(table.frame, "fills")
    table.require(("coin", "time"))
    table.known_ms()
    # A curve cannot state for each point which amounts are missing, so it requires all of them.
    table.require_values(filter(table.has, ("px", "sz", "closed_pnl", "fee")))
    has_positions = all(map(table.has, POSITION_COLUMNS)) and table.frame[
        list(POSITION_COLUMNS)
    ].notna().all(axis=None)
    if has_positions:
        check_one_account(Fills(table.frame, account))
    paid = None if funding is None else Table(with_floats(funding, "funding"), "funding").frame
    moved = None if ledger is None else Table(with_floats(ledger, "ledger"), "ledger").frame
    inputs = {"fills": table.frame, "funding": paid, "ledger": moved, "marks": marks}

    names = account_names(table.frame, account)
    own = account or (names[0] if len(names) == 1 else None)
    whole_fills = Fills(table.frame, account, prices, meta)
    owners = Owners(whole_fills.owners.users, names)
    collateral = whole_fills.known_collateral()
    warn_unused_prices(whole_fills.prices, table, collateral)
    in_perps = table.text("coin").facts(is_perp)
    # The time of the request is not part of these frames: hours end at the last event of a curve.
    frames = (pd.DataFrame(table.frame[rows], copy=False) for rows in (in_perps, ~in_perps))
    perps, other = (
        Fills(frame.reset_index(drop=True), own, prices, collateral) for frame in frames
    )
    if other.table.has("side"):
        warn_missing_tokens(other.table)
    keys = ["user"] if table.has("user") else []
    whole = compute_attribution(perps, paid, moved, keys or None, period, owners=owners)
    if paid is not None:
        paid = rows_inside(paid, perps, period)
    changes = compute_attribution(perps, paid, moved, [*keys, by], owners=owners)
    spot = compute_attribution(other, None, None, [*keys, by], owners=owners)
    points = _sum_changes(changes, spot.rename(columns={"net": "spot_net"}), by)

    gain = long = short = np.full(len(points), np.nan)
    if marks is not None and sz_decimals is not None:
        held = positions(Fills(perps.table.frame, account=""), size_decimals(sz_decimals))
        known = parse_prices(prices)
        worth = {dex: known.get(token.upper(), 1.0) for dex, token in collateral.items()}
        gain, long, short = _value_positions(held, points, _read_marks(marks), worth, by)
    elif has_positions and len(perps.table):
        gain = long = short = _flat_points(perps.steps, points)
    flows = np.full(len(points), np.nan) if ledger is None else points["ledger"]
    pnl = points["net"] + gain
    texts = whole.apply(curve_coverage, axis="columns") if len(whole) else pd.Series(dtype="str")
    users = whole["user"].fillna("") if keys else pd.Series("", index=whole.index)
    covers = dict(zip(users, texts, strict=True))
    made = {
        **{key: points["user"].astype("str") for key in keys},
        "time": utc_times(points["ms"]),
        "realised": points["net"],
        "unrealised": gain,
        "pnl": pnl,
        "flows": flows,
        "equity": flows + pnl,
        "long": long,
        "short": short,
        "spot_realised": points["spot_net"],
        **{name: points[name].astype("int64") for name in CURVE_GAPS},
        "covers": points["user"].map(lambda user: covers.get(user, "")).astype("str"),
    }
    return finish(pd.DataFrame(made), inputs, helper="pnl.equity", by=by)


def _sum_changes(changes: pd.DataFrame, spot: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the running sums of each account at the end of each step.

    A curve reaches from the first to the last step of perps, spot and outcome markets. An amount
    that is not known changes no sum.
    """
    step, names = CALENDAR[by][0], ["net", "ledger", *CURVE_GAPS, "spot_net"]
    rows = pd.concat([changes, spot[[c for c in spot if c in ("user", by, "spot_net")]]])
    user = rows["user"].fillna("").astype("str") if "user" in rows else pd.Series("", rows.index)
    codes, users = pd.factorize(user, sort=True)
    ms = Table(rows, "fills", "none").ms(by)
    first, last = (
        pd.Series(ms).groupby(codes).agg(how).to_numpy(np.int64) for how in ("min", "max")
    )
    count = (last - first) // step + 1 if len(rows) else np.zeros(0, dtype=np.int64)
    begin = np.cumsum(count) - count
    place = begin[codes] + (ms - first[codes]) // step
    owner, total = np.repeat(np.arange(len(count)), count), int(count.sum())
    sums = np.stack(
        [
            np.bincount(place, np.nan_to_num(rows[name].to_numpy(np.float64, na_value=0)), total)
            for name in names
        ],
        dtype=np.float64,
    )
    # Plain sums, account by account: a step without a change leaves them exactly as they are.
    running = [np.cumsum(part, axis=1) for part in np.split(sums, begin[1:], axis=1)]
    points = pd.DataFrame(dict(zip(names, np.concatenate(running, axis=1), strict=True)))
    end = first[owner] + (np.arange(total) - begin[owner] + 1) * step
    return points.assign(user=pd.Series(users, dtype="str").to_numpy()[owner], ms=end)


def _flat_points(steps: Steps, points: pd.DataFrame) -> Floats:
    """Return 0 at points at which an account holds no position, else NaN."""
    is_open = (steps.end != 0).astype(np.int64)
    before = np.where(steps.first, steps.start != 0, np.append(0, is_open)[:-1])
    made = np.full(len(points), np.nan)
    for name, rows in points.groupby("user").indices.items():
        code = steps.users.index(name) if name in steps.users else 0 if not name else -1
        mine = np.flatnonzero(steps.user == code)
        mine = mine[np.argsort(steps.ms[mine], kind="stable")]
        first = before[mine][steps.first[mine]].sum()
        count = first + np.cumsum((is_open - before)[mine])
        ends = points["ms"].to_numpy()[rows]
        held = np.append(first, count)[np.searchsorted(steps.ms[mine], ends, side="left")]
        made[rows] = np.where(held == 0, 0.0, np.nan)
    return made


def _read_marks(marks: Frame) -> dict[str, tuple[Ints, Floats]]:
    """Return the times and the mark prices of each coin, in the order of time."""
    table = Table(marks, "marks", "none")
    # `tk.funding.implied_oracle` returns prices with other names.
    is_implied = table.has("oracle_px")
    time, name, px = ("hour", "coin", "oracle_px") if is_implied else ("time", "name", "mark_px")
    table.require((time, name, px))
    rows = pd.DataFrame({"ms": table.known_ms(time), "px": table.number(px)})
    rows["coin"] = table.text(name).texts()
    rows = rows.dropna(subset=["px"]).sort_values("ms", kind="stable")
    return {
        str(coin): (part["ms"].to_numpy(), part["px"].to_numpy())
        for coin, part in rows.groupby("coin")
    }


def _value_positions(
    held: pd.DataFrame,
    points: pd.DataFrame,
    marks: dict[str, tuple[Ints, Floats]],
    worth: dict[str, float],
    by: str,
) -> tuple[Floats, Floats, Floats]:
    """Return unrealised PnL, long and short notional before the end of each step, in USD.

    - ``held``: positions after each fill
    - ``worth``: the price of the collateral of a dex; 1 by default

    A point is missing if an open position has no price in the step.
    """
    step = CALENDAR[by][0]
    gain, long, short = np.zeros((3, len(points)))
    rows_of = {user: np.asarray(rows) for user, rows in points.groupby("user").indices.items()}
    ends = points["ms"].to_numpy()
    held = held.assign(ms=Table(held, "fills", "none").ms("time"))
    keys = [held["user"].fillna("") if "user" in held else np.zeros(len(held)), held["coin"]]
    for (user, name), fills in held.groupby(keys, sort=False):
        coin = str(name)
        rows = rows_of.get(user if "user" in held else "", np.zeros(0, dtype=np.int64))
        place = np.searchsorted(fills["ms"].to_numpy(), ends[rows] - 1, side="right") - 1
        rows, place = rows[place >= 0], place[place >= 0]
        size, entry = (fills[name].to_numpy(np.float64)[place] for name in ("position", "entry_px"))
        rows, size, entry = rows[size != 0], size[size != 0], entry[size != 0]
        times, prices = marks.get(coin, (np.zeros(0, dtype=np.int64), np.zeros(0)))
        latest = np.searchsorted(times, ends[rows], side="right") - 1
        times, prices = np.append(times, -(2**62)), np.append(prices, np.nan)  # the last is none
        mark = np.where(times[latest] > ends[rows] - step, prices[latest], np.nan)
        price = worth.get(dex_of(coin), 1.0)
        gain[rows] += size * (mark - entry) * price
        long[rows] += np.maximum(size, 0.0) * mark * price
        short[rows] += np.maximum(-size, 0.0) * mark * price
    missing = np.isnan(gain)
    return gain, np.where(missing, np.nan, long), np.where(missing, np.nan, short)
