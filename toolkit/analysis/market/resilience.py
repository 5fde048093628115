"""Resilience of order books: how fast depth returns after a shock."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, timestamps
from toolkit.analysis.common.bootstrap import (
    DRAWS,
    bootstrap_interval,
    bootstrap_ratio,
    resample_sums,
)
from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.arrays import Floats, Ints

_SIDES = {"ask": "ask_depth_usd", "bid": "bid_depth_usd"}
_GRID = 241
_LEAST_SAMPLES = 6  # samples of a recovery: more than its three parameters
_SHOCKS = {
    "dex": "str", "coin": "str", "side": "str", "time": "datetime64[ms, UTC]",
    "before_usd": "float64", "taken": "float64", "samples": "int64",
}  # fmt: skip
_PATH = {
    "seconds": "float64", "n": "int64", "q10": "float64", "q50": "float64", "q90": "float64",
}  # fmt: skip


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

        - ``half_life``: time until half of the lost depth has returned, in seconds
        - ``taken``: share of the depth that a shock took, mean of the shocks
    shocks : DataFrame
        One row for each side and shock:

        - ``dex``: dex of the market
        - ``coin``: coin of the market
        - ``side``: ``ask`` (what a buyer meets) or ``bid``
        - ``time``: time of the first batch after the shock, UTC
        - ``before_usd``: depth before the shock, in USD
        - ``taken``: share of the depth that the shock took
        - ``samples``: number of batches in the recovery
    path : DataFrame
        One row for each time after a shock:

        - ``seconds``: time since the shock
        - ``n``: number of batches at about that time, over all shocks
        - ``qN``: share of the lost depth that has returned, N % quantile over the shocks
    bps : int
        Width of the band.
    """

    shocks: pd.DataFrame
    path: pd.DataFrame
    bps: int

    picture: ClassVar[str] = "resilience"


@dataclass(frozen=True)
class _Recovery:
    dex: str
    coin: str
    side: str
    ms: float
    before: float
    seconds: Floats  # since the first batch after the shock
    depth: Floats


def resilience(
    depth: IntoFrame,
    bps: int = 10,
    *,
    drop: float = 0.3,
    window: float = 600.0,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Resilience:
    """Estimate the half-life of the depth that a shock took from the books.

    A shock is a fall of the depth by at least `drop` from one batch to the next. The time after it
    is fitted by ``depth(t) = full - lost * 2**(-t / half_life)``. Each side and shock has its own
    `full` and `lost`, and all share the half-life. The fit minimises the squared error of the
    depth divided by the depth before the shock.

    Parameters
    ----------
    depth : DataFrame
        Batches of `tk.current_depth`, from an archive or a poll, of the markets to be measured
        together (pandas, Polars, DuckDB, PySpark). The time between batches should be much shorter
        than the half-life. Repeated rows count once.
    bps : int, default 10
        Width of the band.
    drop : float, default 0.3
        Between 0 and 1, well above the usual change of the depth.
    window : float, default 600
        Seconds to look at after a shock, unless the next shock comes first.
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
        Estimates are missing without a shock, and if the half-life would be below a fifth of the
        time between batches or above ten times the window.

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
    depth = drop_repeated_rows(depth, "depth")
    check_level(level)
    if not 0 < drop < 1:
        raise ValueError(f"drop must be between 0 and 1, not {drop!r}")
    if not window > 0:
        raise ValueError(f"window must be a positive number of seconds, not {window!r}")
    needed = ("timestamp_ms", "dex", "coin", "bps", *_SIDES.values())
    rows = frame_access.pandas_columns(depth, "depth", needed, amounts=tuple(_SIDES.values()))
    found = _find_recoveries(rows[rows["bps"] == bps], drop, window)
    params, losses = _estimate_half_life(found, level, draws, seed, window)
    facts = {**result_provenance({"depth": depth}), "helper": "depth.resilience", "bps": bps}
    shocks, path = _shock_rows(found, losses), _recovery_path(found, losses, params["half_life"][0])
    table = pd.DataFrame(
        [(name, *values) for name, values in params.items()],
        columns=["name", "estimate", "low", "high"],
    ).astype({"name": "str", "estimate": "float64", "low": "float64", "high": "float64"})
    for frame in (table, shocks, path):
        frame.attrs["toolkit"] = facts
    return Resilience(
        params=table,
        n=len(np.unique(_shock_numbers(found))),
        level=level,
        method="exponential recovery by least squares; bootstrap by shock",
        shocks=shocks,
        path=path,
        bps=bps,
    )


def _find_recoveries(rows: pd.DataFrame, drop: float, window: float) -> list[_Recovery]:
    recoveries = []
    rows = rows.assign(ms=timestamps.ms_from_times(rows["timestamp_ms"]))
    for (dex, coin), market in rows.groupby(["dex", "coin"], sort=True):
        for side, name in _SIDES.items():
            series = market[["ms", name]].dropna().sort_values(["ms", name], kind="stable")
            series = series.drop_duplicates("ms")
            ms, usd = series["ms"].to_numpy(), series[name].to_numpy(dtype="float64")
            for first, last in _after_shocks(ms, usd, drop, window):
                seconds = (ms[first:last] - ms[first]) / 1000
                before = float(usd[first - 1])
                shock = (str(dex), str(coin), side, float(ms[first]), before)
                recoveries.append(_Recovery(*shock, seconds, usd[first:last]))
    return recoveries


def _after_shocks(ms: Floats, usd: Floats, drop: float, window: float) -> list[tuple[int, int]]:
    """Return the first row after each shock, and the row after the last one of its recovery."""
    falls = np.flatnonzero(usd[1:] < (1 - drop) * usd[:-1]) + 1
    ends = np.append(falls[1:], len(usd))
    late = np.searchsorted(ms, ms[falls] + 1000 * window, side="right")
    pairs = zip(falls.tolist(), np.minimum(ends, late).tolist(), strict=True)
    return [(first, last) for first, last in pairs if last - first >= _LEAST_SAMPLES]


def _estimate_half_life(
    recoveries: list[_Recovery], level: float, draws: int, seed: int, window: float
) -> tuple[dict[str, tuple[float, float, float]], Floats]:
    """Return half-life and share taken with their intervals, and the share of each recovery."""
    unknown = (float("nan"),) * 3
    if not recoveries:
        return {"half_life": unknown, "taken": unknown}, np.array([])
    step = float(np.median(np.concatenate([np.diff(recovery.seconds) for recovery in recoveries])))
    lives = np.geomspace(step / 5, 10 * window, _GRID)
    losses = [_squared_errors(recovery, lives) for recovery in recoveries]
    clusters = _shock_numbers(recoveries)
    count = int(clusters.max()) + 1
    squares = np.zeros((count, _GRID))
    np.add.at(squares, clusters, np.array([loss for loss, _ in losses]))
    drawn = np.vstack([squares.sum(axis=0), resample_sums(squares, draws, seed)])
    best = _grid_minima(drawn, np.log(lives))
    taken = np.array([shares[int(np.argmin(drawn[0]))] for _, shares in losses])
    mean, means, _ = bootstrap_ratio(taken, np.ones(len(taken)), clusters, draws=draws, seed=seed)
    means = np.concatenate([[mean], means])
    params = {
        name: (
            float(values[0]),
            *bootstrap_interval(values[1:], count, level, positive=name == "half_life"),
        )
        for name, values in (("half_life", best), ("taken", means))
    }
    if params["half_life"][0] != params["half_life"][0]:
        return {"half_life": unknown, "taken": unknown}, np.full(len(recoveries), np.nan)
    return params, taken


def _shock_numbers(recoveries: list[_Recovery]) -> Ints:
    """Return the number of each recovery's shock; falls within a second are one shock."""
    names: dict[tuple[str, str, int], int] = {}
    return np.array(
        [
            names.setdefault((recovery.dex, recovery.coin, round(recovery.ms / 1000)), len(names))
            for recovery in recoveries
        ],
        dtype=np.int64,
    )


def _squared_errors(recovery: _Recovery, lives: Floats) -> tuple[Floats, Floats]:
    """Return the squared error for each half-life, and the share of the depth then lost."""
    left = np.exp2(-recovery.seconds[:, None] / lives)
    depth = recovery.depth / recovery.before
    n = len(depth)
    mean_left, mean_depth = left.mean(axis=0), float(depth.mean())
    spread = (left**2).sum(axis=0) - n * mean_left**2
    together = depth @ left - n * mean_left * mean_depth
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 1e-12 * n, together / spread, 0.0)
    rest = (depth**2).sum() - n * mean_depth**2 - slope * together
    full = mean_depth - slope * mean_left
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(rest, 0.0), -slope / full


def _grid_minima(squares: Floats, places: Floats) -> Floats:
    """Return the place of each row's minimum, between the grid points; missing at the ends."""
    at = np.argmin(squares, axis=1)
    inside = (at > 0) & (at < squares.shape[1] - 1)
    middle = np.clip(at, 1, squares.shape[1] - 2)
    row = np.arange(len(squares))
    left, here, right = (squares[row, middle + shift] for shift in (-1, 0, 1))
    bend = left - 2 * here + right
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend > 0, 0.5 * (left - right) / bend, 0.0)
    found = np.exp(places[middle] + shift * (places[1] - places[0]))
    return np.where(inside, found, np.nan)


def _shock_rows(recoveries: list[_Recovery], taken: Floats) -> pd.DataFrame:
    rows = [
        (
            recovery.dex,
            recovery.coin,
            recovery.side,
            None,
            recovery.before,
            share,
            len(recovery.depth),
        )
        for recovery, share in zip(recoveries, taken, strict=True)
    ]
    shocks = pd.DataFrame(rows, columns=list(_SHOCKS))
    shocks["time"] = timestamps.timestamps_from_ms([recovery.ms for recovery in recoveries])
    return shocks.astype({name: kind for name, kind in _SHOCKS.items() if name != "time"})


def _recovery_path(recoveries: list[_Recovery], taken: Floats, half_life: float) -> pd.DataFrame:
    """Return quantiles of the share of depth that has returned, by seconds since the shock."""
    known = [
        (recovery, share) for recovery, share in zip(recoveries, taken, strict=True) if share > 0
    ]
    if not known or half_life != half_life:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in _PATH.items()})
    # A bin is a tenth of the half-life, or the time between batches if that is longer.
    step = float(np.median(np.concatenate([np.diff(recovery.seconds) for recovery, _ in known])))
    width = max(half_life / 10, step)
    parts = [_returned_share(recovery, half_life) for recovery, _ in known]
    rows = pd.DataFrame(np.vstack(parts), columns=["seconds", "share"])
    rows = rows[rows["seconds"] <= 8 * half_life]
    grouped = rows.assign(bin=rows["seconds"] // width).groupby("bin", sort=True)
    path = pd.DataFrame({"seconds": grouped["seconds"].mean(), "n": grouped["share"].size()})
    for name, q in (("q10", 0.1), ("q50", 0.5), ("q90", 0.9)):
        path[name] = grouped["share"].quantile(q)
    return path.reset_index(drop=True).astype(_PATH)


def _returned_share(recovery: _Recovery, half_life: float) -> Floats:
    left = np.exp2(-recovery.seconds / half_life)
    slope, full = np.polyfit(left, recovery.depth, 1)
    return np.column_stack([recovery.seconds, 1 - (full - recovery.depth) / -slope])
