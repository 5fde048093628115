"""Half spreads paid and kept, and impact: against given prices, or from the tape itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from toolkit.analysis.common import grouping
from toolkit.analysis.common.bootstrap import DRAWS
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import warn_user
from toolkit.analysis.execution import fills as execution_fills
from toolkit.analysis.execution.fills import LIQUIDITY
from toolkit.analysis.execution.markout import (
    FIGURES,
    TAKEN,
    facts_of,
    figures_of,
    read_clusters,
    read_marks,
)
from toolkit.analysis.execution.marks import milliseconds
from toolkit.analysis.execution.tape import (
    PARTS,
    combine_parts,
    parts_of,
    price_changes,
    read_trades,
    with_trade_groups,
)

_SPLIT = ["effective", "realised", "impact"]
_COINS: Final = {
    "coin": "str", "trades": "int64", "changes": "int64", "turns": "int64",
    "sign_autocorrelation": "float64", "volume_usd": "float64",
    **dict.fromkeys(PARTS, "float64"),
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Spreads(Estimate):
    """Half spreads paid and kept, and what fills moved.

    Attributes
    ----------
    params : DataFrame
        The groups, ``name`` (``effective``, ``realised``, ``impact``), ``estimate`` in basis
        points with ``low`` and ``high``, ``usd``, ``n``, ``missing``, ``clusters``,
        ``age_seconds``.
    price_source, cluster : str
        The column that prices were taken from, or ``trades`` of the tape; what was drawn again,
        or ``none``.
    seconds : float
        Time after the fill at which it was looked at again; NaN on the tape, where the parts
        hold from one trade to the next.
    coins : DataFrame or None
        On the tape: for each coin ``trades``, ``changes`` (those with a trade shortly before),
        ``turns`` (changes of the aggressor's side), ``sign_autocorrelation``, ``volume_usd``,
        and ``half_spread``, ``transitory``, ``permanent`` in basis points.
    """

    price_source: str
    seconds: float
    cluster: str
    coins: pd.DataFrame | None = None

    picture: ClassVar[str] = "spreads"


def spreads(
    fills: Any,
    prices: Any = None,
    horizon: str | float = "5m",
    *,
    price: str | None = None,
    max_age: str | float = "60s",
    by: str | Iterable[str] | None = ("liquidity",),
    cluster: str = "day",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Spreads:
    """Split the half spread that fills paid into what was kept by the other side, and impact.

    Parameters
    ----------
    fills, prices, price, by, cluster, level, draws, seed
        As for `markout`; rows given twice count once. Without `prices` the fills are the whole
        tape, with ``crossed`` (`by` is there of ``liquidity``,
        ``coin``, ``dex``, ``hour``, ``day``, ``week``): those of all accounts, for one account's
        show no spread, and a warning says so. The tape's own prices are refused as
        `prices`: each is a bid or an ask.
    horizon : str or float, default "5m"
        Time after the fill; without meaning on the tape.
    max_age : str or float, default "60s"
        How old the prices may be, at the fill and at that time. A fill that lacks either is
        ``missing`` from all three figures, as is one without a price or size of its own. On the
        tape: how old the trade before may be.

    Returns
    -------
    Spreads
        Costs in basis points of the price before, positive where the account of the fill pays.
        With s = 1 for buys and -1 for sells, price before p, price after q:

        - ``effective``: s * (px - p), paid against the price before;
        - ``realised``: s * (px - q), what of it the other side kept;
        - ``impact``: s * (q - p), how far the price went on; effective = realised + impact.

        A maker's effective spread is negative: it earns it.

        On the tape, in the same frame, per trade at its best price: ``effective`` is the half
        spread, ``realised`` its transitory part (what the maker earns for the trade itself),
        ``impact`` its permanent part (by how much a trade moves both quotes). ``n`` are the
        trades with a trade shortly before, ``age_seconds`` how long before; ``usd`` is missing
        and ``clusters`` 0. Several coins: the mean of their figures, weighted by volume.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If a span of time or `level` makes no sense, the prices are those of trades, or the tape
        cannot be grouped like that.

    Notes
    -----
    With prices: half of the spreads of Huang and Stoll (1996), weighted by value. With `quotes`
    as prices the intervals take these as known; leave the prices out to have all of the error.

    On the tape: a regression of price changes on the signs of trades (Glosten and Harris, 1988,
    without their terms in size; Huang and Stoll, 1997). Intervals are those of Student's t with
    the variance of Newey and West (1987), corrected for small samples, and its own degrees of
    freedom (Bell and McCaffrey, 2002; Imbens and Kolesár, 2016); missing where so few trades
    change sides that nothing shows the error. Of drawn tapes with signs uncorrelated to 0.95
    correlated, of 300 and of 3,000 trades, intervals of 95 % hold the truth in 92 to 98 %.
    `crossed` and `side` name the aggressor, so that no sign is guessed. Because the sign before
    is in the regression, the figures hold however strongly signs follow each other; the last
    trade as a mid shows (1 - autocorrelation) of the half spread. What large orders pay beyond
    the best price is not in them.

    Examples
    --------
    The mid was 100; bought at 100.1; a minute later it is 100.04.

    >>> fills = pd.DataFrame({"coin": "XYZ", "px": [100.1], "sz": [2.0], "side": ["B"],
    ...     "crossed": [True], "time": pd.to_datetime([1000], unit="ms", utc=True)})
    >>> mids = pd.DataFrame({"coin": "XYZ", "mid_px": [100.0, 100.04],
    ...     "time": pd.to_datetime([0, 60_000], unit="ms", utc=True)})
    >>> spreads(fills, mids, "1m").params[["name", "estimate", "n"]].round(6)
            name  estimate  n
    0  effective      10.0  1
    1   realised       6.0  1
    2     impact       4.0  1

    A tape without any other price: takers buy at 100.01 and sell at 99.99, twice each in turn.

    >>> tape = pd.DataFrame({"coin": "XYZ", "side": list("BBAABBAA"), "crossed": True, "sz": 1.0,
    ...     "px": [100.01, 100.01, 99.99, 99.99] * 2,
    ...     "time": pd.to_datetime(range(0, 8000, 1000), unit="ms", utc=True)})
    >>> found = spreads(tape)
    >>> round(found["effective"], 6), round(found.coins["transitory"].item(), 6)
    (1.0, 1.0)
    """
    check_level(level)
    keys = grouping.list_keys(by, TAKEN)
    if prices is None:
        return _of_tape(fills, keys, max_age, level)
    rows = read_clusters(fills, keys, cluster)
    marks, age_ms = (
        read_marks(fills, prices, price, rows, max_age),
        milliseconds(max_age, "max_age"),
    )
    span = milliseconds(horizon, "the horizon")
    start, _ = execution_fills.before(rows, marks, age_ms)
    end, age = execution_fills.after(rows, marks, span, age_ms)
    px, sz, sign = (rows[name].to_numpy() for name in ("px", "sz", "_sign"))
    # A fill that lacks one of them is missing from every figure, or they would not add up.
    lacks = np.isnan(start + end + px + sz)
    start, end = (np.where(lacks, np.nan, one) for one in (start, end))
    table = rows.assign(
        effective=sign * (px - start) * sz,
        realised=sign * (px - end) * sz,
        impact=sign * (end - start) * sz,
        _base=start * sz,
        _age=age,
    )
    made = [
        (*key, name, *figures)
        for key, group in execution_fills.groups(table, keys)
        for name, figures in zip(_SPLIT, figures_of(group, _SPLIT, level, draws, seed), strict=True)
    ]
    types = {**execution_fills.key_types(rows, keys), "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *FIGURES]).astype({**types, **FIGURES})
    params.attrs["toolkit"] = facts_of("spreads", fills, prices, keys, marks.source)
    return Spreads(
        params=params,
        n=len(rows),
        level=level,
        method=f"cost over value traded; bootstrap by {cluster}; prices: {marks.source}",
        price_source=marks.source,
        seconds=span / 1000,
        cluster=cluster,
    )


def _of_tape(fills: Any, keys: list[str], max_age: str | float, level: float) -> Spreads:
    """Estimate the half spread and its parts from the trades themselves."""
    own = [key for key in keys if key != LIQUIDITY]
    trades = with_trade_groups(read_trades(fills), own)
    age_ms = milliseconds(max_age, "max_age")
    changes = price_changes(trades, age_ms)
    made = []
    for key, group in execution_fills.groups(trades, own):
        rows = changes.loc[changes.index.intersection(group.index)]
        coins = [
            (one["usd"].sum(), rows[rows["coin"] == coin]) for coin, one in group.groupby("coin")
        ]
        parts = combine_parts([parts_of(one) for _, one in coins], [usd for usd, _ in coins])
        counts = (len(rows), len(group) - len(rows), 0, float(rows["gap"].mean()))
        sides = [("taker", 1.0), ("maker", -1.0)] if LIQUIDITY in keys else [("", 1.0)]
        for side, sign in sides:
            if side and not group[side].any():
                continue
            words = dict(zip(own, key, strict=True)) | {LIQUIDITY: side}
            for name, value, ends in zip(_SPLIT, parts.values, parts.intervals(level), strict=True):
                figures = (sign * value, *sorted(sign * end for end in ends), np.nan)
                made.append((*(words[key] for key in keys), name, *figures, *counts))
    types = {**execution_fills.key_types(trades.assign(**{LIQUIDITY: ""}), keys), "name": "str"}
    params = pd.DataFrame(made, columns=[*types, *FIGURES]).astype({**types, **FIGURES})
    if keys:
        params = params.sort_values(keys, kind="stable", ignore_index=True)
    if len(trades) > 1 and params["estimate"].isna().all():
        warn_user(
            f"fills: these {len(trades):,} trades show no spread. Without prices= the fills must "
            "be the whole tape of the market, of all accounts, where buyers and sellers take "
            "turns; pass such a tape, or the fills of one account with prices=",
            UserWarning,
        )
    facts = {"helper": "execution.spreads", "by": keys, "price_source": "trades"}
    params.attrs["toolkit"] = {**result_provenance({"fills": fills}), **facts}
    return Spreads(
        params=params,
        n=len(trades),
        level=level,
        method="regression of price changes on the signs of trades (Glosten and Harris)",
        price_source="trades",
        seconds=float("nan"),
        cluster="none",
        coins=_coins(trades, changes),
    )


def _coins(trades: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    made = []
    for coin, own in trades.groupby("coin", sort=True):
        rows = changes[changes["coin"] == coin]
        both = (rows["sign"] * rows["before"]).mean()
        turns = int((rows["sign"] != rows["before"]).sum())
        values = parts_of(rows).values
        made.append((coin, len(own), len(rows), turns, both, own["usd"].sum(), *values))
    result = pd.DataFrame(made, columns=list(_COINS)).astype(_COINS)
    return result
