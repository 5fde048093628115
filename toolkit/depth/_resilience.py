"""Resilience of order books: how fast depth returns after a shock."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.arrays import Floats
from toolkit.depth._depth import SIDES
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.provenance import state_provenance
from toolkit.statistics import DRAWS, Estimate, Sampling, bootstrap_interval, grid_peaks
from toolkit.times import SECOND

_GRID = 241
_LEAST_SAMPLES = 6  # samples of a recovery: more than its three parameters
_GAP = 5  # a longer time between batches, in usual times between batches, is a gap
_SHOCKS = {
    "dex": "str", "coin": "str", "side": "str", "time": "datetime64[ms, UTC]",
    "before_usd": "float64", "taken": "float64", "samples": "int64", "returned": "float64",
}  # fmt: skip
_QUANTILES = np.array([0.1, 0.5, 0.9])
_PATH = {"seconds": "float64", "n": "int64", "q10": "float64", "q50": "float64", "q90": "float64"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Resilience(Estimate):
    """How fast depth returns after a shock.

    Attributes
    ----------
    params : DataFrame
        One row per figure:

        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate

        The figures:

        - ``half_life``: time until half of the depth that returns has returned, in seconds: a
          shock of which nothing returns does not change it
        - ``taken``: share of the depth that a shock took, mean of the shocks
    shocks : DataFrame
        One row for each side and shock:

        - ``dex``: dex of the market
        - ``coin``: coin of the market
        - ``side``: ``ask`` (what a buyer meets) or ``bid``
        - ``time``: time of the first batch after the shock, UTC
        - ``before_usd``: depth before the shock, in USD
        - ``taken``: share of the depth before the shock that the shock took
        - ``samples``: number of batches in the recovery
        - ``returned``: share of the lost depth that has returned at the last batch of the recovery
    path : DataFrame
        One row for each time after a shock:

        - ``seconds``: time since the shock
        - ``n``: number of batches at about that time, over all shocks
        - ``qN``: share of the lost depth that has returned, N % quantile over the shocks; below 0
          if the depth fell further
    bps : int
        Width of the band.
    """

    shocks: pd.DataFrame
    path: pd.DataFrame
    bps: int


def resilience(
    depth: Frame,
    bps: int = 10,
    *,
    drop: float = 0.3,
    window: float = 600.0,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Resilience:
    """Estimate the half-life of the depth that a shock took from the books.

    A shock is a fall of the depth by at least `drop` from one batch to the next. A fall over a gap,
    longer than five times the usual time between batches, is none. The time after a shock is
    fitted by ``depth(t) = full - lost * 2**(-t / half_life)``. Each side and shock has its own
    `full` and `lost`, and all share the half-life. The fit minimises the squared error of the
    depth divided by the depth before the shock.

    Parameters
    ----------
    depth : DataFrame
        Batches of `tk.current_depth`, from an archive or a poll, of the markets to be measured
        together. The time between batches should be much shorter than the half-life. Repeated rows
        count once.
    bps : int, default 10
        Width of the band.
    drop : float, default 0.3
        Between 0 and 1, well above the usual change of the depth.
    window : float, default 600
        Seconds to look at after a shock, unless the next shock or a gap comes first.
    level : float, default 0.95
        Level of the intervals.
    draws, seed : int
        Number of resamples of shocks, and their seed.

    Returns
    -------
    Resilience
        ``n`` is the number of shocks (a shock to both sides of a market is one). Intervals come
        from resampled shocks and are missing for fewer than two. For fewer than ten shocks the
        interval is at least as wide as Student's; draws cannot lie outside the observed values.
        Estimates are missing without a shock. The half-life is also missing if it would be below a
        fifth of the time between batches or above ten times the window. If no depth returns after a
        shock, this shock still counts in ``taken`` and in ``path``.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `drop` or `level` is not between 0 and 1, or `window` is not positive.

    Notes
    -----
    Interval: percentile bootstrap by shock, expanded as by Hesterberg (2015).

    Examples
    --------
    A book of 1000 USD loses 800 and regains half of the missing depth every 30 seconds:

    >>> import pandas as pd
    >>> import numpy as np
    >>> seconds = np.arange(-20, 200, 10)
    >>> usd = np.where(seconds < 0, 1000.0, 1000 - 800 * 2.0 ** (-seconds / 30))
    >>> batches = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": 10,
    ...     "timestamp_ms": pd.to_datetime(1000 * (seconds + 20), unit="ms", utc=True),
    ...     "bid_depth_usd": usd, "ask_depth_usd": 5e5})
    >>> round(resilience(batches)["half_life"], 1)
    30.0
    """
    how = Sampling(level, draws, seed)
    if not 0 < drop < 1:
        raise ValueError(f"drop must be between 0 and 1, not {drop!r}")
    if not window > 0:
        raise ValueError(f"window must be a positive number of seconds, not {window!r}")
    table = Table(depth, "depth")
    needed = ("timestamp_ms", "dex", "coin", "bps", *SIDES.values())
    rows = table.columns(needed, amounts=[*SIDES.values()]).assign(ms=table.ms("timestamp_ms"))
    shocks, curves = _find_recoveries(rows[rows["bps"] == bps], drop, window)
    # Falls within a second are one shock.
    second = (shocks["time"].array.asi8 / SECOND).round()
    clusters = np.asarray(shocks.groupby(["dex", "coin", second], sort=False).ngroup(), np.int64)
    *taken, count = how.ratio(shocks["taken"].to_numpy(), np.ones(len(shocks)), clusters)
    life, path = (np.nan,) * 3, pd.DataFrame(columns=list(_PATH))
    if curves:
        step = float(np.median(np.concatenate([np.diff(seconds) for seconds, _ in curves])))
        lives = np.geomspace(step / 5, 10 * window, _GRID)
        squares = np.zeros((count, _GRID))
        np.add.at(squares, clusters, [_squared_errors(*curve, lives) for curve in curves])
        place, shift = grid_peaks(-how.sums(squares))
        best = lives[place] * (lives[1] / lives[0]) ** shift
        best[(place == 0) | (place == _GRID - 1)] = np.nan
        if not np.isnan(best[0]):
            life = (best[0], *bootstrap_interval(best[1:], count, level, positive=True))
            # A bin is a tenth of the half-life, or the time between batches if that is longer.
            back = [(share - share[0]) / (1 - share[0]) for _, share in curves]
            seconds = np.concatenate([seconds for seconds, _ in curves])
            rows = pd.DataFrame({"seconds": seconds, "back": np.concatenate(back)})
            rows = rows[rows["seconds"] <= 8 * life[0]]
            by_bin = rows.groupby(rows["seconds"] // max(life[0] / 10, step))
            path = by_bin.agg(seconds=("seconds", "mean"), n=("back", "size"))
            path[list(_PATH)[2:]] = by_bin["back"].quantile(_QUANTILES).unstack().to_numpy()
    names = ["name", "estimate", "low", "high"]
    params = pd.DataFrame([("half_life", *life), ("taken", *taken)], columns=names)
    path = path.reset_index(drop=True).astype(_PATH)
    facts = {"helper": "depth.resilience", "bps": bps}
    state_provenance((params, shocks, path), {"depth": table.frame}, **facts)
    method = "exponential recovery by least squares; bootstrap by shock"
    return Resilience(
        params=params, n=count, level=level, method=method, shocks=shocks, path=path, bps=bps
    )


Curve = tuple[Floats, Floats]


def _find_recoveries(
    rows: pd.DataFrame, drop: float, window: float
) -> tuple[pd.DataFrame, list[Curve]]:
    """Return the shocks, and the depth of their side after each."""
    shocks, curves = [], []
    for (dex, coin), market in rows.groupby(["dex", "coin"], sort=True):
        for side, name in SIDES.items():
            series = market[["ms", name]].dropna().sort_values(["ms", name], kind="stable")
            series = series.drop_duplicates("ms")
            ms, usd = series["ms"].to_numpy(), series[name].to_numpy()
            steps = np.diff(ms)
            is_gap = steps > _GAP * np.median(steps) if len(steps) else np.zeros(0, dtype=bool)
            falls = np.flatnonzero((usd[1:] < (1 - drop) * usd[:-1]) & ~is_gap) + 1
            ends = np.sort(np.append(np.flatnonzero(is_gap) + 1, [*falls, len(ms)]))
            ends = ends[np.searchsorted(ends, falls, side="right")]
            late = np.searchsorted(ms, ms[falls] + SECOND * window, side="right")
            for first, last in zip(falls, np.minimum(ends, late), strict=True):
                if last - first < _LEAST_SAMPLES:
                    continue
                at, before, share = ms[first], usd[first - 1], usd[first:last] / usd[first - 1]
                back = (share[-1] - share[0]) / (1 - share[0])
                shock = (dex, coin, side, utc_times([at])[0], before)
                shocks.append((*shock, 1 - share[0], len(share), back))
                curves.append(((ms[first:last] - at) / SECOND, share))
    return pd.DataFrame(shocks, columns=list(_SHOCKS)).astype(_SHOCKS), curves


def _squared_errors(seconds: Floats, share: Floats, lives: Floats) -> Floats:
    """Return the squared error of the share of depth for each half-life."""
    left = np.exp2(-seconds[:, None] / lives)
    left, share = left - left.mean(axis=0), share - share.mean()
    spread, together = (left**2).sum(axis=0), share @ left
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(spread > 1e-12 * len(share), together**2 / spread, 0.0)
    return np.asarray(np.maximum((share**2).sum() - explained, 0.0))
