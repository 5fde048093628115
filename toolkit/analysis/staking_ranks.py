"""Whether the validators that earned most go on doing so."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common.estimate import Estimate, check_level
from toolkit.analysis.staking_weeks import given, weeks
from toolkit.times import Time

__all__ = ["RankStability", "rank_stability"]


@dataclass(frozen=True, eq=False, kw_only=True)
class RankStability(Estimate):
    """How far one week's order of the validators tells another's.

    Attributes
    ----------
    ranks : DataFrame
        One row a validator and whole week: ``validator``, ``week``, ``net_apr``, ``rank`` (1 is
        the best; equal APRs share the mean of their ranks).
    left_out : int
        Validators that lack a whole week, and are not ranked.
    """

    ranks: pd.DataFrame
    left_out: int

    picture: ClassVar[str] = "validator_ranks"


def rank_stability(history: Any, *, now: Time | None = None, level: float = 0.95) -> RankStability:
    """Say whether the validators that earned most go on doing so.

    Parameters
    ----------
    history, now
        As for `weeks`; validators without every one of the whole weeks are not ranked.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    RankStability
        ``params``: ``concordance`` (Kendall's W over all weeks: 0 is chance, 1 the same order
        every week) and ``next_week`` (mean of Spearman's correlation of each week's ranks with
        the next one's, -1 to 1), with intervals by the jackknife over weeks: missing with fewer
        than three weeks. ``n`` is the number of weeks.

    Raises
    ------
    MissingColumns, ValueError
        As `weeks`; also if `level` is not between 0 and 1.

    Notes
    -----
    Kendall, M., & Babington Smith, B. (1939), with correction for ties; jackknife: Tukey (1958).

    Examples
    --------
    >>> history = pd.DataFrame({"validator": ["a", "b", "c"] * 2, "gross_apr": 0.05,
    ...     "net_apr": [0.03, 0.02, 0.01, 0.04, 0.02, 0.01],
    ...     "week": pd.to_datetime(["2025-09-01"] * 3 + ["2025-09-08"] * 3, utc=True)})
    >>> rank_stability(history, now="2025-09-15")["concordance"]
    1.0
    """
    check_level(level)
    rows = weeks(history, now=now)
    whole = rows.loc[rows["whole"] & ~rows["net_apr"].isna(), ["validator", "week", "net_apr"]]
    table = whole.pivot(index="week", columns="validator", values="net_apr").dropna(axis=1)
    ranks = table.rank(axis=1, ascending=False)
    grid = ranks.to_numpy(dtype="float64")
    figures = {"concordance": (_concordance, 0.0), "next_week": (_next_week, -1.0)}
    params = pd.DataFrame(
        [
            (name, *_jackknife(grid, figure, level, least))
            for name, (figure, least) in figures.items()
        ],
        columns=["name", "estimate", "low", "high"],
    )
    params["name"] = params["name"].astype("str")
    known = whole[whole["validator"].isin(table.columns)].reset_index(drop=True)
    placed = known.groupby("week")["net_apr"].rank(ascending=False)
    listed = known.assign(rank=placed.astype("float64"))
    return RankStability(
        params=given(params, history, "staking.rank_stability", level=level),
        n=len(table),
        level=level,
        method="Kendall's W and Spearman's correlation of weekly ranks; jackknife over weeks",
        ranks=given(listed, history, "staking.rank_stability"),
        left_out=int(rows["validator"].nunique() - table.shape[1]),
    )


Grid = npt.NDArray[np.float64]


def _concordance(ranks: Grid) -> float:
    """Give Kendall's W of weeks by validators."""
    judges, things = ranks.shape
    if judges < 2 or things < 2:
        return float("nan")
    sums = ranks.sum(axis=0)
    ties = sum(_ties(row) for row in ranks)
    most = judges**2 * (things**3 - things) - judges * ties
    return float(12 * ((sums - sums.mean()) ** 2).sum() / most) if most else float("nan")


def _ties(row: Grid) -> float:
    _, counts = np.unique(row, return_counts=True)
    return float((counts**3 - counts).sum())


def _next_week(ranks: Grid) -> float:
    """Give the mean over weeks of the correlation of ranks with the next week's."""
    if ranks.shape[0] < 2 or ranks.shape[1] < 2:
        return float("nan")
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    size = length[:-1] * length[1:]
    found = (centred[:-1] * centred[1:]).sum(axis=1)[size > 0] / size[size > 0]
    return float(found.mean()) if len(found) else float("nan")


def _jackknife(
    ranks: Grid, figure: Callable[[Grid], float], level: float, least: float
) -> tuple[float, float, float]:
    from scipy import stats

    whole, n = figure(ranks), len(ranks)
    if n < 3 or whole != whole:
        return whole, float("nan"), float("nan")
    without = np.array([figure(np.delete(ranks, place, axis=0)) for place in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    half = float(stats.t.ppf((1 + level) / 2, n - 1) * error)
    return whole, max(whole - half, least), min(whole + half, 1.0)
