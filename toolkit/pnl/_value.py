"""The value of accounts over time, from cash, holdings and marks.

An account is worth ``K + cash + sum(size * mark)``: what it paid and received, and what it holds at
the last price. K is what it had before the rows begin. It follows from any moment at which the
value is known.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare import Fills, door, provenance
from toolkit.prepare.door import NO_TIME, Frame, Names, Table, filled
from toolkit.prepare.fills import check_chains
from toolkit.prepare.funding import CoveredPeriod, Payments, chains_of, read_payments
from toolkit.prepare.groups import ratio, split_groups, sum_groups
from toolkit.prepare.ledger import COLLATERAL, Movements, own_ledger, read_kept
from toolkit.prepare.money import Prices, is_perp
from toolkit.prepare.prices import PriceHistory, make_history, read_prices
from toolkit.prepare.roles import is_off_book
from toolkit.prepare.states import PORTFOLIO_MARGIN, UNIFIED, spot_backed_users
from toolkit.prepare.steps import POSITION_COLUMNS
from toolkit.rules.funding import LAST_DIGIT
from toolkit.times import DAY, HOUR, SECOND, to_ms

Part = Literal["account", "perp account"]

_LACKING: Final = 0.1  # share of an account's cash that its rows may lack, such as funding
_EXACT: Final = 500 * LAST_DIGIT  # a smaller payment does not state its price to 0.1 %
_DUST: Final = 1.0  # USD; a smaller balance of a token keeps its last price
_NOTHING: Final = 1e-7  # of a token: rounding of balances
_UNKNOWN: Final = "the value at the beginning is not known. Pass accounts= or start="
_SILENT: Final = "no price within an hour: "
_UNUSED: Final = (
    "no known value is of use: it lacks a part of the account, or what was open then has no price. "
    "Pass marks="
)
_BATCH: Final = 10 * SECOND  # the states of all dexes in one answer
_NEEDED: Final = (*(name for name in POSITION_COLUMNS if name != "closed_pnl"), "fee")
_COLUMNS: Final = ("time", "value", "flows", "kept", "unmarked", "part", "reason")
_REASONS: Final = ("", "a funding payment has no amount", "a ledger row has no known amount")
_EVENT: Final[Mapping[str, Any]] = {
    "owner": 0, "ms": 0, "asset": 0, "start": np.nan, "end": np.nan, "px": np.nan, "why": 0,
    "enters": False, **dict.fromkeys(("usd", "kept", "flow", "move", "stake", "came"), 0.0),
}  # fmt: skip
"""Columns of events, and their values if an event does not state them."""

Events = Mapping[str, npt.NDArray[Any]]
"""What happened, in the order of time; ledger rows are first in their millisecond.

- ``owner``: the place of the account among the users
- ``ms``: the time
- ``usd``, ``kept``, ``flow``: USD that was paid and received, that went to vaults or was lent, and
  that came from outside
- ``asset``: the number of the coin of a perp, or of ``<token>/USDC``; 0 is none
- ``start``, ``end``, ``px``: its size before and after a fill or payment, and the price of a fill
- ``move``, ``stake``, ``came``: tokens into the wallet, into staking or lending, from outside
- ``why``: why the sum of all rows is not known from then on, as a number of `_REASONS`
- ``enters``: whether a ledger row brings money in, and may be the first row of all
"""


def value(
    fills: Frame | Fills,
    funding: Frame | None = None,
    ledger: Frame | None = None,
    *,
    marks: Frame | None = None,
    accounts: Frame | tuple[Frame, Frame] | None = None,
    start: float | Mapping[str, float] | None = None,
    part: Part | None = None,
    account: str | None = None,
    prices: Prices | None = None,
    meta: Frame | None = None,
) -> pd.DataFrame:
    """Return what accounts are worth over time: cash, positions and balances at the last price.

    Where a price, or the capital at the beginning, is not known, the value is missing, never 0.

    Parameters
    ----------
    fills, funding, ledger, account, prices, meta
        See `tk.pnl.attribution`. Fills must have ``start_position``. `prices` also values balances
        of its tokens, at all times.
    marks : DataFrame, optional
        Prices over time: ``coin, time, px``, asset contexts, candles (at their end), or the result
        of `tk.funding.implied_oracle`. Further marks are the oracle price inside each funding
        payment, usdc / (-szi * rate), and the fills that met on a book. The latest one counts,
        for at most an hour.
    accounts : DataFrame or (accounts, positions), optional
        Recorded values: ``user, account_value`` and ``time`` of one or more moments, as
        `tk.batch_clearinghouse_states` or `tk.account_value_snapshots` return them. The positions
        of the same states are marks, too.
    start : float or mapping of account to float, optional
        The value before the first row, in USD.
    part : {"account", "perp account"}, optional
        What is valued: the entire account, with the spot wallet at prices, staking and lending; or
        its perps on all dexes alone; money in vaults counts in both. By default the perp account if
        `accounts` states its value, else the entire account.

    Returns
    -------
    DataFrame
        One row before the first event, at each event and at each full hour, by user and time:

        - ``user``: the account, if the fills have this column
        - ``time``: the time, UTC; the first row is a millisecond before the first event
        - ``value``: the value after the events of this time, in USD
        - ``flows``: money from outside (+) since the row before, in USD, at this time. Money in a
          vault counts at what was put in, until it is withdrawn with its gain; rewards and
          commissions are gains; tokens that came without a row are from outside
        - ``kept``: the part of ``value`` that is in vaults, staked or lent, less loans, in USD;
          recorded values do not contain it
        - ``unmarked`` int64: positions and balances without a price
        - ``part`` text: ``"account"``, or ``"perp account"``, whose spot wallet does not count
        - ``reason`` text: why the value is missing; empty if it is known

    Raises
    ------
    MissingColumns
        If a column or an amount of the fills is missing, or if fills are of several accounts and
        funding or ledger have no column of accounts.
    ValueError
        If the fills are of several accounts and no column names the account; if funding or ledger
        are of several accounts and the account of the fills is not known.

    Notes
    -----
    The value before the first row is `start`; or it follows from `accounts`; or it is 0, if the
    first row brings money in and no position is older, and if the ledger was not requested from a
    time less than a day before. Without it the value is missing. Between two gains a return is
    ``(value - flows) / value before - 1``. After missing fills, and after amounts that no row
    states, the value is missing until `accounts` states it again. States of unified and
    portfolio-margin accounts lack their spot wallet; snapshots contain its collateral, to
    which tokens in the rows are added if the account is unified. Balances worth less than a dollar
    keep their last price. Without funding the value lacks it.

    Examples
    --------
    >>> import pandas as pd
    >>> hour = pd.to_datetime([0, 1, 2, 3], unit="h", utc=True)
    >>> fills = pd.DataFrame({"coin": "BTC", "px": [100.0], "sz": [2.0], "side": ["B"],
    ...     "time": hour[1:2], "start_position": [0.0], "fee": [0.5]})
    >>> ledger = pd.DataFrame({"type": ["deposit"], "usdc": [1000.0], "time": hour[:1]})
    >>> marks = pd.DataFrame({"coin": "BTC", "time": hour[2:], "px": [110.0, 90.0]})
    >>> value(fills, ledger=ledger, marks=marks)[["value", "flows"]]
        value   flows
    0     0.0     0.0
    1  1000.0  1000.0
    2   999.5     0.0
    3  1019.5     0.0
    4   979.5     0.0
    """
    fills = prepare.fills(fills, account, prices, meta)
    check_chains(fills, _NEEDED, warns=False)
    has_users, users = fills.table.has("user"), [*fills.owners.names]
    if has_users:
        named = fills.table.text("user").present(blank=True)
        users = list(dict.fromkeys([*sorted(filter(None, named)), *users, *[""] * ("" in named)]))
    users = users or [""]
    paid = moves = None
    if funding is not None:
        paid = read_payments(fills, funding, CoveredPeriod(), named=len(users) > 1)
    if ledger is not None:
        owners = fills.owners if fills.account is None else None
        moves = own_ledger(Table(ledger, "ledger"), fills.account, owners, named=len(users) > 1)
    values, positions = accounts[:2] if isinstance(accounts, tuple) else (accounts, None)
    recorded = pd.DataFrame({"user": [], "whole": []})
    if values is not None:
        recorded = _read_values(values, positions)
    chosen, anchors = list[Part](), list[dict[int, tuple[float, bool]]]()
    for user in users:
        known = recorded[recorded["user"] == user] if user else recorded
        is_bare = len(known) > 0 and not known["whole"].any()
        chosen.append(part or ("perp account" if is_bare else "account"))
        begun = start.get(user) if isinstance(start, Mapping) else start
        anchors.append({} if begun is None else {NO_TIME: (float(begun), False)})
        fits = known[known["whole"] == (chosen[-1] == "account")].to_dict("records")
        anchors[-1] |= {row["ms"]: (row["value"], row["lacks_tokens"]) for row in fits}
    whole = np.array([each == "account" for each in chosen])
    # The token of each market; its own name if no fill states it.
    coins, in_base = fills.table.text("coin"), fills.money.in_base
    bases = {coin: coin.partition("/")[0] or coin for coin in coins.values}
    bases |= door.name_pairs(coins.take(in_base), fills.tokens.take(in_base))[1]
    events, assets = _read_events(fills, paid, moves, users, whole, bases)
    sources = [] if marks is None else [read_prices(marks)]
    if positions is not None:
        held = Table(positions, "positions")
        px = ratio(*(np.abs(held.number(name)) for name in ("position_value", "szi")))
        sources.append(make_history("positions", held.text("coin"), held.ms(), px))
    last = max((source.last_ms() for source in sources), default=0)
    sources += _own_marks(fills, paid, moves)
    curves = []
    groups = split_groups(events["owner"], len(users))
    for user, rows, known_at, counted in zip(users, groups, anchors, chosen, strict=True):
        own = {name: column[rows] for name, column in events.items()}
        curve = _value_account(fills, bases, own, assets, sources, known_at, last)
        curves.append(pd.DataFrame({"user": user, **curve, "part": counted}))
    made = pd.concat(curves, ignore_index=True)
    made = made.astype({"user": "str", "part": "str", "reason": "str"})
    made = made[["user"] * has_users + [*_COLUMNS]]
    inputs = {
        "fills": fills.table.frame, "funding": paid and paid.table.frame,
        "ledger": moves and moves.table.frame, "marks": marks, "accounts": values,
    }  # fmt: skip
    return provenance.finish(made, inputs, helper="pnl.value")


def _read_events(
    fills: Fills,
    paid: Payments | None,
    moves: Movements | None,
    users: list[str],
    whole: Flags,
    bases: Mapping[str, str],
) -> tuple[Events, list[str]]:
    """Return what happened to accounts: ledger rows, fills and payments; and the assets.

    - ``whole``: by account, whether it counts with its spot wallet
    - ``bases``: the token of each market
    """

    def owners(names: Names) -> Ints:
        """Return the account of each row, or -1; rows without a name are of the only account."""
        if users == [""]:
            return names.codes * 0
        only = users[0] if len(users) == 1 else ""
        return names.renamed(lambda name: name or only).among(Names(names.codes, users))

    numbers = {"": 0}

    def number(asset: str) -> int:
        return numbers.setdefault(asset, len(numbers))

    def price(token: str) -> float:
        return fills.prices.get(token.upper(), 1.0)

    def asset(coin: str) -> str:
        """Return the coin of a perp, the name of a token, or "" if it counts at par, as cash."""
        base = bases[coin]
        return coin if is_perp(coin) else "" if base in COLLATERAL else f"{base}/USDC"

    steps, money, coins = fills.steps, fills.money, Names(fills.steps.coin, fills.steps.coins)
    start, end = (units / steps.scale for units in (steps.start, steps.end))
    bought = np.where(fills.roles.swap[steps.rows], 0, np.sign(steps.change))
    usd = -bought * money.volume[steps.rows] - money.fee[steps.rows]
    in_usd = coins.facts(lambda coin: 0.0 if asset(coin) else price(bases[coin]))
    usd += (end - start) * steps.spot * in_usd
    owner = owners(Names(steps.user, steps.users))
    traded = {
        "owner": owner, "ms": steps.ms, "usd": usd, "start": start, "end": end,
        "asset": coins.facts(lambda coin: number(asset(coin))),
        "px": fills.table.number("px")[steps.rows],
    }  # fmt: skip
    kept = whole[owner] | ~steps.spot
    parts: list[Events] = [{name: column[kept] for name, column in traded.items()}]
    if paid is not None:
        rows, table = np.flatnonzero(paid.mine), paid.table
        usd, coins = paid.usd[rows], table.text("coin").take(rows)
        # Positions that no fill shows.
        size = np.where(chains_of(table, steps) < 0, table.number("szi", np.nan), np.nan)[rows]
        parts.append({
            "owner": owners(table.text("user", blank=True).take(rows)), "usd": filled(usd),
            "ms": table.known_ms()[rows], "start": size, "end": size,
            "asset": np.where(np.isnan(size), 0, coins.facts(number)), "why": np.isnan(usd) * 1,
        })  # fmt: skip
    if moves is not None:
        table, token, means = moves.table, moves.token, moves.means
        owner, ms = owners(moves.account), table.known_ms()
        is_whole, spot = whole[owner], moves.spot * whole[owner]
        lost = np.isnan(moves.perp + spot)
        perp, spot, kept, outside = map(filled, (moves.perp, spot, *read_kept(moves)))
        in_vault, is_cash = means == "vault", token.facts(COLLATERAL.__contains__)
        in_usd = token.facts(price) * is_cash
        usd = perp + spot * in_usd - moves.cash_fee * is_whole
        at_par = np.where(in_vault, 1.0, in_usd * is_whole)
        flow = np.where(means == "outside", usd, outside * at_par)
        flow += np.where(~is_whole & (means == "inside"), perp, 0.0)
        is_asset = is_whole & ~in_vault & ~is_cash
        asked = provenance.frame_provenance(table.frame).get("parameters", {})
        begin = asked.get("start") if isinstance(asked, Mapping) else None
        is_first = ms - begin >= DAY if isinstance(begin, int) and begin else True
        parts.append({
            "owner": owner, "ms": ms, "usd": usd, "kept": kept * at_par, "flow": flow,
            "asset": is_asset * token.facts(lambda name: number(f"{name}/USDC")), "move": spot,
            "stake": kept, "came": np.where(means == "outside", spot, outside),
            "why": lost * 2, "enters": is_first & ((flow > 0) | (is_asset & (spot > 0))),
        })  # fmt: skip
    events = {
        name: np.concatenate(
            [np.broadcast_to(part.get(name, default), part["ms"].shape) for part in parts[::-1]]
        )
        for name, default in _EVENT.items()
    }
    order = np.argsort(events["ms"], kind="stable")
    order = order[events["owner"][order] >= 0]
    return {name: column[order] for name, column in events.items()}, list(numbers)


def _follow_assets(events: Events, assets: Sequence[str]) -> tuple[list[tuple[Any, ...]], bool]:
    """Return the holdings of an account, and whether it had any before.

    A holding is its asset, the times of its events, the sizes in the account and elsewhere (before
    all events and after each one), and the tokens that came from outside. Fills and payments state
    the size. What came or left beside them and the ledger is from outside, or a fill is missing:
    then ``why`` becomes the number of the asset beyond `_REASONS`.
    """
    held, is_old = list[tuple[Any, ...]](), False
    groups = zip(assets, split_groups(events["asset"], len(assets)), strict=True)
    for asset, rows in sorted(groups, key=lambda group: "/" in group[0]):  # perps first
        if not asset or not len(rows):
            continue
        ms, start, end, px, move, stake, came = (
            events[name][rows] for name in ("ms", "start", "end", "px", "move", "stake", "came")
        )
        moved, stated, is_token = move.cumsum(), ~np.isnan(start), "/" in asset
        begun = np.append((start - moved)[stated], 0.0)[:1]
        base = np.append(begun, (end - moved)[stated])[np.append(0, stated.cumsum())]
        gap = np.where(stated, start - moved - base[:-1], 0.0)
        gap[np.abs(gap) < _NOTHING] = 0.0
        sizes = np.array([base + np.append(0.0, moved), np.append(0.0, stake.cumsum())])
        sizes[np.abs(sizes) < _NOTHING] = 0.0
        if is_token:
            came = came + gap
            is_old |= abs(begun[0]) * np.append(px[~np.isnan(px)], 1.0)[0] > _DUST
        else:
            events["why"][rows[gap != 0]] = len(_REASONS) + assets.index(asset)
            is_old |= begun[0] != 0
        held.append((asset, ms, *sizes, came))
    return held, is_old


def _value_account(
    fills: Fills,
    bases: Mapping[str, str],
    events: Events,
    assets: Sequence[str],
    sources: Sequence[PriceHistory],
    anchors: Mapping[int, tuple[float, bool]],
    last: int,
) -> dict[str, Any]:
    """Return the columns of one account.

    - ``events``: as `_read_events` returns them
    - ``anchors``: time -> a known value, and whether it lacks the tokens of the wallet
    - ``last``: the time of the last given price
    """
    held, is_old = _follow_assets(events, assets)
    ms, why = events["ms"], events["why"]
    dated = np.array([time for time in anchors if time != NO_TIME], dtype=np.int64)
    times = look = np.append(ms, dated)
    if len(times):
        is_open = any(size[-1] or stake[-1] for _, _, size, stake, _ in held)
        first, end = int(times.min()), max(int(times.max()), last * is_open)
        hours = np.arange(first // HOUR * HOUR + HOUR, end + 1, HOUR)
        times = np.append(first - 1, np.unique(np.append(times, hours)))
        look = np.append(first, times[1:])
    count, place = len(times), np.searchsorted(times, ms)
    total, away, came = (sum_groups(place, events[n], count) for n in ("usd", "kept", "flow"))
    total, away, tokens = total.cumsum(), away.cumsum(), np.zeros(count)
    unmarked, lacks = np.zeros(count, dtype=np.int64), np.full(count, "", dtype=object)
    is_flat = np.ones(count, dtype=bool)
    for asset, changed, sizes, stakes, arrivals in held:
        coins, price, token = [asset], fills.collateral_price(asset), asset.removesuffix("/USDC")
        is_token = token != asset
        if is_token and token.upper() in fills.prices:
            coins, price = [], fills.prices[token.upper()]
        elif is_token:
            coins, price = [*(coin for coin in bases if bases[coin] == token), asset], 1.0
        at = np.searchsorted(changed, times, side="right")
        size, stake = sizes[at], stakes[at]
        arrived = np.bincount(np.searchsorted(times, changed), arrivals, count)
        most, mark = np.maximum(np.abs(size), np.abs(stake)), np.ones(count)
        if coins:
            at = np.flatnonzero((most > 0) | (arrived != 0))
            mark[at] = _latest_marks(sources, coins, look[at], most[at] if is_token else None)
        for units, sums in ((size, total), (stake, away)):
            sums += np.where(units != 0, units * mark * price, 0.0)
            missing = (units != 0) & np.isnan(mark)
            unmarked += missing
            before = np.where(lacks[missing] == "", _SILENT, lacks[missing] + ", ")
            lacks[missing] = before + "".join(coins[:1])
        tokens += np.where(size != 0, size * mark * price, 0.0) * is_token
        came += np.where(arrived != 0, arrived * mark * price, 0.0)
        is_flat &= most == 0
    since, which = np.unique(ms[why > 0], return_index=True)
    part = np.searchsorted(since, times, side="right")
    stated = np.full(count, np.nan)
    for time, (known, lacks_tokens) in anchors.items():
        moment = slice(start := np.searchsorted(times, time), start + 1)
        stated[moment] = known + tokens[moment] * lacks_tokens
    is_empty = not is_old and events["enters"][:1].any()
    opening = _opening(stated, total, part, is_flat, is_empty=bool(is_empty))
    texts = [*_REASONS, *(f"fills of {asset} are missing" for asset in assets)]
    reasons = np.array(texts, dtype=object)[np.append(0, why[why > 0][which])]
    reasons[0] = _UNUSED if anchors else _UNKNOWN
    return {
        "time": door.utc_times(times),
        "value": total + away + opening,
        "flows": came,
        "kept": away,
        "unmarked": unmarked,
        "reason": np.where(unmarked > 0, lacks, np.where(np.isnan(opening), reasons[part], "")),
    }


def _opening(
    stated: Floats, total: Floats, part: Ints, is_flat: Flags, *, is_empty: bool
) -> Floats:
    """Return what the account had before its rows, at each time; NaN if it is not known.

    It follows from the last known value of the same part of the history, else from the next one.

    - ``is_empty``: whether nothing belonged to the account before its first row
    """

    def known() -> Floats:
        before = pd.Series(stated - total).groupby(part)
        return np.asarray(before.ffill().fillna(before.bfill()), np.float64)

    opening, limit = known(), _LACKING * np.abs(filled(total)).max(initial=0.0)
    is_unused = np.isnan(opening).all()  # also if what was open has no price then
    if is_empty and not np.abs(opening[0]) > limit:
        # What rows lack, such as funding, is missing from when a value is stated, not before.
        stated[0] = filled(stated[:1])[0]
        opening = known()
    # Nobody owes money without a position: the stated value lacks a part of the account.
    contradicts = (total + opening)[is_flat] < -max(limit, _DUST)
    if is_empty and (is_unused or contradicts.any()):
        opening = np.where(part == 0, 0.0, np.nan)
        contradicts = (total + opening)[is_flat] < -_DUST
    return opening * np.nan if contradicts.any() else opening


def _own_marks(fills: Fills, paid: Payments | None, moves: Movements | None) -> list[PriceHistory]:
    """Return the prices of fills, of funding payments and of ledger rows."""
    table, coins = fills.table, fills.table.text("coin")
    rows = np.flatnonzero(~is_off_book(table))
    px = table.number("px") * np.where(coins.facts(is_perp), 1.0, fills.money.price)
    ms, sz = table.ms()[rows], table.number("sz")[rows]
    found = [make_history("fills", coins.take(rows), ms, px[rows], sz)]
    if paid is not None and all(map(paid.table.has, ("szi", "funding_rate"))):
        table = paid.table
        usdc, owed = table.number("usdc"), -table.number("szi") * table.number("funding_rate")
        # A row that sums payments states their mean price, and none of one hour.
        is_exact = ~(table.number("n_samples", 1.0) > 1) & (np.abs(usdc) >= _EXACT)
        px = ratio(np.where(is_exact & (usdc * owed > 0), np.abs(usdc), np.nan), np.abs(owed))
        # The oracle price is that of the full hour; the row is some milliseconds later.
        found.append(make_history("funding", table.text("coin"), table.ms() // HOUR * HOUR, px))
    if moves is not None:
        px = ratio(*(moves.table.number(name, np.nan) for name in ("usdc_value", "amount")))
        names = moves.token.renamed("{}/USDC".format)
        found.append(make_history("ledger", names, moves.table.ms(), np.where(px >= 0, px, np.nan)))
    return found


def _latest_marks(
    sources: Sequence[PriceHistory], coins: Sequence[str], times: Ints, tokens: Floats | None
) -> Floats:
    """Return the latest price at some times, of any source and name; the first source in a tie.

    It is at most an hour old, or that of a balance that is worth little: `tokens` is its size.
    """
    best, age = np.full((2, len(times)), np.nan)
    for source in sources:
        for coin in coins:
            px, old = source.last_at(Names(np.zeros(len(times), np.int64), [coin]), times)
            newer = ~(old >= age) & ~np.isnan(old)
            best, age = np.where(newer, px, best), np.where(newer, old, age)
    is_dust = False if tokens is None else tokens * best < _DUST
    return np.where((age <= HOUR / SECOND) | is_dust, best, np.nan)


def _read_values(values: Frame, positions: Frame | None = None) -> pd.DataFrame:
    """Return recorded values, those of several dexes or tokens together.

    A state of a unified or portfolio-margin account does not have its spot wallet, so it does not
    count. A state without value or cash beside open positions is one of them.
    """
    is_state = "cross_account_value" in door.as_pandas(values, "accounts")
    table = Table(values, "accounts", "accounts" if is_state else "snapshot")
    asked = provenance.frame_provenance(table.frame).get("asked_at")
    is_dated = table.has("time") or not isinstance(asked, str)
    amounts = ("account_value", "account_mode", "pm_total_account_value", "total_ntl_pos")
    rows = table.columns(amounts[:1], amounts[1:], amounts).reindex(columns=[*amounts])
    rows = rows.set_axis(["value", "mode", "total", "notional"], axis="columns").assign(
        user=table.text("user", blank=True).texts().fillna(""),
        ms=table.known_ms() if is_dated else to_ms(str(asked)),
    )
    rows = rows.sort_values(["user", "ms"], kind="stable", ignore_index=True)
    begins = (rows["user"] != rows["user"].shift()) | (rows["ms"].diff() > _BATCH)
    batches = rows.groupby(begins.cumsum())
    how = {"user": "first", "ms": "max", "mode": "first", "total": "first", "notional": "sum"}
    made, value = batches.agg(how), batches["value"].sum(skipna=False)
    # Several dexes of one token repeat its value, so without the total a sum is not known.
    stated = made["total"].fillna(value.where(batches.size() == 1))
    value = value.mask(made["mode"] == PORTFOLIO_MARGIN, stated)
    whole = made["mode"] >= UNIFIED
    if is_state and positions is not None:
        hidden = spot_backed_users(table, Table(positions, "positions"))
        value = value.mask(made["user"].isin(hidden))
    lacks = value.isna() | (is_state & (whole | ((value <= 0) & (made["notional"] > 0))))
    made = made.assign(value=value, whole=whole, lacks_tokens=made["mode"] == UNIFIED)
    return made[~lacks]
