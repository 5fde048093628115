"""The basis of perps against their oracle, how fast it reverts, and funding across dexes."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from toolkit.arrays import Floats, Ints
from toolkit.contract.dexes import coin_dex
from toolkit.errors import MissingColumns
from toolkit.funding._rates import HOURS_A_YEAR
from toolkit.prepare.door import NATIVE_DEX, Frame, Table, utc_times
from toolkit.prepare.money import join_names
from toolkit.prepare.provenance import frame_provenance, state_provenance
from toolkit.statistics import DRAWS, Estimate, Sampling, student
from toolkit.times import HOUR, to_ms

ALL: Final = "all"
_FEWEST: Final = 10  # pairs of hours that a half-life is estimated from
_FIGURES: Final = {
    "coin": "str", "name": "str", "estimate": "float64", "low": "float64", "high": "float64",
    "n": "int64", "missing": "int64",
}  # fmt: skip
_RATES: Final = {
    "asset": "str", "dex": "str", "estimate": "float64", "low": "float64", "high": "float64",
    "open_interest_usd": "float64", "share": "float64", "n": "int64", "days": "int64",
}  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class PerpBasis(Estimate):
    """The basis of perps, its half-life, and funding weighted by open interest.

    Attributes
    ----------
    params : DataFrame
        Three rows per coin:

        - ``coin``: coin of the perp
        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate
        - ``n``: number of hours with a basis
        - ``missing``: number of hours without a basis, from the first to the last

        The figures:

        - ``mean_bps``: mean basis; positive if the mark price is above the oracle price
        - ``persistence``: share of a deviation that is left after an hour
        - ``half_life_hours``: time in which half of a deviation disappears: 0 if nothing is left
          after an hour, infinite if a deviation does not shrink
    rates : DataFrame
        Funding by asset and dex, ``all`` for all of them:

        - ``asset``: coin without its dex
        - ``dex``: dex of the perp
        - ``estimate``: annualised rate as a share of the notional, weighted by open interest;
          positive if longs pay
        - ``low``: lower end of the interval of the rate
        - ``high``: upper end of the interval of the rate
        - ``open_interest_usd``: mean open interest in the hours of each coin, in USD, summed over
          coins
        - ``share``: share of the open interest of all
        - ``n``: number of hours, counted for each coin
        - ``days``: number of days with rates, UTC
    hours : DataFrame
        One row per coin and hour:

        - ``coin``: coin of the perp
        - ``time``: start of the hour, UTC
        - ``basis_bps``: basis; positive if the mark price is above the oracle price
        - ``rate``: funding rate of the hour, positive if longs pay
        - ``open_interest_usd``: open interest at the oracle price, in USD
    """

    rates: pd.DataFrame
    hours: pd.DataFrame


def basis(contexts: Frame, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> PerpBasis:
    """Estimate the basis of perps, its half-life, and funding across dexes.

    Parameters
    ----------
    contexts : DataFrame
        `tk.meta_and_asset_ctxs` at many times, from an archive or a poll: ``name, mark_px,
        oracle_px, funding, open_interest, time`` (and ``dex``). The last row of a coin and hour
        counts, so repeated rows change nothing. Fetched frames have no ``time``: a single snapshot
        counts at the time of its fetch; add the column to each of several snapshots before you
        concatenate them.
    level, draws, seed
        Level of the intervals; number of resamples of days; their seed.

    Returns
    -------
    PerpBasis
        ``params`` has the mean basis and the half-life of each coin, ``rates`` the funding.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text. ``time`` is needed unless the frame is one snapshot
        and its provenance has the time of the fetch.
    ValueError
        If `level` is not between 0 and 1.

    Notes
    -----
    ``basis = 10,000 * (mark / oracle - 1)``. The half-life is ``log(1/2) / log(p)`` of a
    first-order autoregression over neighbouring hours with persistence p: least squares, plus the
    bias correction ``(1 + 3 p) / n`` of Kendall (1954), with standard errors of White (1980) and
    Student's distribution. It needs ten pairs of hours. Mean and funding are bootstrapped by day.
    Funding: sum of rate times open interest over sum of open interest, in USD at the oracle price,
    times 24 * 365. An hour without a row counts nowhere; it is not 0.

    Examples
    --------
    >>> import pandas as pd
    >>> bps = pd.Series([9.0, 5.0, 3.0, 2.0] * 6)
    >>> rows = pd.DataFrame({"name": "XYZ", "mark_px": 100 * (1 + bps / 1e4), "oracle_px": 100.0,
    ...     "funding": 1e-5, "open_interest": 50.0,
    ...     "time": pd.date_range("2025-09-01", periods=24, freq="h", tz="UTC")})
    >>> found = basis(rows)
    >>> round(found["mean_bps"], 2)
    4.75
    >>> found.rates[["asset", "dex", "estimate", "open_interest_usd"]]
      asset          dex  estimate  open_interest_usd
    0   XYZ  hyperliquid    0.0876             5000.0
    1   all  hyperliquid    0.0876             5000.0
    2   all          all    0.0876             5000.0
    """
    how = Sampling(level, draws, seed)
    hours = _read_hours(contexts)
    figures: list[tuple[Any, ...]] = []
    for coin, own in hours.groupby("coin", sort=True):
        known = own[own["basis_bps"].notna()]
        hour, value = (known[name].to_numpy() for name in ("hour", "basis_bps"))
        span = int(own["hour"].max() - own["hour"].min()) + 1
        counts = (len(value), span - len(value))
        mean = how.ratio(value, np.ones(len(value)), hour // 24)[:3]
        persistence = _persistence(hour, value, level)
        for name, figure in (
            ("mean_bps", mean),
            ("persistence", persistence),
            ("half_life_hours", map(_half_life, persistence)),
        ):
            figures.append((coin, name, *figure, *counts))
    rates = _weigh_rates(hours, how)
    params = pd.DataFrame(figures, columns=list(_FIGURES)).astype(_FIGURES)
    table = hours[["coin", "time", "basis_bps", "rate", "open_interest_usd"]]
    state_provenance((params, rates, table), {"contexts": contexts}, helper="funding.basis")
    return PerpBasis(
        params=params, n=int(table["basis_bps"].notna().sum()), level=level, rates=rates,
        hours=table, method="first-order autoregression by the hour; bootstrap by day",
    )  # fmt: skip


def _read_hours(contexts: Frame) -> pd.DataFrame:
    """Return the last row of each coin and hour, with basis and open interest in USD."""
    table = Table(contexts, "contexts")
    table.require(("name", "mark_px", "oracle_px", "funding", "open_interest"))
    coins = join_names(table.text("dex", blank=True), table.text("name"))
    rank = np.argsort(np.argsort(coins.values))[coins.codes]
    if table.has("time"):
        ms = table.ms()
    else:
        lack = "contexts: the column time is missing, and "
        fetched_at = frame_provenance(contexts).get("asked_at")
        if fetched_at is None:
            raise MissingColumns(
                f"{lack}the time of the fetch is not known. Add it: contexts.assign(time=...)"
            )
        if len(np.unique(rank)) < len(rank):
            raise MissingColumns(
                f"{lack}there are several snapshots of a coin. Add the column to each snapshot "
                "before you concatenate them: snapshot.assign(time=...)"
            )
        ms = np.full(len(rank), to_ms(fetched_at))
    amounts = [table.number(n) for n in ("open_interest", "funding", "oracle_px", "mark_px")]
    # Several rows of one millisecond: the result does not depend on their order.
    order = np.lexsort((*amounts, ms, rank))
    rank, hour = rank[order], ms[order] // HOUR
    is_last = (np.diff(rank, append=-1) != 0) | (np.diff(hour, append=0) != 0)
    last, hour = order[is_last], hour[is_last]
    interest, rate, oracle, mark = (amount[last] for amount in amounts)
    oracle = np.where(oracle > 0, oracle, np.nan)
    return pd.DataFrame(
        {
            "coin": coins.texts(last),
            "hour": hour,
            "time": utc_times(hour * HOUR),
            "basis_bps": 1e4 * (mark / oracle - 1),
            "rate": rate,
            "open_interest_usd": interest * oracle,
        }
    )


def _persistence(hour: Ints, value: Floats, level: float) -> tuple[float, float, float]:
    """Return the persistence of an hour with its interval; NaN with too few pairs of hours."""
    is_pair = np.diff(hour) == 1
    before, after = value[:-1][is_pair], value[1:][is_pair]
    n = len(before)
    if n < _FEWEST or not before.std() > 0:
        return (float("nan"),) * 3
    centred = before - before.mean()
    squares = float(centred @ centred)
    slope = float(centred @ after) / squares
    rest = after - after.mean() - slope * centred
    error = float(np.sqrt((centred**2 * rest**2).sum() * n / (n - 2))) / squares
    corrected = slope + (1 + 3 * slope) / n
    half = float(student(level, n - 2)) * error
    return corrected, corrected - half, corrected + half


def _half_life(persistence: float) -> float:
    if not 0 < persistence < 1:
        return persistence if np.isnan(persistence) else 0.0 if persistence <= 0 else float("inf")
    return float(np.log(0.5) / np.log(persistence))


def _weigh_rates(hours: pd.DataFrame, how: Sampling) -> pd.DataFrame:
    """Return funding by asset and dex, weighted by open interest."""
    rows = hours[hours["rate"].notna() & (hours["open_interest_usd"] > 0)]
    kinds = {c: (c.rpartition(":")[2], coin_dex(c) or NATIVE_DEX) for c in rows["coin"].unique()}
    assets = [asset for asset, _ in set(kinds.values())]
    # An hour without a row counts nowhere, so each coin has the mean of its own hours.
    interest, made = rows.groupby("coin")["open_interest_usd"].mean(), []
    usd, rate, hour = (rows[n].to_numpy() for n in ("open_interest_usd", "rate", "hour"))
    for each_asset, each_dex in ((True, True), (True, False), (False, True), (False, False)):
        labels = {
            coin: (asset if each_asset else ALL, dex if each_dex else ALL)
            for coin, (asset, dex) in kinds.items()
            if each_dex or not each_asset or assets.count(asset) > 1
        }
        for label in sorted(set(labels.values())):
            coins = [coin for coin in labels if labels[coin] == label]
            own = rows["coin"].isin(coins).to_numpy()
            mean, low, high, days = how.ratio((rate * usd)[own], usd[own], hour[own] // 24)
            figures = (mean * HOURS_A_YEAR, low * HOURS_A_YEAR, high * HOURS_A_YEAR)
            open_usd = float(interest[coins].sum())
            counts = (open_usd / float(interest.sum()), int(own.sum()), days)
            made.append((*label, *figures, open_usd, *counts))
    return pd.DataFrame(made, columns=list(_RATES)).astype(_RATES)
