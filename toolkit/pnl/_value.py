"""The value of accounts over time, from cash, holdings and marks.

An account is worth ``K + cash + sum(size * mark)``: what it paid and received, and what it holds at
the last price. K is what it had before the rows begin. It follows from any moment at which the
value is known.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.arrays import Floats, Ints
from toolkit.prepare import Fills
from toolkit.prepare.door import Frame, Names, Table, as_pandas, filled, name_pairs, utc_times
from toolkit.prepare.fills import check_chains
from toolkit.prepare.funding import chains_of, payment_spans
from toolkit.prepare.groups import split_groups
from toolkit.prepare.ledger import COLLATERAL, own_ledger, read_kept
from toolkit.prepare.money import Prices, is_perp
from toolkit.prepare.prices import PriceHistory, make_history, read_prices
from toolkit.prepare.provenance import finish, frame_provenance, is_owned
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
_FOREVER: Final = 1 << 42
_UNKNOWN: Final = "the value at the beginning is not known. Pass accounts= or start="
_SILENT: Final = "no price within an hour: "
_UNUSED: Final = (
    "no known value is of use: it lacks a part of the account, or what was open then has no price. "
    "Pass marks="
)
_BATCH: Final = 10 * SECOND  # the states of all dexes in one answer
_NEEDED: Final = (*(name for name in POSITION_COLUMNS if name != "closed_pnl"), "fee")


Changes = tuple[Ints, Floats]
"""Times and amounts."""

_NO_CHANGES: Final[Changes] = (np.zeros(0, dtype=np.int64), np.zeros(0))


class _Holding(NamedTuple):
    """A position, or a balance of a token, of one account.

    - ``coins``: the names under which its price is known
    - ``before``: the size before the rows begin
    - ``ms``, ``size``: the times at which it changes, ascending, and the size from then on
    - ``price``: USD for one unit of the token in which prices are quoted; the price of a token that
      has no names
    - ``came``: what of it came from outside
    - ``is_kept``: whether it is staked or lent, outside of what recorded values contain
    """

    coins: Sequence[str]
    before: float
    ms: Ints
    size: Floats
    price: float = 1.0
    came: Changes = _NO_CHANGES
    is_kept: bool = False

    def at(self, times: Ints) -> Floats:
        """Return the size at some times."""
        place = np.searchsorted(self.ms, times, side="right")
        return np.append(self.before, self.size)[place]


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
        payment, usdc / (-szi * rate * n), and the fills that met on a book. The latest one counts,
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
        If a column or an amount of the fills is missing.
    ValueError
        If the fills are of several accounts and no column names the account.

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
    history = _History(fills, funding, ledger, account)
    values, positions = accounts[:2] if isinstance(accounts, tuple) else (accounts, None)
    recorded = None if values is None else _read_values(values, positions)
    sources = [] if marks is None else [read_prices(marks)]
    if positions is not None:
        held = Table(positions, "positions")
        px = _divide(held.number("position_value"), held.number("szi"))
        sources.append(make_history("positions", held.text("coin"), held.ms(), np.abs(px)))
    last = max((source.last_ms() for source in sources), default=0)
    sources += history.marks()
    has_users, users = fills.table.has("user"), [*fills.owners.names]
    if has_users:
        named = fills.table.text("user").present(blank=True)
        users = list(dict.fromkeys([*sorted(filter(None, named)), *users, *[""] * ("" in named)]))
    curves = []
    for user in users or [""]:
        begun = start.get(user) if isinstance(start, Mapping) else start
        anchors: dict[int | None, float] = {} if begun is None else {None: float(begun)}
        chosen, bare = part, list[int]()
        if recorded is not None:
            known = recorded[recorded["user"] == user] if user else recorded
            if len(known) and not known["whole"].any():
                chosen = chosen or "perp account"
            fits = known[known["whole"] == (chosen != "perp account")]
            anchors |= dict(zip(fits["ms"].tolist(), fits["value"].tolist(), strict=True))
            bare = known.loc[known["lacks_tokens"], "ms"].tolist()
        chosen = chosen or "account"
        rows = _Rows(history, user, whole=chosen == "account")
        curve = _value_rows(rows, sources, anchors, bare, last)
        curves.append(pd.DataFrame({"user": user, **curve, "part": chosen}))
    made = pd.concat(curves, ignore_index=True)
    order = ["time", "value", "flows", "kept", "unmarked", "part", "reason"]
    made = made.astype({"user": "str", "part": "str", "reason": "str"})
    made = made[["user", *order] if has_users else order]
    inputs = {
        "fills": fills.table.frame, "funding": history.paid and history.paid.frame,
        "ledger": history.moved and history.moved.frame, "marks": marks, "accounts": values,
    }  # fmt: skip
    return finish(made, inputs, helper="pnl.value")


class _History:
    """The rows of all accounts.

    - ``cash``, ``start``, ``end``: by step the cash in USD, and the sizes around it
    - ``bases``: the token of each spot or outcome market; its own name if no fill states it
    - ``payments``, ``owners``: the funding rows and the ledger rows of each account
    """

    def __init__(
        self, fills: Fills, funding: Frame | None, ledger: Frame | None, account: str | None
    ) -> None:
        self.fills = fills
        steps, money, coins = fills.steps, fills.money, fills.table.text("coin")
        bought = np.where(fills.roles.swap[steps.rows], 0, np.sign(steps.change))
        self.cash = -bought * money.volume[steps.rows] - money.fee[steps.rows]
        self.start, self.end = (units / steps.scale for units in (steps.start, steps.end))
        self.bases = {coin: coin.partition("/")[0] or coin for coin in coins.present(blank=True)}
        self.bases |= name_pairs(coins.take(money.in_base), fills.tokens.take(money.in_base))[1]
        self.paid = None if funding is None else Table(funding, "funding")
        self.payments: dict[str, Ints] = {}
        if self.paid is not None and self.paid.has("user") and fills.table.has("user"):
            self.payments = _rows_by_name(self.paid.text("user"))
        elif self.paid is not None:
            mine = np.flatnonzero(is_owned(self.paid, "user", fills.owners))
            self.payments = dict.fromkeys([*steps.users, *fills.owners.names, ""], mine)
        self.moved = None
        if ledger is not None:
            self.moves = own_ledger(Table(ledger, "ledger"), account)
            self.moved, self.owners = self.moves.table, _rows_by_name(self.moves.account)
            self.kept, self.outside = read_kept(self.moves)

    def marks(self) -> list[PriceHistory]:
        """Return the prices of fills, of funding payments and of ledger rows."""
        fills, paid = self.fills, self.paid
        table, coins = fills.table, fills.table.text("coin")
        rows = np.flatnonzero(~is_off_book(table))
        px = table.number("px") * np.where(coins.facts(is_perp), 1.0, fills.money.price)
        ms, sz = table.ms()[rows], table.number("sz")[rows]
        found = [make_history("fills", coins.take(rows), ms, px[rows], sz)]
        if paid is not None and all(map(paid.has, ("szi", "funding_rate"))):
            usdc, size = paid.number("usdc"), paid.number("szi")
            count = np.fmax(paid.number("n_samples", 1.0), 1.0)
            px = _divide(-usdc, size * paid.number("funding_rate") * count)
            is_exact = (np.abs(usdc) >= _EXACT * count) & (px > 0)
            # A row that sums payments states a price if the fills show one position for all.
            hours, chain = payment_spans(paid), chains_of(paid, fills.steps)
            for row in np.flatnonzero(is_exact & (hours > 1)).tolist():
                at = fills.steps.chain == chain[row]
                times, end = fills.steps.ms[at], paid.ms()[row]
                place = np.searchsorted(times, end) - 1
                is_still = place >= 0 and times[place] < end - hours[row] * HOUR
                is_exact[row] = is_still and np.isclose(self.end[at][place], size[row])
            # The oracle price is that of the full hour; the row is some milliseconds later.
            hour = paid.ms() // HOUR * HOUR
            px = np.where(is_exact, px, np.nan)
            found.append(make_history("funding", paid.text("coin"), hour, px))
        if self.moved is not None:
            px = _divide(*(self.moved.number(n, np.nan) for n in ("usdc_value", "amount")))
            names = self.moves.token.renamed("{}/USDC".format)
            px = np.where(px >= 0, px, np.nan)
            found.append(make_history("ledger", names, self.moved.ms(), px))
        return found


class _Rows:
    """What happened to one account, or to its perps alone.

    - ``cash``, ``kept``, ``flows``: USD that was paid and received, that is in vaults or lent, and
      that came from outside
    - ``held``: its positions and balances
    - ``breaks``: time -> why the sum of all rows is not known from then on
    - ``is_empty``: whether nothing belonged to the account before its first row
    """

    def __init__(self, history: _History, user: str, *, whole: bool) -> None:
        self.history, self.steps, self.prices = history, history.fills.steps, history.fills.prices
        self.cash, self.held, self.breaks = list[Changes](), list[_Holding](), dict[int, str]()
        self.kept = self.flows = _NO_CHANGES
        steps, usd, opened, bases = self.steps, history.cash, 0.0, history.bases
        own = np.arange(len(steps))
        if history.fills.table.has("user"):
            code = steps.users.index(user) if user in steps.users else -1
            own = own[slice(*np.searchsorted(steps.user, [code, code + 1]))]
        own = own[whole | ~steps.spot[own]]
        if COLLATERAL & {*bases.values()}:
            usd = usd.copy()
        balances: dict[str, list[Ints]] = {}
        heads, tails = (own[end[own]].tolist() for end in (steps.first, steps.last))
        for head, tail in zip(heads, tails, strict=True):
            coin, each = steps.coins[steps.coin[head]], np.arange(head, tail + 1)
            before, base = float(history.start[head]), bases[coin]
            if not steps.spot[head]:
                price = history.fills.collateral_price(coin)
                perp = _Holding([coin], before, steps.ms[each], history.end[each], price)
                self.held.append(perp)
                gaps = steps.ms[each[steps.is_gap[each]]].tolist()
                self.breaks |= dict.fromkeys(gaps, f"fills of {coin} are missing")
                opened += abs(before)
            elif base in COLLATERAL:  # at par, as cash
                change = np.diff(history.end[each], prepend=before)
                usd[each] += change * self.prices.get(base.upper(), 1.0)
            else:
                balances.setdefault(base, []).append(each)
        self.cash.append((steps.ms[own], usd[own]))
        begins = [int(steps.ms[own].min())] if len(own) else []
        if history.paid is not None and len(mine := history.payments.get(user, own[:0])):
            begins += [int(history.paid.known_ms()[mine].min())]
            opened += self._add_funding(history.paid, mine)
        entered, tokens = None, dict[str, list[Changes]]()
        if history.moved is not None:
            entered = self._add_ledger(history.moved, tokens, user, whole)
        for token in dict.fromkeys([*balances, *tokens]):
            place = np.concatenate([own[:0], *balances.get(token, [])])
            place = place[np.argsort(steps.ms[place], kind="stable")]
            opened += self._add_balance(token, place, tokens.get(token))
        self.is_empty = entered is not None and not opened and entered <= min([*begins, entered])

    def _add_funding(self, paid: Table, mine: Ints) -> float:
        """Add payments, and positions that no fill shows; return the size of the latter."""
        coins, ms, opened = paid.text("coin").take(mine), paid.known_ms()[mine], 0.0
        usdc = self.history.fills.in_usd(paid.number("usdc")[mine], coins)
        self.cash.append((ms, filled(usdc)))
        lost = ms[np.isnan(usdc)].tolist()
        self.breaks |= dict.fromkeys(lost, "a funding payment has no amount")
        shown = {holding.coins[0] for holding in self.held}
        for code in np.unique(coins.codes).tolist() if paid.has("szi") else []:
            coin, rows = coins.values[code], np.flatnonzero(coins.codes == code)
            rows = rows[np.argsort(ms[rows], kind="stable")]
            size = paid.number("szi")[mine][rows]
            if coin not in shown and not np.isnan(size[0]):
                price = self.history.fills.collateral_price(coin)
                self.held.append(_Holding([coin], float(size[0]), ms[rows], size, price))
                opened += abs(float(size[0]))
                moves = ms[rows[1:]][np.diff(size) != 0].tolist()
                self.breaks |= dict.fromkeys(moves, f"fills of {coin} are missing")
        return opened

    def _add_ledger(
        self, table: Table, tokens: dict[str, list[Changes]], user: str, whole: bool
    ) -> int | None:
        """Add cash and flows of ledger rows.

        - ``tokens``: gets for each token the movements of the wallet, of what is kept elsewhere,
          and from outside

        Returns the time of the first row, if it brings money in and may be the first one of all.
        """
        mine = np.arange(len(table))
        if user and any(self.history.owners):
            mine = self.history.owners.get(user, mine[:0])
        mine = mine[np.argsort(table.known_ms()[mine], kind="stable")]
        moves, ms = self.history.moves, table.ms()[mine]
        token, means, perp = moves.token.take(mine), moves.means[mine], moves.perp[mine]
        spot = moves.spot[mine] * whole
        lost = ms[np.isnan(perp + spot)].tolist()
        self.breaks |= dict.fromkeys(lost, "a ledger row has no known amount")
        amounts = (perp, spot, self.history.kept[mine], self.history.outside[mine])
        perp, spot, kept, outside = map(filled, amounts)
        in_vault, is_cash = means == "vault", token.facts(COLLATERAL.__contains__)
        par = token.facts(lambda name: self.prices.get(name.upper(), 1.0)) * is_cash
        as_usd = np.where(in_vault, 1.0, par * whole)
        usd = perp + spot * par - moves.cash_fee[mine] * whole
        self.cash.append((ms, usd))
        self.kept = (ms, kept * as_usd)
        came = np.where(means == "outside", usd, outside * as_usd)
        self.flows = (ms, came if whole else came + np.where(means == "inside", perp, 0.0))
        from_outside = np.where(means == "outside", spot, outside)
        sizes = (spot, *np.where(in_vault, 0.0, [kept, from_outside]))
        for code in np.unique(token.codes[~is_cash & (spot != 0)]).tolist():
            rows = token.codes == code
            tokens[token.values[code]] = [(ms[rows], size[rows]) for size in sizes]
        if not len(ms) or not (self.flows[1][0] > 0 or (spot[0] > 0 and not is_cash[0])):
            return None
        asked = frame_provenance(table.frame).get("parameters", {})
        begin = asked.get("start") if isinstance(asked, Mapping) else None
        is_first = not isinstance(begin, int) or not begin or ms[0] - begin >= DAY
        return int(ms[0]) if is_first else None

    def _add_balance(self, token: str, place: Ints, moves: list[Changes] | None) -> float:
        """Add the balance of a token; return what it was worth before the rows, in USD.

        - ``place``: the steps of its fills, in the order of time
        - ``moves``: as `_add_ledger` gives them

        Fills state the balance. What came or left beside fills and ledger is from outside.
        """
        wallet, kept, came = moves or [_NO_CHANGES] * 3
        ms, start, end = self.steps.ms[place], self.history.start[place], self.history.end[place]
        times = np.unique(np.append(ms, wallet[0]))
        before, gap, moved = np.zeros(1), np.zeros(len(ms)), _sum_until(wallet, ms)
        if len(ms):
            before = start[:1] - moved[:1]
            gap[1:] = start[1:] - end[:-1] - np.diff(moved)
            gap[np.abs(gap) < _NOTHING] = 0.0
        base = np.append(before, end - moved)
        size = base[np.searchsorted(ms, times, side="right")] + _sum_until(wallet, times)
        size[np.abs(size) < _NOTHING] = 0.0
        price, first = self.prices.get(token.upper()), float(before[0])
        names = [coin for coin, base in self.history.bases.items() if base == token]
        fixed = ([], price) if price is not None else ([*names, f"{token}/USDC"], 1.0)
        came = _join([(ms[gap != 0], gap[gap != 0]), came])
        self.held.append(_Holding(fixed[0], first, times, size, fixed[1], came))
        if kept[1].any():
            away = np.unique(kept[0])
            sizes = _sum_until(kept, away)
            self.held.append(_Holding(fixed[0], 0.0, away, sizes, fixed[1], is_kept=True))
        px = self.history.fills.table.number("px")[self.steps.rows[place[:1]]]
        worth = abs(first) * (px[0] if len(px) else 1.0)
        return worth if worth > _DUST else 0.0


def _rows_by_name(names: Names) -> dict[str, Ints]:
    return dict(zip(names.values, split_groups(names.codes, len(names.values)), strict=True))


def _read_values(values: Frame, positions: Frame | None = None) -> pd.DataFrame:
    """Return recorded values, those of several dexes or tokens together.

    A state of a unified or portfolio-margin account does not have its spot wallet, so it does not
    count. A state without value or cash beside open positions is one of them.
    """
    is_state = "cross_account_value" in as_pandas(values, "accounts")
    table = Table(values, "accounts", "accounts" if is_state else "snapshot")
    asked = frame_provenance(table.frame).get("asked_at")
    is_dated = table.has("time") or not isinstance(asked, str)
    rows = pd.DataFrame(
        {
            "user": table.text("user", blank=True).texts().fillna(""),
            "ms": table.known_ms() if is_dated else to_ms(str(asked)),
            "mode": table.number("account_mode", np.nan),
            "value": table.number("account_value"),
            "total": table.number("pm_total_account_value", np.nan),
            "notional": table.number("total_ntl_pos", 0.0),
        }
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


def _divide(above: Floats, below: Floats) -> Floats:
    """Return a quotient; NaN if the divisor is 0."""
    quotient = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, where=below != 0, out=quotient))


def _join(changes: Sequence[Changes]) -> Changes:
    """Return several changes as one."""
    ms, amounts = zip(_NO_CHANGES, *changes, strict=True)
    return np.concatenate(ms), np.concatenate(amounts)


def _sum_until(changes: Changes, times: Ints) -> Floats:
    """Return the sum of the changes up to and including some times."""
    order = np.argsort(changes[0], kind="stable")
    place = np.searchsorted(changes[0][order], times, side="right")
    return np.asarray(np.append(0.0, np.cumsum(changes[1][order]))[place])


def _latest_marks(
    sources: Sequence[PriceHistory], coins: Sequence[str], times: Ints, most: int
) -> Floats:
    """Return the latest price at some times, of any source and name; the first source in a tie."""
    best, age = np.full((2, len(times)), np.nan)
    for source in sources:
        for coin in coins:
            px, old = source.last_at(Names(np.zeros(len(times), np.int64), [coin]), times, most)
            newer = ~(old >= age) & ~np.isnan(old)
            best, age = np.where(newer, px, best), np.where(newer, old, age)
    return best


def _value_rows(
    rows: _Rows,
    sources: Sequence[PriceHistory],
    anchors: Mapping[int | None, float],
    bare: Sequence[int],
    last: int,
) -> dict[str, object]:
    """Return the columns of one account.

    - ``anchors``: known values by time; None is the time before the first row
    - ``bare``: the times of those without the wallet's tokens
    - ``last``: the time of the last given price
    """
    cash = _join(rows.cash)
    dated = np.array([ms for ms in (*anchors, *rows.breaks) if ms is not None], np.int64)
    events = np.concatenate([cash[0], *(holding.ms for holding in rows.held), dated])
    if not len(events):
        empty = np.zeros(0)
        return {
            "time": utc_times(empty), **dict.fromkeys(("value", "flows", "kept"), empty),
            "unmarked": empty.astype(np.int64), "reason": empty.astype(str),
        }  # fmt: skip
    is_open = any(holding.at(events.max(keepdims=True))[0] for holding in rows.held)
    first, end = int(events.min()), max(int(events.max()), last * is_open)
    times = np.unique(np.append(events, np.arange(first // HOUR * HOUR + HOUR, end + 1, HOUR)))
    times, look = np.append(first - 1, times), np.append(first, times)
    total, away, came = _sum_until(cash, times), _sum_until(rows.kept, times), np.zeros(len(times))
    np.add.at(came, np.searchsorted(times, rows.flows[0]), rows.flows[1])
    unmarked, tokens = np.zeros(len(times), dtype=np.int64), np.zeros(len(times))
    lacks, is_flat = np.full(len(times), "", dtype=object), np.ones(len(times), dtype=bool)
    for holding in rows.held:
        size, arrived = holding.at(times), np.zeros(len(times))
        np.add.at(arrived, np.searchsorted(times, holding.came[0]), holding.came[1])
        at = np.flatnonzero((size != 0) | (arrived != 0))
        mark, is_token = np.ones(len(at)), not holding.coins or "/" in holding.coins[-1]
        if holding.coins:
            mark = _latest_marks(sources, holding.coins, look[at], HOUR)
            if is_token:
                old = _latest_marks(sources, holding.coins, look[at], _FOREVER)
                mark = np.where(np.isnan(mark) & (np.abs(size[at] * old) < _DUST), old, mark)
        worth, held = mark * holding.price, size[at] != 0
        usd = np.where(held, size[at] * worth, 0.0)
        (away if holding.is_kept else total)[at] += usd
        tokens[at] += usd * (is_token and not holding.is_kept)
        came[at] += np.where(arrived[at] != 0, arrived[at] * worth, 0.0)
        is_flat[at[held]] = False
        missing = at[held & np.isnan(mark)]
        unmarked[missing] += 1
        before = np.where(lacks[missing] == "", _SILENT, lacks[missing] + ", ")
        lacks[missing] = before + "".join(holding.coins[:1])
    since = np.array(sorted(rows.breaks), dtype=np.int64)
    part = np.searchsorted(since, times, side="right")
    stated = np.full(len(times), np.nan)
    places = [0 if ms is None else int(np.searchsorted(times, ms)) for ms in anchors]
    stated[places] = [*anchors.values()] + tokens[places] * [ms in bare for ms in anchors]
    opening, limit = _opening(stated, total, part), _LACKING * np.abs(filled(total)).max()
    is_unused = np.isnan(opening).all()  # also if what was open has no price then
    if rows.is_empty and not np.abs(opening[0]) > limit:
        # What rows lack, such as funding, is missing from when a value is stated, not before.
        stated[0] = filled(stated[:1])[0]
        opening = _opening(stated, total, part)
    # Nobody owes money without a position: the stated value lacks a part of the account.
    contradicts = (total + opening)[is_flat] < -max(limit, _DUST)
    if rows.is_empty and (is_unused or contradicts.any()):
        opening = np.where(part == 0, 0.0, np.nan)
        contradicts = (total + opening)[is_flat] < -_DUST
    if contradicts.any():
        opening = opening * np.nan
    why = np.array(
        [_UNUSED if anchors else _UNKNOWN, *map(rows.breaks.get, since.tolist())], object
    )
    return {
        "time": utc_times(times),
        "value": total + away + opening,
        "flows": came,
        "kept": away,
        "unmarked": unmarked,
        "reason": np.where(unmarked > 0, lacks, np.where(np.isnan(opening), why[part], "")),
    }


def _opening(stated: Floats, total: Floats, part: Ints) -> Floats:
    """Return what the account had before its rows, at each time.

    It follows from the last known value of the same part of the history, else from the next one.
    """
    before = pd.Series(stated - total).groupby(part)
    return np.asarray(before.ffill().fillna(before.bfill()), np.float64)
