"""The response of prices to single taker orders, by lag, and the kernel behind it."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common.bootstrap import bootstrap_interval, resample_sums
from toolkit.installation import explain_missing
from toolkit.times import DAY

Floats = npt.NDArray[np.float64]
_CURVES: Final = ("response_bps", "autocorrelation", "kernel_bps")
_LEAST_SHARE: Final = 1e-6
"""Smallest eigenvalue of the autocorrelations, as a share of the largest, of a kernel."""


def measure_response(
    events: pd.DataFrame, lags: int, level: float, draws: int, seed: int
) -> pd.DataFrame:
    """Return response, autocorrelation of sides and kernel by lag, each with its interval.

    - ``events``: taker orders sorted by coin and time: ``coin``, ``_ms``, ``_sign``, ``_mid`` (the
      price before the order; missing if unknown)
    """
    codes = np.unique(events["coin"].astype("str"), return_inverse=True)[1]
    sign, mid = (events[name].to_numpy(np.float64) for name in ("_sign", "_mid"))
    names, days = np.unique(events["_ms"].to_numpy(np.float64) // DAY, return_inverse=True)
    moves = np.full(len(events), np.nan)
    is_same = codes[1:] == codes[:-1]
    moves[:-1] = np.where(is_same, 1e4 * (mid[1:] / mid[:-1] - 1), np.nan)
    count = len(names)
    # For each day: sums of r(t + j) s(t) and of s(t + j) s(t), and how many pairs there are.
    parts = np.zeros((count, 4, lags + 1))
    for lag in range(min(lags, len(events) - 1) + 1):
        size = len(events) - lag
        is_pair = codes[:size] == codes[lag:]
        follow = moves[lag:] * sign[:size]
        is_known = is_pair & ~np.isnan(follow)
        pairs = (np.where(is_known, follow, 0.0), is_known, is_pair * sign[:size] * sign[lag:],
                 is_pair)  # fmt: skip
        for place, values in enumerate(pairs):
            parts[:, place, lag] = np.bincount(days[:size], values.astype(np.float64), count)
    flat = parts.reshape(count, 4 * (lags + 1))
    sums = np.vstack([flat.sum(axis=0, keepdims=True), resample_sums(flat, draws, seed)])
    follow, known, agree, both = np.moveaxis(sums.reshape(-1, 4, lags + 1), 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes, correlation = follow / known, agree / both
    curves = {
        "response_bps": np.cumsum(changes[:, :lags], axis=1),
        "autocorrelation": correlation[:, 1:],
        "kernel_bps": np.cumsum(_solve_kernels(correlation[:, :lags], changes[:, :lags]), axis=1),
    }
    table = {"lag": pd.Series(np.arange(1, lags + 1), dtype="int64")}
    for name in _CURVES:
        values = curves[name]
        ends = [bootstrap_interval(values[1:, lag], count, level) for lag in range(lags)]
        short = name.removesuffix("_bps")
        table[name] = pd.Series(values[0])
        table[f"{short}_low"] = pd.Series([low for low, _ in ends], dtype="float64")
        table[f"{short}_high"] = pd.Series([high for _, high in ends], dtype="float64")
    table["n"] = pd.Series(known[0, :lags].astype(np.int64))
    return pd.DataFrame(table)


def _solve_kernels(correlation: Floats, changes: Floats) -> Floats:
    """Return the kernel of each row: the solution of ``toeplitz(correlation) @ K = changes``."""
    with explain_missing("analysis"):
        from scipy import linalg

    kernels = np.full(changes.shape, np.nan)
    for row, (each, change) in enumerate(zip(correlation, changes, strict=True)):
        if not np.isfinite(each).all() or not np.isfinite(change).all():
            continue
        matrix = linalg.toeplitz(each)
        sizes = np.linalg.eigvalsh(matrix)
        # Orders that all have the same side do not tell the kernel apart from the response.
        if sizes[0] > _LEAST_SHARE * sizes[-1]:
            kernels[row] = np.linalg.solve(matrix, change)
    return kernels
