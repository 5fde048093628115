"""Liquidation cascades: forced trades move the price, which forces more trades."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.contract.market_names import code_among
from toolkit.display import count_text
from toolkit.errors import UnmeasuredAccounts, warn_caller
from toolkit.liquidations._margin_buffers import LeverageLimits, read_margins
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.groups import sum_groups
from toolkit.prepare.money import join_names
from toolkit.prepare.provenance import state_provenance
from toolkit.prepare.states import BACKSTOP_SHARE, name_some, open_positions
from toolkit.rules.margin import maintenance, tiered_adverse_move
from toolkit.slippage._fit import UNIT_USD, SlippageFit
from toolkit.statistics import Estimate, Sampling, bootstrap_interval, check_level
from toolkit.times import DAY

SHOCKS: Final = (-0.3, -0.2, -0.15, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
_LOWEST_PRICE: Final = 0.01
"""Impact leaves at least this share of a price."""
_TOTALS: Final = ("accounts", "forced_usd", "backstop_usd", "deficit_usd", "unpriced_usd")
_MOVES: Final = (
    "shock", "estimate", "low", "high", "amplification", "amplification_low", "amplification_high",
)  # fmt: skip
_PARAMS: Final = (*_MOVES, "rounds", *_TOTALS, "extrapolated_usd")
_SUMS: Final = {
    "shock": ("shock", "first"), "accounts": ("user", "size"), "positions": ("positions", "sum"),
    "forced_usd": ("notional", "sum"), "coin_usd": ("coin_usd", "first"),
    "backstop_usd": ("backstop_usd", "sum"), "deficit_usd": ("deficit_usd", "sum"),
    "unpriced_usd": ("unpriced_usd", "first"), "move": ("move", "first"),
}  # fmt: skip
"""What a round states -> the column of its liquidated accounts, and how it is summed."""
_ROUNDS: Final = ("shock", "round", *(name for name in [*_SUMS][1:] if name != "unpriced_usd"))
_LIQUIDATED: Final = (
    "shock", "round", "user", "dex", "margin", "coin", "notional", "equity", "maintenance",
    "method",
)  # fmt: skip
_DTYPES: Final = dict.fromkeys(("rounds", "accounts", "round", "positions"), "int64") | (
    dict.fromkeys(("user", "dex", "margin", "coin", "method"), "str")
)
"""Dtypes of the columns that are not float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cascade(Estimate):
    """What follows from price shocks when liquidations move prices.

    Attributes
    ----------
    params : DataFrame
        One row per shock:

        - ``shock``: first price change of the coin, as a share of the mark price
        - ``estimate``: price change after all rounds, as a share of the mark price
        - ``low``: lower end of the interval of the estimate, from the uncertainty of the impact
          alone; missing if the impact is known from one day only
        - ``high``: upper end of the interval of the estimate
        - ``amplification``: price change after all rounds over the shock
        - ``amplification_low``: lower end of the interval of the amplification
        - ``amplification_high``: upper end of the interval of the amplification
        - ``rounds``: number of rounds of liquidations
        - ``accounts``: number of liquidated accounts; an isolated position counts as one
        - ``forced_usd``: liquidated notional of all coins, in USD
        - ``backstop_usd``: part of the liquidated notional that the backstop takes over, in USD
        - ``deficit_usd``: loss beyond the equity of the liquidated accounts, in USD
        - ``unpriced_usd``: part of the liquidated notional in coins whose impact is not known, in
          USD; it moves no price
        - ``extrapolated_usd``: part of the forced trades beyond the largest size or depth that the
          impact was estimated from, in USD
    rounds : DataFrame
        One row per shock and round:

        - ``shock``: first price change of the coin, as a share of the mark price
        - ``round``: number of the round, from 1
        - ``accounts``: number of accounts that the round liquidates
        - ``positions``: number of positions that the round liquidates
        - ``forced_usd``: notional that the round liquidates, in USD
        - ``coin_usd``: value of the shocked coin that the round trades, in USD; negative is sold
        - ``backstop_usd``: part of the round's notional that the backstop takes over, in USD
        - ``deficit_usd``: loss beyond the equity of the round's accounts, in USD
        - ``move``: price change of the coin after the round, with the shock, as a share of the mark
          price
    liquidated : DataFrame
        One row per shock and liquidated account:

        - ``shock``: first price change of the coin, as a share of the mark price
        - ``round``: number of the round that liquidates the account, from 1
        - ``user``: address of the account
        - ``dex``: dex of the account
        - ``margin``: ``cross`` or ``isolated``
        - ``coin``: coin of an isolated position; missing for cross positions
        - ``notional``: notional of the positions at the liquidation, in USD
        - ``equity``: equity of the account at the liquidation, in USD
        - ``maintenance``: maintenance margin at the liquidation, in USD
        - ``method``: ``market`` or ``backstop``
    coin : str
        The shocked coin.
    unmeasured : int
        Number of accounts that are never liquidated here, because their collateral or the largest
        leverage of one of their coins is not known.
    unmeasured_usd : float
        Notional of the positions of these accounts, in USD.
    """

    rounds: pd.DataFrame
    liquidated: pd.DataFrame
    coin: str
    unmeasured: int
    unmeasured_usd: float


def cascade(
    positions: Frame,
    accounts: Frame,
    impact: Frame | SlippageFit,
    coin: str,
    shocks: Sequence[float] = SHOCKS,
    *,
    betas: float | Mapping[str, float] = 0.0,
    max_leverage: LeverageLimits | None = None,
    margin_tables: Frame | None = None,
    lasting: float = 1.0,
    backstop_trades: bool = True,
    level: float = 0.95,
    draws: int = 199,
    seed: int = 0,
) -> Cascade:
    """Compute how far liquidations move a price after a shock, round by round.

    A shock moves the price of one coin, and changes the value of all accounts. Accounts below their
    maintenance margin are liquidated with all cross positions. The forced trades move prices. The
    rounds repeat until no further account is below its maintenance margin.

    Parameters
    ----------
    positions, accounts : DataFrame
        As for `buffers`: open positions and accounts of one moment. Repeated rows count once.
    impact : DataFrame or SlippageFit
        How far forced trades move prices: `tk.current_depth`, one batch or many (repeated rows
        count once), or the result of `tk.slippage.fit`.
    coin : str
        Coin whose price is shocked.
    shocks : sequence of float
        First price changes, as shares of the mark price; -0.1 is a fall by a tenth.
    betas : float or mapping of coin to float, default 0
        Price change of the other coins for a change of 1 of the shocked coin.
    max_leverage, margin_tables
        As for `buffers`.
    lasting : float, default 1
        Share of the impact that stays in the mark price. If it is 0, liquidations move no price.
    backstop_trades : bool, default True
        Whether positions that the backstop takes over are traded in the book, too.
    level : float, default 0.95
        Level of the intervals.
    draws : int, default 199
        Number of bootstrap resamples of days; at most the number that the fit has.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    Cascade
        ``params`` has the price change after all rounds and the amplification of each shock.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If neither a position nor the impact has the coin, a shock is 0 or not above -1, `lasting`
        is negative, or as for `buffers`.

    Notes
    -----
    Rounds: the loss spiral of Brunnermeier and Pedersen (2009), as a fixed point over accounts as
    in Cont and Schaanning (2017). With signed values v at the mark prices, price changes m, equity
    E: an account is liquidated if ``E + sum(v * m) < sum(maintenance(abs(v) * (1 + m)))``, with the
    margin tiers of `toolkit.rules.margin`. The forced trades of a coin add up over the rounds to Q,
    and its price is ``mark * (1 + shock) * (1 + lasting * sign(Q) * a * (abs(Q) / 100,000)**k)``.
    So the price impact of 100,000 USD is ``a``, as a share of the price. ``a`` and ``k`` are fitted
    to the depth within each distance. For a `SlippageFit`, the impact is the marginal cost of the
    fitted curve, without the half spread: ``a * (1 + k)`` takes the place of ``a``.

    The result is no bound. Whole positions are liquidated in one trade, books do not refill, and
    nobody adds margin, which makes the cascade larger. Three things make it smaller. An account
    whose collateral or whose largest leverage of a coin is not known is never liquidated:
    ``unmeasured`` counts them, and a warning names them. A liquidated account closes at the price
    before its own trades, so ``deficit_usd`` lacks their cost. Trades beyond the sampled sizes or
    the stated depth follow the same formula, as ``extrapolated_usd`` states. An account that is
    below its maintenance margin before the shock is liquidated in round 1. The interval includes
    only the error of the estimated impact, not errors of the formula or of the positions.

    The computing time is proportional to the number of shocks, to `draws`, and to the number of
    positions that a shock brings near liquidation.

    Examples
    --------
    A fall by 10 % liquidates account a. Its forced sale of 90,000 USD costs 30 bps per 100,000 USD.
    This does not liquidate account b.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["a", "b"], "coin": "X", "szi": [1000.0, 1000.0],
    ...     "position_value": 1e5, "leverage_type": "cross", "margin_used": 0.0})
    >>> owners = pd.DataFrame({"user": ["a", "b"], "cross_account_value": [12e3, 25e3]})
    >>> depth = pd.DataFrame({"coin": "X", "bps": [15, 30], "bid_depth_usd": [5e4, 1e5],
    ...     "ask_depth_usd": [5e4, 1e5], "timestamp_ms": pd.Timestamp(0, unit="ms", tz="UTC")})
    >>> made = cascade(rows, owners, depth, "X", [-0.1], max_leverage={"X": 10})
    >>> made.params[["shock", "estimate", "amplification", "rounds", "forced_usd"]].round(5)
       shock  estimate  amplification  rounds  forced_usd
    0   -0.1  -0.10243         1.0243       1     90000.0
    """
    check_level(level)
    if lasting < 0:
        raise ValueError(f"lasting must be 0 or more, not {lasting!r}")
    if wrong := [shock for shock in shocks if not shock or shock <= -1]:
        raise ValueError(f"each shock must be above -1 and different from 0; one is {wrong[0]!r}")
    held = open_positions(positions, ("margin_used",), ("leverage_type",))
    table, tiers, margin = read_margins(held, accounts, max_leverage, margin_tables)
    unknown = table["room"].isna()
    if unknown.any():
        users = table["user"][unknown].unique()
        coins = sorted(held["coin"][held["own"].isna()].unique())
        reason = f", or the largest leverage of {name_some(coins)}" if coins else ""
        warn_caller(
            f"positions: {count_text(int(unknown.sum()), 'account')} of {len(unknown):,} "
            f"({name_some(users)}) cannot be measured and are never liquidated here. The value of "
            f"the account is not known{reason}. Pass all accounts, and max_leverage= of all coins",
            UnmeasuredAccounts,
        )
    coin = code_among(coin, set(held["coin"]))
    coins = [coin, *sorted({*held["coin"]} - {coin})]
    a, k, largest, blocks, source = _estimate_laws(impact, coins, draws, seed)
    if len(held) and coin not in set(held["coin"]) and np.isnan(a[0, 0]).all():
        names = held["coin"].value_counts().index
        raise ValueError(
            f"positions: no position is in {coin!r}. Choose one of {name_some(names, 8)}"
        )
    run = _prepare_rounds(table, held, tiers, coins, (lasting * a, k), backstop_trades)
    of_other = betas.get if isinstance(betas, Mapping) else lambda name, _: betas
    moves, gone = list[tuple[float, ...]](), list[pd.DataFrame]()
    for place, shock in enumerate(shocks):
        first = np.array([max(of_other(name, 0.0) * shock, -1.0) for name in coins])
        first[0] = shock
        (final, traded, hits), *drawn = (run(first, draw) for draw in range(len(a)))
        low, high = bootstrap_interval(np.array([move for move, *_ in drawn]), blocks, level)
        low, high = min(low, final), max(high, final)
        gone += [hit.assign(shock=shock, place=place) for hit in hits]
        ends = sorted((low / shock, high / shock))
        shown = largest[np.arange(len(coins)), (traded > 0).astype(np.int64)]
        beyond = np.nansum(np.maximum(np.abs(traded) - shown, 0.0))
        moves.append((shock, final, low, high, final / shock, *ends, beyond))

    def result(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
        types = {name: _DTYPES.get(name, "float64") for name in columns}
        return rows.reindex(columns=[*columns]).astype(types)

    none = pd.DataFrame(columns=["place", "round", *(name for name, _ in _SUMS.values())])
    hit = pd.concat(gone, ignore_index=True) if gone else none
    by_round = hit.groupby(["place", "round"]).agg(**_SUMS).reset_index()
    by_shock = by_round.groupby("place")
    totals = by_shock[[*_TOTALS]].sum().assign(rounds=by_shock.size())
    every = pd.DataFrame(moves, columns=[*_MOVES, "extrapolated_usd"])
    params = result(every.join(totals.reindex(every.index, fill_value=0)), _PARAMS)
    rounds, liquidated = result(by_round, _ROUNDS), result(hit, _LIQUIDATED)
    inputs: dict[str, Any] = {"positions": positions, "accounts": accounts}
    inputs |= {} if isinstance(impact, SlippageFit) else {"impact": impact}
    state_provenance(
        (params, rounds, liquidated), inputs,
        helper="liquidations.cascade", coin=coin, margin=margin, impact=source,
    )  # fmt: skip
    return Cascade(
        params=params, n=len(table), level=level, rounds=rounds,
        liquidated=liquidated, coin=coin, unmeasured=int(unknown.sum()),
        unmeasured_usd=float(table["notional"][unknown].sum()),
        method=f"rounds of liquidations; {margin}; impact: {source}",
    )  # fmt: skip


def _prepare_rounds(
    table: pd.DataFrame,
    held: pd.DataFrame,
    tiers: tuple[Floats, Floats],
    coins: list[str],
    laws: tuple[Floats, Floats],
    backstop_trades: bool,
) -> Callable[[Floats, int], tuple[float, Floats, list[pd.DataFrame]]]:
    """Return the function of the rounds after a shock of the first of the coins.

    Accounts without a distance are never liquidated. `table`, `held` and `tiers` are of
    `read_margins`, `laws` of `_estimate_laws`.
    """
    distance = tiered_adverse_move(table["room"], held["account"], held["value"], *tiers)
    rank = np.argsort(distance, kind="stable")
    distance, table = distance[rank], table.iloc[rank]
    distance, equities = distance[~np.isnan(distance)], table["room"].to_numpy()
    own = np.argsort(rank)[held["account"]]
    order = np.argsort(own, kind="stable")
    owners, values = own[order], held["value"].to_numpy()[order]
    starts = np.searchsorted(owners, np.arange(len(rank) + 1))
    coin_codes = pd.Index(coins).get_indexer(pd.Index(held["coin"]))[order].astype(np.int64)
    (most, low), (a, k) = (each[order] for each in tiers), laws

    def run(shock: Floats, draw: int) -> tuple[float, Floats, list[pd.DataFrame]]:
        """Return the final move, the trades, and the accounts of each round; of a draw none."""
        gone, place = np.zeros(len(equities), bool), np.arange(len(shock))
        traded, move, hits = np.zeros(len(shock)), shock, list[pd.DataFrame]()
        while np.isfinite(move[0]):
            # Nobody is liquidated while no price has moved by more than the account's distance.
            near = int(np.searchsorted(distance, np.abs(move).max(), side="right"))
            last = int(starts[near])
            owner, coin, value = owners[:last], coin_codes[:last], values[:last]
            moved = value * (1 + move[coin])
            equity = equities[:near] + sum_groups(owner, moved - value, near)
            required = sum_groups(owner, maintenance(np.abs(moved), most[:last], low[:last]), near)
            is_hit = (equity < required) & ~gone[:near]
            if not is_hit.any():
                break
            gone[:near] |= is_hit
            is_backstop = equity < BACKSTOP_SHARE * required
            trades = is_hit & (backstop_trades | ~is_backstop)
            flow = -sum_groups(coin, np.where(trades[owner], moved, 0.0), len(shock))
            traded = traded + flow
            law = draw, place, (traded > 0).astype(np.int64)
            with np.errstate(over="ignore"):
                size = a[law] * (np.abs(traded) / UNIT_USD) ** k[law]
            pushed = np.where(traded == 0, 0.0, np.sign(traded) * size)
            unknown = np.isnan(pushed) & (place > 0)
            pushed = np.where(unknown, 0.0, pushed)
            move = shock + (1 + shock) * np.maximum(pushed, _LOWEST_PRICE - 1)
            if draw:
                continue
            notional = sum_groups(owner, np.abs(moved), near)
            hit = table.iloc[:near].assign(
                round=len(hits) + 1,
                notional=notional,
                equity=equity,
                maintenance=required,
                method=np.where(is_backstop, "backstop", "market"),
                backstop_usd=np.where(is_backstop, notional, 0.0),
                deficit_usd=np.maximum(-equity, 0.0),
                coin_usd=flow[0] + 0.0,
                unpriced_usd=np.abs(moved)[is_hit[owner] & unknown[coin]].sum(),
                move=move[0],
            )
            hits.append(hit[is_hit])
        return float(move[0]), traded, hits

    return run


_SIDES: Final = ("sell", "buy")
_DEPTHS: Final = ("bid_depth_usd", "ask_depth_usd")


def _estimate_laws(
    impact: Frame | SlippageFit, coins: list[str], draws: int, seed: int
) -> tuple[Floats, Floats, Floats, int, str]:
    """Return the laws ``move = a * (Q / 100,000 USD)**k`` of sells and buys, from depth or a fit.

    The marginal price of a fitted cost ``a * Q**k`` is ``a * (1 + k) * Q**k``: the derivative of
    the amount ``Q * cost`` that an order pays.

    - `a` and `k`, as shares: (1 + draws, coins, 2), the estimate first; NaN if not known
    - the largest trade that the data shows, in USD: (coins, 2)
    - number of days (or blocks of days) that were resampled
    - the source of the data, in words
    """
    if isinstance(impact, SlippageFit):
        count = min([draws, *(len(values) - 1 for _, values in impact.draws.values())])
        a, k = np.full((2, 1 + count, len(coins), 2), np.nan)
        largest, blocks = a[0].copy(), 0
        sampled = impact.groups.set_index(["coin", "side"])["largest_usd"]
        for (coin, side), (clusters, values) in impact.draws.items():
            if coin in coins:
                at, blocks = (coins.index(coin), _SIDES.index(side)), clusters
                _, scale, power, _ = values[: 1 + count].T
                a[:, *at], k[:, *at] = scale * (1 + power) / 1e4, power
                largest[at] = sampled[coin, side]
        return (a, k, largest, blocks, f"fitted slippage of {impact.n:,} samples")
    table = Table(impact, "impact", "depth")
    table.require(("coin", "timestamp_ms", "bps", *_DEPTHS))
    names = join_names(table.text("dex", blank=True), table.text("coin"))
    distance, ms = table.number("bps"), table.ms("timestamp_ms")
    days, codes = np.unique(ms // DAY, return_inverse=True)
    # Without resamples of several days there is no interval.
    how = Sampling(0.5, draws if len(days) > 1 else 0, seed)
    place = names.facts(lambda name: coins.index(name) if name in coins else -1)
    usd = np.stack([table.number(column) for column in _DEPTHS], axis=1)
    rows, sides = np.nonzero((usd > 0) & ((place >= 0) & (distance > 0))[:, None])
    group, size, shape = 2 * place[rows] + sides, usd[rows, sides], (len(coins), len(_SIDES))
    largest = np.full(2 * len(coins), np.nan)
    np.fmax.at(largest, group, size)
    # A regression of logarithms, from the sums of each day, coin and side.
    x, y = np.log(size / UNIT_USD), np.log(distance[rows] / 1e4)
    cell, cells = codes[rows] * len(largest) + group, len(days) * len(largest)
    parts = [np.bincount(cell, part, cells) for part in (np.ones(len(x)), x, y, x * x, x * y)]
    added = np.stack(parts, axis=1).astype(np.float64)
    sums = how.sums(added.reshape(len(days), 5 * len(largest)))
    n, sx, sy, sxx, sxy = np.moveaxis(sums.reshape(-1, *shape, 5), -1, 0)
    spread = n * sxx - sx**2
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 1e-9 * n * sxx, (n * sxy - sx * sy) / spread, np.nan)
        k = np.maximum(slope, 0.0)  # the impact of a larger trade is never smaller
        a = np.exp((sy - k * sx) / n)
    return a, k, largest.reshape(shape), len(days), f"depth of {len(np.unique(ms)):,} batches"
