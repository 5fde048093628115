"""Attribution: how fills, funding and ledger changed the money of an account.

Each source is summed by group. Then the sums are stacked and summed again, so that a group that
occurs in only one source keeps its row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Flags, Floats, Ints
from toolkit.pnl._round_trips import Legs, trip_funding
from toolkit.prepare import Fills, money
from toolkit.prepare import funding as payments
from toolkit.prepare.door import Frame, Table, filled
from toolkit.prepare.fills import owner_columns
from toolkit.prepare.groups import CALENDAR, group_rows, list_keys, number_groups
from toolkit.prepare.ledger import own_ledger, read_income
from toolkit.prepare.money import Prices
from toolkit.prepare.provenance import finish, is_owned
from toolkit.prepare.roles import warn_missing_directions
from toolkit.prepare.states import distinct_rows
from toolkit.rules.directions import CONVERSIONS
from toolkit.times import Time

NEEDED = ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")
FEES = ("trading_fee", "builder_fee", "deployer_fee", "rebate")
MONEY = (
    "closed_pnl", *FEES, "funding", "net", "ledger", "equity_change", "unrealised",
    "priority_gas", "fees_in_cost", "funding_outside",
)  # fmt: skip
GAPS = ("missing_amounts", "unpriced_fees", "unknown_flows", "conversions", "at_par")
_COUNTS = (
    "rows", "perps", "payments", "held", "paid", "outside", "no_unrealised", "no_closed_pnl",
    "no_fee",
)  # fmt: skip
_CENT = 0.005  # a smaller income is not stated
_RESERVED = ("time", "px", "sz", "fills", "volume", "fee", *MONEY, *GAPS, "covers")
"""Columns that cannot be keys."""

_HOUR_KEYS = ("user", "coin", "dex")
_SOURCES = {
    "funding": (*_HOUR_KEYS, *CALENDAR),
    "ledger": ("user", *CALENDAR),
    "unrealised": _HOUR_KEYS,
}
"""Source -> the keys that it can be grouped by."""

Sums = tuple[pd.DataFrame, dict[str, Floats]]
"""The groups of a source, and the sums of its measures in each group."""


def attribution(
    fills: Frame | Fills,
    funding: Frame | None = None,
    ledger: Frame | None = None,
    by: str | Iterable[str] | None = None,
    *,
    positions: tuple[Frame | None, Frame | None] | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | None = None,
    start_time: Time | None = None,
    end_time: Time | None = None,
) -> pd.DataFrame:
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
    and after: the proceeds of sells, less the cost of buys and the fees in USDC. A fee in the base
    token, of a spot buy, is a part of the token's cost. ``closed_pnl`` contains it, so it is not
    deducted again. The same holds for a rebate in the base token, of a spot sell.

    Parameters
    ----------
    fills : DataFrame
        As `tk.user_fills_by_time` returns them.
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
        Token -> USD, for example ``{"USDH": 0.998}``, for amounts in tokens other than USDC:
        volume, closed PnL, fees and funding of a dex with this collateral, and of spot and outcome
        markets with this quote token. Upper and lower case do not matter. A warning lists names
        that no fill uses. Without a price such amounts count at par (one token is one USD), and
        ``at_par`` counts the fills.
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
        Sorted by group. Amounts are in USD. The columns of `by`, then:

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
        - ``fees_in_cost``: fees that spot buys paid in the base token, in USD at the price of the
          fill, negative, and rebates of sells in it, positive; not a part of ``net``, because the
          cost and so ``closed_pnl`` contain them
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
          unrealised PnL, how much of ``ledger`` is income, such as the gain of money that came back
          from a vault, and how many amounts are known:
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
        has two prices, or USDC has a price other than 1.

    Notes
    -----
    Spot, collateral and conversions: docs/live_service.md, sections 3, 6 and 7. The token of a dex
    is the ``fee_token`` of its fills. The quote token of a spot market is the ``fee_token`` of its
    fills that do not pay in the base token. A fee of a native perp in a token other than USDC has
    no price unless `prices` has one.

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
    fills = prepare.fills(fills, account, prices, meta)
    time = None if funding is None else payments.covered_period(fills.table, start_time, end_time)
    return compute_attribution(fills, funding, ledger, by, time, positions, warns=True)


def compute_attribution(
    fills: Frame | Fills,
    funding: Frame | None,
    ledger: Frame | None,
    by: str | Iterable[str] | None = None,
    time: payments.CoveredPeriod | None = None,
    positions: tuple[Frame | None, Frame | None] | None = None,
    *,
    warns: bool = False,
) -> pd.DataFrame:
    """Return the attribution of rows; without a `time` all funding counts.

    Funding and ledger count for the accounts of the fills. With `warns` it warns of missing values
    in the fills, and an amount that no fill of a group states is missing.
    """
    fills = prepare.fills(fills)
    keys, table = list_keys(by, _RESERVED), fills.table
    table.require(NEEDED)
    parts = [_sum_rows(table, keys, _measure_fills(fills, warns=warns))]
    given = {"funding": funding, "ledger": ledger, "unrealised": positions}
    covers = {"fills": "fills"}
    for name, possible in _SOURCES.items():
        if given[name] is not None:  # the name of the source, or why these keys cannot group it
            lacks = ", ".join(key for key in keys if key not in possible)
            covers[name] = f"not {name} (it has no {lacks})" if lacks else name
    hours, inputs = None, {"fills": table.frame, "funding": funding, "ledger": ledger}
    if funding is not None and covers["funding"] == "funding":
        paid = payments.read_payments(fills, funding, time or payments.CoveredPeriod())
        known, usd = ~np.isnan(paid.usd), np.nan_to_num(paid.usd)
        counted = np.where(paid.inside, usd, 0.0)
        measures = {
            "funding": counted,
            "funding_outside": usd - counted,
            "payments": known & paid.inside,
            "outside": ~paid.inside,
            "missing_amounts": ~known,
        }
        parts.append(_sum_rows(paid.table, keys, measures, np.flatnonzero(paid.mine)))
        hours, inputs["funding"] = _position_hours(fills, paid), paid.table.frame
    if covers.get("ledger") == "ledger":
        moved = Table(ledger, "ledger")
        moves = own_ledger(moved, fills.account, fills.owners, named="user" in keys)
        users = moves.account.texts().to_numpy()
        rows = Table(moves.table.frame.assign(user=users), "ledger", "none")
        measures = {
            "ledger": filled(moves.perp),
            "unknown_flows": np.isnan(moves.perp),
            "income": read_income(moves),
        }
        parts.append(_sum_rows(rows, keys, measures))
        inputs["ledger"] = moved.frame
    if covers.get("unrealised") == "unrealised":
        for held, sign in zip(positions or (), (-1.0, 1.0), strict=True):
            if held is not None:
                parts.append(_sum_positions(fills, held, sign, keys))
    groups, codes = parts[0][0], np.arange(len(parts[0][0]))
    if len(parts) > 1:
        stacked = pd.concat([each for each, _ in parts], ignore_index=True)
        codes, groups = number_groups(stacked[[*keys]], missing_last=True)
    sums = dict.fromkeys((*MONEY, *_COUNTS, *GAPS, "income"), np.zeros(len(groups)))
    for name in dict.fromkeys(name for _, each in parts for name in each):
        values = [each.get(name, np.zeros(len(group))) for group, each in parts]
        sums[name] = np.asarray(np.bincount(codes, np.concatenate(values), len(groups)), float)
    result = _mark_uncovered(groups, sums, covers, hours)
    facts = {"helper": "pnl.attribution", "by": keys, "covers": ", ".join(covers.values())}
    if result["at_par"].any():
        facts["at_par"] = fills.tokens_at_par()
    return finish(result, inputs, **facts)


def _measure_fills(fills: Fills, *, warns: bool) -> dict[str, Floats | Flags]:
    """Return what fills add to a group; what is paid is negative.

    The trading fee is the fee without the parts of builder and deployer. Below 0 it is a rebate.
    """
    table, usd, coins = fills.table, fills.money, fills.table.text("coin")
    trading, gain = usd.fee - usd.builder_fee - usd.deployer_fee, usd.closed_pnl - usd.fee
    px, sz, closed, fee = (np.isnan(table.number(n)) for n in ("px", "sz", "closed_pnl", "fee"))
    missing = px | sz | closed | fee
    perp, spot = (coins.facts(kind) for kind in (money.is_perp, money.is_spot))
    outcome = ~(perp | spot)
    if warns:
        if fills.prices:
            money.warn_unused_prices(fills.prices, table, fills.collateral)
        if missing.any():
            money.warn_missing_amounts(table)
        money.warn_missing_tokens(table)
        if outcome.any():
            warn_missing_directions(table)
    # Conversions are not trades (docs/live_service.md, section 7). Only outcome tokens convert.
    converts = outcome
    if outcome.any():
        converts = outcome & table.text("dir", blank=True).facts(CONVERSIONS.__contains__)
    measures: dict[str, Floats | Flags] = {
        "rows": np.ones(len(table), dtype=bool),
        "volume": np.where(converts, 0.0, usd.volume) if converts.any() else usd.volume,
        "closed_pnl": usd.closed_pnl,
        "trading_fee": -np.maximum(trading, 0.0),
        "rebate": -np.minimum(trading, 0.0),
        "builder_fee": -usd.builder_fee,
        "deployer_fee": -usd.deployer_fee,
        "perp_net": gain if perp.all() else gain * perp,
        "perps": perp,
        "priority_gas": -filled(table.number("priority_gas", 0.0)),
        "fees_in_cost": -usd.fee_in_cost,
        "missing_amounts": missing,
        "no_closed_pnl": closed & warns,
        "no_fee": fee & warns,
        "unpriced_fees": usd.is_unpriced,
        "at_par": usd.is_at_par,
        "conversions": converts,
    }
    if table.has("_rows"):  # `tk.apply` added up fills of the same names
        fills_of_row = table.number("_rows")
        measures |= {n: each * fills_of_row for n, each in measures.items() if each.dtype == bool}
    return measures


def _sum_positions(fills: Fills, held: Frame, sign: float, keys: Sequence[str]) -> Sums:
    """Return the sums of the unrealised PnL of positions, times a sign."""
    table = Table(held, "positions")
    table.require(["coin", "unrealized_pnl", *(["user"] if "user" in keys else [])])
    rows = np.flatnonzero(is_owned(table, "user", fills.owners))
    stated = ("user", "dex", "coin", "time", "szi", "unrealized_pnl")
    distinct_rows(table.columns((), stated).iloc[rows], ("user", "coin"), "positions")
    gain = table.number("unrealized_pnl")
    measures = {
        "unrealised": sign * np.nan_to_num(gain),
        **dict.fromkeys(("missing_amounts", "no_unrealised"), np.isnan(gain)),
    }
    return _sum_rows(table, keys, measures, rows)


def _sum_rows(
    table: Table,
    keys: Sequence[str],
    measures: Mapping[str, Floats | Flags],
    rows: Ints | None = None,
) -> Sums:
    """Return the groups of rows, and the sums of the measures in each."""
    codes, groups = group_rows(table, keys, rows=rows)
    sums = {name: np.zeros(len(groups)) for name in measures}
    for name, values in measures.items():
        taken = values if rows is None else values[rows]
        if taken.any():
            sums[name] = np.asarray(np.bincount(codes, taken, len(groups)), float)
    return groups, sums


def _position_hours(fills: Fills, paid: payments.Payments) -> pd.DataFrame | None:
    """Return position hours, and those with a payment, by user, coin and dex.

    None if the fills do not state positions.
    """
    table = fills.table
    is_named = not table.has("user") or paid.table.has("user")
    if not (is_named and all(map(table.has, payments.POSITIONS))):
        return None
    legs = Legs(fills)
    _, held, with_row, _ = trip_funding(fills, legs, paid, paid.mine & paid.inside)
    columns, is_held = owner_columns(fills, legs.step[legs.heads]), legs.sign != 0
    dex = columns["coin"].fillna("").map(money.dex_of)
    return pd.DataFrame({**columns, "dex": dex, "held": held * is_held, "paid": with_row * is_held})


def _mark_uncovered(
    groups: pd.DataFrame,
    sums: Mapping[str, Floats],
    covers: Mapping[str, str],
    hours: pd.DataFrame | None,
) -> pd.DataFrame:
    """Return the columns of the result, with missing values for what is not covered."""
    keys, unpaid = list(groups.columns), np.zeros(len(groups), dtype=bool)
    counts = {name: np.rint(sums[name]).astype(np.int64) for name in (*_COUNTS, *GAPS)}
    lacks_paid, lacks_moved, lacks_held = (covers.get(name) != name for name in _SOURCES)
    if hours is not None:
        by = [key for key in keys if key in _HOUR_KEYS]
        pairs = groups.assign(**hours[["held", "paid"]].sum())
        if by:
            totals = hours.groupby(by, dropna=False)[["held", "paid"]].sum().reset_index()
            pairs = groups.merge(totals, "left", by)
        counts |= {name: pairs[name].fillna(0).to_numpy(np.int64) for name in ("held", "paid")}
    if not lacks_paid:
        unpaid = _misses_payments(groups, counts, has_hours=hours is not None)
    rows = counts["rows"]
    no_closed, no_fee = (
        (rows > 0) & (counts[name] == rows) for name in ("no_closed_pnl", "no_fee")
    )
    paid_fees = np.sum([sums[name] for name in FEES], axis=0)
    amounts = {
        **{name: sums[name] for name in MONEY},
        "net": sums["closed_pnl"] + paid_fees + sums["funding"],
        "equity_change": sums["perp_net"] + sums["funding"] + sums["ledger"],
    }
    lost = {
        "closed_pnl": no_closed,
        **dict.fromkeys((*FEES, "fees_in_cost"), no_fee),
        "net": no_closed | no_fee,
        "funding": unpaid | lacks_paid,
        "ledger": np.full(len(groups), lacks_moved),
        "equity_change": unpaid | lacks_paid | lacks_moved | no_closed | no_fee,
        "unrealised": (counts["no_unrealised"] > 0) | lacks_held,
    }
    for name, gone in lost.items():
        if gone.any():
            amounts[name] = np.where(gone, np.nan, amounts[name])
    facts = counts | {"unpaid": unpaid, "income": sums["income"]}
    partly = unpaid | (counts["paid"] < counts["held"]) | (np.abs(sums["income"]) >= _CENT)
    for name in ("outside", "no_unrealised", "no_closed_pnl", "no_fee"):
        partly |= counts[name] > 0
    texts = [", ".join(covers.values())] * len(groups)
    hours_of = " in all" if any(key in CALENDAR for key in keys) else ""
    for place in np.flatnonzero(partly).tolist():
        row = {name: values[place].item() for name, values in facts.items()}
        texts[place] = _coverage_text(texts[place], row, f"position hours{hours_of}")
    made: dict[str, object] = {
        **groups,
        "fills": rows - counts["conversions"],
        "volume": sums["volume"],
        **amounts,
        **{name: counts[name] for name in GAPS},
        "covers": pd.Series(texts, dtype="str"),
    }
    return pd.DataFrame(made, index=range(len(groups)), copy=False)


def _coverage_text(text: str, row: Mapping[str, Any], hours: str) -> str:
    """Return what a row covers, if this is not all of the sources in a text."""
    before, funding, after = text.partition("funding")
    if row["unpaid"]:
        text = f"{before}not funding (no rows){after}"
    elif row["paid"] < row["held"]:
        text = f"{before}{funding} ({row['paid']} of {row['held']} {hours}){after}"
    if row["outside"]:
        lying = f"{row['outside']} funding row{'s' * (row['outside'] != 1)}"
        text += f", without {lying} outside the time of the fills"
    if row["no_unrealised"]:
        held = f"{row['no_unrealised']} position{'s' * (row['no_unrealised'] != 1)}"
        text += f", without the unrealised PnL of {held}"
    if abs(row["income"]) >= _CENT:
        text += f", without {row['income']:,.2f} USD of vaults, commissions, rewards and gas"
    if row["no_closed_pnl"] + row["no_fee"]:
        closed, fee = (row["rows"] - row[name] for name in ("no_closed_pnl", "no_fee"))
        known = f"{closed} of {row['rows']} closed PnLs, {fee} of {row['rows']} fees known"
        text = f"fills ({known}){text.removeprefix('fills')}"
    return text


def _misses_payments(groups: pd.DataFrame, counts: Mapping[str, Ints], *, has_hours: bool) -> Flags:
    """Return whether funding rows are missing although there were positions.

    `builderApprovedFundingByTime` has no rows of accounts without an approval. So an account with
    perp fills and no rows did not necessarily pay nothing. The same holds for a coin with open
    positions at full hours, and for a day without rows if a row of any position hour is missing or
    if position hours are not known. An account without fills misses nothing.
    """

    def totals(*names: str) -> Any:
        """Return payments and perp fills of all rows with the same keys."""
        same, _ = number_groups(groups[[key for key in groups if key in names]])
        return (np.bincount(same, counts[name])[same] for name in ("payments", "perps"))

    (of_account, perps_of_account), (of_group, perps_of_group) = totals("user"), totals(*_HOUR_KEYS)
    unpaid = (of_account == 0) & (perps_of_account > 0)
    unpaid |= (of_group == 0) & (counts["held"] > 0)
    gaps = counts["paid"] < counts["held"] if has_hours else perps_of_group > 0
    return np.asarray(unpaid | ((counts["payments"] == 0) & gaps))
