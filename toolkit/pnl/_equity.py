"""Equity over time, from an empty account on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.pnl._attribution import NEEDED, compute_attribution
from toolkit.prepare import Fills, money
from toolkit.prepare.average import SizeDecimals, average_prices
from toolkit.prepare.door import Frame, Names, Table, filled, utc_times
from toolkit.prepare.fills import check_chains
from toolkit.prepare.funding import covered_period, read_payments
from toolkit.prepare.groups import CALENDAR, row_before
from toolkit.prepare.ledger import own_ledger
from toolkit.prepare.money import Prices, is_perp
from toolkit.prepare.prices import make_history
from toolkit.prepare.provenance import finish, refuse_several_accounts
from toolkit.prepare.steps import POSITION_COLUMNS

CURVE_GAPS = {
    "unpriced_fees": "fees in other tokens",
    "unknown_flows": "flows of unknown amount",
    "missing_amounts": "funding rows of unknown amount",
}
"""Counts of what the sums of a curve leave out. All of its fills have their amounts."""

Part = tuple[Names, Ints, Mapping[str, Floats | Flags]]
"""Events of one source: their accounts, their times, and what each one changes."""


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
    traded = Fills(fills, account, prices, meta)
    if traded.prices:
        traded.collateral = traded.known_collateral
    table = traded.table
    refuse_several_accounts(table.frame, "fills")
    table.require(NEEDED)
    table.known_ms()
    # A curve cannot state for each point which amounts are missing, so it requires all of them.
    table.require_values(("px", "sz", "closed_pnl", "fee"))
    has_positions = all(map(table.has, POSITION_COLUMNS)) and not any(
        table.column(name).array.isna().any() for name in POSITION_COLUMNS
    )
    if has_positions:
        check_chains(traded, warns=False)
    if traded.prices:
        money.warn_unused_prices(traded.prices, table, traded.collateral)
    money.warn_missing_tokens(table)
    is_named, in_perps = table.has("user"), table.text("coin").facts(is_perp)
    gain = traded.money.closed_pnl - traded.money.fee
    amounts: dict[str, Floats | Flags] = {
        "net": np.where(in_perps, gain, 0.0),
        "spot_net": np.where(in_perps, 0.0, gain),
        "unpriced_fees": traded.money.is_unpriced,
    }
    users, begun = table.text("user", blank=True), dict[str, float]()
    if has_positions and marks is None:
        amounts["open"], begun = _count_open(traded)
    parts: list[Part] = [(users, table.ms(), amounts)]
    covers = dict.fromkeys(Names(users.codes[in_perps], users.values).present() or [""], "fills")
    perps = traded
    if not in_perps.all():
        perps = Fills(table.frame[in_perps], traded.account, traded.prices, traded.collateral)
        perps.owners = traded.owners
    if funding is not None or ledger is not None:
        others, covers = _other_parts(traded, perps, funding, ledger)
        parts += others
    owners, ends, sums = _sum_parts(parts, by)
    gains = long = short = unknown = np.full(len(ends), np.nan)
    if marks is not None and sz_decimals is not None:
        if not has_positions:
            check_chains(perps, warns=False)
        entry = average_prices(perps, sz_decimals).entry
        gains, long, short = _value_positions(perps, entry, owners, ends, marks, by)
    elif has_positions and in_perps.any():
        is_flat = sums["open"] + owners.facts(lambda user: begun.get(user, 0.0)) == 0
        gains = long = short = np.where(is_flat, 0.0, np.nan)
    flows, pnl = sums["ledger"] if ledger is not None else unknown, sums["net"] + gains
    last = np.searchsorted(owners.codes, np.arange(len(owners.values)), "right") - 1
    texts = [
        curve_coverage(covers.get(user, ""), {name: sums[name][place] for name in CURVE_GAPS})
        for user, place in zip(owners.values, last.tolist(), strict=True)
    ]
    made = {
        **({"user": owners.texts()} if is_named else {}),
        "time": utc_times(ends),
        "realised": sums["net"],
        "unrealised": gains,
        "pnl": pnl,
        "flows": flows,
        "equity": flows + pnl,
        "long": long,
        "short": short,
        "spot_realised": sums["spot_net"],
        **{name: sums[name].astype(np.int64) for name in CURVE_GAPS},
        "covers": Names(owners.codes, texts).texts().fillna(""),
    }
    inputs = {"fills": table.frame, "funding": funding, "ledger": ledger, "marks": marks}
    return finish(pd.DataFrame(made, copy=False), inputs, helper="pnl.equity", by=by)


def curve_coverage(covers: str, counts: Mapping[Any, Any]) -> str:
    """Return the sources that a curve covers, and the number of rows without a known amount."""
    gaps = [
        f"without {counts[name]:.0f} {text}" for name, text in CURVE_GAPS.items() if counts[name]
    ]
    return ", ".join([covers, *gaps])


def _other_parts(
    fills: Fills, perps: Fills, funding: Frame | None, ledger: Frame | None
) -> tuple[list[Part], dict[str, str]]:
    """Return the payments inside the time of the fills, the ledger, and what each curve covers."""
    parts, time, is_named = list[Part](), None, fills.table.has("user")
    if funding is not None:
        time = covered_period(fills.table)
        paid, mine, inside, usd = read_payments(perps, funding, time, named=True)
        kept = mine & inside
        amounts = {"net": filled(usd[kept]), "missing_amounts": np.isnan(usd[kept])}
        parts.append((paid.text("user", blank=True).take(kept), paid.ms()[kept], amounts))
    if ledger is not None:
        moved = Table(ledger, "ledger")
        moves = own_ledger(moved, fills.account, fills.owners, named=is_named)
        amounts = {"ledger": filled(moves.perp), "unknown_flows": np.isnan(moves.perp)}
        parts.append((moves.account, moves.table.ms(), amounts))
    whole = compute_attribution(perps, funding, ledger, ["user"] if is_named else None, time)
    if not is_named:
        parts = [(Names(np.zeros(len(ms), np.int64), [""]), ms, each) for _, ms, each in parts]
    names = whole["user"].fillna("") if is_named else [""] * len(whole)
    return parts, dict(zip(names, whole["covers"], strict=True))


def _count_open(fills: Fills) -> tuple[Floats, dict[str, float]]:
    """Return how each fill changes the number of open perps, and this number before all fills."""
    steps = fills.steps
    is_open = (steps.end != 0) & ~steps.spot
    begun = steps.first & (steps.start != 0) & ~steps.spot
    change = np.zeros(len(steps))
    change[steps.rows] = 1.0 * is_open - np.where(steps.first, begun, row_before(is_open))
    count = np.bincount(steps.user, begun, len(steps.users))
    return change, dict(zip(steps.users, count.tolist(), strict=True))


def _sum_parts(parts: Sequence[Part], by: str) -> tuple[Names, Ints, dict[str, Floats]]:
    """Return the account and the end of each step, and the running sums there.

    A curve reaches from the first to the last step of perps, spot and outcome markets. An amount
    that is not known changes no sum.
    """
    length, into = CALENDAR[by]
    users = sorted({name for names, _, _ in parts for name in names.present(blank=True)})
    place_of = {name: place for place, name in enumerate(users)}
    code = np.concatenate(
        [names.facts(lambda name: place_of.get(name, 0)) for names, _, _ in parts]
    )
    step = (np.concatenate([ms for _, ms, _ in parts]) + into) // length
    first = np.full(len(users), np.iinfo(np.int64).max)
    np.minimum.at(first, code, step)
    last = first.copy()
    np.maximum.at(last, code, step)
    count = last - first + 1
    begin, total = np.cumsum(count) - count, int(count.sum())
    place = np.split(begin[code] + step - first[code], np.cumsum([len(ms) for _, ms, _ in parts]))
    owner = np.repeat(np.arange(len(users)), count)
    running = {}
    for name in ("net", "ledger", *CURVE_GAPS, "spot_net", "open"):
        sums = np.zeros(total)
        for (_, _, amounts), at in zip(parts, place, strict=False):
            if name in amounts and amounts[name].any():
                sums += np.bincount(at, amounts[name], total)
        # Plain sums, account by account: a step without a change leaves them exactly as they are.
        each = [np.cumsum(own) for own in np.split(sums, begin[1:])]
        running[name] = np.concatenate(each)
    ms = (first[owner] + np.arange(total) - begin[owner] + 1) * length - into
    return Names(owner, users), ms, running


def _value_positions(
    perps: Fills, entries: Floats, owners: Names, ends: Ints, marks: Frame, by: str
) -> tuple[Floats, Floats, Floats]:
    """Return unrealised PnL, long and short notional before the end of each step, in USD.

    A point is missing if an open position has no price in the step.
    """
    table = Table(marks, "marks", "none")
    # Prices of `tk.funding.implied_oracle` have other names.
    is_implied = table.has("oracle_px") and not table.has("mark_px")
    time, name, px = ("hour", "coin", "oracle_px") if is_implied else ("time", "name", "mark_px")
    table.require((time, name, px))
    prices = make_history(px, table.text(name), table.known_ms(time), table.number(px))
    steps, sizes = perps.steps, perps.steps.end / perps.steps.scale
    gain, long, short = np.zeros((3, len(ends)))
    number = Names(steps.user, steps.users).among(owners)
    heads, tails = steps.heads, np.flatnonzero(steps.last)
    for head, tail in zip(heads.tolist(), tails.tolist(), strict=True):
        rows = np.arange(*np.searchsorted(owners.codes, [number[head], number[head] + 1]))
        coin = steps.coins[steps.coin[head]]
        place = head - 1 + np.searchsorted(steps.ms[head : tail + 1], ends[rows] - 1, "right")
        is_open = (place >= head) & (sizes[place] != 0)
        rows, size, entry = rows[is_open], sizes[place[is_open]], entries[place[is_open]]
        coins = Names(np.zeros(len(rows), dtype=np.int64), [coin])
        mark, _ = prices.last_at(coins, ends[rows], CALENDAR[by][0] - 1)
        price = perps.collateral_price(coin)
        gain[rows] += size * (mark - entry) * price
        long[rows] += np.maximum(size, 0.0) * mark * price
        short[rows] += np.maximum(-size, 0.0) * mark * price
    missing = np.isnan(gain)
    return gain, np.where(missing, np.nan, long), np.where(missing, np.nan, short)
