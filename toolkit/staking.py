"""Staking: yields of delegating, the fees that they imply, and stability of ranks.

Every helper reads weekly APRs as `tk.validator_apr_history` returns them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.groups import starts_group, sum_groups
from toolkit.prepare.provenance import finish, present_ms, state_provenance
from toolkit.rules import staking as rules
from toolkit.statistics import Estimate, check_level, student
from toolkit.times import WEEK, Time

__all__ = ["RankStability", "apy", "implied_fee", "rank_stability"]

NEEDED: Final = ("week", "net_apr", "gross_apr")
FIRST_WEEK: Final = 1_753_660_800_000
"""Monday 2025-07-28. Rewards are published from the Friday after it (specification, "Data
availability")."""


def apy(history: Frame, *, now: Time | None = None, level: float = 0.95) -> pd.DataFrame:
    """Compute each validator's yearly yield: its complete weeks, compounded.

    Parameters
    ----------
    history : DataFrame
        ``week``, ``net_apr``, ``gross_apr``, and ``validator`` if there are several. Repeated rows
        count once: the last row of a validator and week counts.
    now : time, optional
        The present. Without it, the time at which the frame was fetched.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    DataFrame
        One row for each validator, sorted:

        - ``validator``: address of the validator; empty if the frame has no such column.
        - ``n``: number of complete weeks.
        - ``partial``: number of weeks left out because they are not complete.
        - ``apr``: mean of the weekly net APRs, as a share of the stake a year, not compounded.
        - ``apy``: yield of a year as a share of the stake, with rewards staked again every week:
          ``exp(mean(log(1 + earned)) * 365 / 7) - 1``.
        - ``low``: lower end of Student's interval of `apy`, which assumes independent weeks; never
          below 0, because no week has a loss; missing with fewer than two weeks.
        - ``high``: upper end of Student's interval of `apy`.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If the present is not known, or `level` is not between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame({"week": pd.to_datetime(["2025-09-01", "2025-09-08"], utc=True),
    ...                         "net_apr": [0.0365, 0.0365], "gross_apr": [0.073, 0.04]})
    >>> apy(history, now="2025-09-15")[["n", "apr", "apy"]].round(5)
       n     apr      apy
    0  2  0.0365  0.03716
    """
    check_level(level)
    names, group, _, whole, net, _, inputs = _read_weeks(history, now)
    count, known = len(names), whole & ~np.isnan(net)
    of, growth = group[known], np.log1p(net[known] / rules.WEEKS)
    n = np.bincount(of, minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        apr, mean = (sum_groups(of, part, count) / n for part in (net[known], growth))
        squares = sum_groups(of, (growth - mean[of]) ** 2, count)
        error = np.sqrt(squares / np.where(n > 1, n - 1, np.nan) / n)
    half = error * student(level, np.maximum(n - 1, 1))
    columns = {
        "validator": names,
        "n": n,
        "partial": np.bincount(group[~whole], minlength=count),
        "apr": apr,
        "apy": np.expm1(mean * rules.WEEKS),
        "low": np.maximum(np.expm1((mean - half) * rules.WEEKS), 0.0),
        "high": np.expm1((mean + half) * rules.WEEKS),
    }
    return finish(pd.DataFrame(columns), inputs, helper="staking.apy", level=level)


def implied_fee(
    history: Frame, *, now: Time | None = None, by: Literal["validator", "week"] = "validator"
) -> pd.DataFrame:
    """Compute the fee that APRs imply, for each validator or for each of its weeks.

    Parameters
    ----------
    history, now
        As for `apy`.
    by : {"validator", "week"}
        One row for each validator, or one for each validator and week.

    Returns
    -------
    DataFrame
        Sorted by validator and week:

        - ``validator``: address of the validator; empty if the frame has no such column.
        - ``n``: number of complete weeks with rewards. Only by validator.
        - ``week``: Monday on which the week begins, UTC. Only by week.
        - ``whole``: whether the week is complete: False for the running week, and for the first
          week of the service's history, in the middle of which rewards begin. Only by week.
        - ``net_apr``: APR that delegators received, as a share of the stake a year, not
          compounded. Only by week.
        - ``gross_apr``: APR before the validator's fee. Only by week.
        - ``earned``: share of the stake that the week earned, ``net_apr * 7 / 365``. Only by week.
        - ``apy``: yield of a year of such weeks, compounded weekly:
          ``(1 + earned) ** (365 / 7) - 1``. Only by week.
        - ``fee``: share of the rewards that the validator kept: ``1 - net_apr / gross_apr``, with
          the sums over the complete weeks if by validator; missing without rewards.
        - ``low``: smallest fee of a complete week. Only by validator.
        - ``high``: largest fee of a complete week; it differs from `low` if the commission
          changed. Only by validator.
        - ``behind_best``: share of the best validator's net APR that this validator lacks, ``1 -
          net_apr / best net_apr`` of the week, luck included; by validator the median over its
          weeks.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If the present is not known, or `by` is something else.

    Notes
    -----
    Specification, "Validator weekly APR entry".

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame({"validator": ["a", "b"], "net_apr": [0.02, 0.015],
    ...     "gross_apr": [0.02, 0.02], "week": pd.to_datetime(["2025-09-01"] * 2, utc=True)})
    >>> implied_fee(history, now="2025-09-15")[["validator", "fee", "behind_best"]]
      validator   fee  behind_best
    0         a  0.00         0.00
    1         b  0.25         0.25
    >>> implied_fee(history, now="2025-09-05", by="week")[["validator", "whole", "fee"]]
      validator  whole   fee
    0         a  False  0.00
    1         b  False  0.25
    """
    if by not in ("validator", "week"):
        raise ValueError(f"by must be 'validator' or 'week', not {by!r}")
    names, group, ms, whole, net, gross, inputs = _read_weeks(history, now)
    week, usable = np.unique(ms, return_inverse=True)[1], whole & (net > 0)
    best = np.full(int(week.max(initial=-1)) + 1, np.nan)
    np.fmax.at(best, week[usable], net[usable])
    behind, fee = 1 - net / best[week], rules.implied_fee(net, np.where(gross > 0, gross, np.nan))
    if by == "week":
        columns = {
            "validator": names.iloc[group].array,
            "week": utc_times(ms),
            "whole": whole,
            "net_apr": net,
            "gross_apr": gross,
            "earned": net / rules.WEEKS,
            "apy": rules.apy(net),
            "fee": fee,
            "behind_best": behind,
        }
        return finish(pd.DataFrame(columns), inputs, helper="staking.implied_fee")
    known, count = whole & ~np.isnan(fee), len(names)
    group, n = group[known], np.bincount(group[known], minlength=count)
    fees = pd.DataFrame({"fee": fee[known], "behind": behind[known]}).groupby(group)
    ends = {
        "low": fees["fee"].min(),
        "high": fees["fee"].max(),
        "behind_best": fees["behind"].median(),
    }
    paid, all_paid = (
        np.where(n > 0, sum_groups(group, part[known], count), np.nan) for part in (net, gross)
    )
    columns = {
        "validator": names,
        "n": n,
        "fee": rules.implied_fee(paid, all_paid),
        **{name: found.reindex(range(count)).to_numpy() for name, found in ends.items()},
    }
    return finish(pd.DataFrame(columns), inputs, helper="staking.implied_fee")


@dataclass(frozen=True, eq=False, kw_only=True)
class RankStability(Estimate):
    """How well the order of the validators in one week predicts the order in other weeks.

    Attributes
    ----------
    params : DataFrame
        One row per figure:

        - ``name``: name of the figure
        - ``estimate``: value of the figure, in the unit of the figure
        - ``low``: lower end of the interval of the estimate
        - ``high``: upper end of the interval of the estimate

        The figures:

        - ``concordance``: Kendall's W over all weeks. 0: the rank sums are all equal; 1: the same
          order every week. Random ranks give 1 / (number of weeks) on average
        - ``next_week``: mean of Spearman's correlations of each week's ranks with those of the next
          week, -1 to 1
    ranks : DataFrame
        One row for each validator and complete week:

        - ``validator``: address of the validator
        - ``week``: Monday on which the week begins, UTC
        - ``net_apr``: APR that delegators received, as a share of the stake a year
        - ``rank``: 1 is the best; equal APRs share the mean of their ranks
    left_out : int
        Number of validators that miss a complete week. They have no rank.
    """

    ranks: pd.DataFrame
    left_out: int


def rank_stability(
    history: Frame, *, now: Time | None = None, level: float = 0.95
) -> RankStability:
    """Estimate whether the validators that earned most continue to earn most.

    Parameters
    ----------
    history, now
        As for `apy`. Validators that miss one of the complete weeks have no rank.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    RankStability
        ``params`` has two rows: the concordance over all weeks (Kendall's W), and the correlation
        with the next week. The intervals come from the jackknife over weeks; they are missing with
        fewer than three weeks. ``n`` is the number of weeks.

    Raises
    ------
    MissingColumns, ValueError
        As for `apy`.

    Notes
    -----
    Kendall, M., & Babington Smith, B. (1939), with correction for ties; jackknife: Tukey (1958).

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame({"validator": ["a", "b", "c"] * 2, "gross_apr": 0.05,
    ...     "net_apr": [0.03, 0.02, 0.01, 0.04, 0.02, 0.01],
    ...     "week": pd.to_datetime(["2025-09-01"] * 3 + ["2025-09-08"] * 3, utc=True)})
    >>> rank_stability(history, now="2025-09-15")["concordance"]
    1.0
    """
    check_level(level)
    names, group, ms, whole, net, _, inputs = _read_weeks(history, now)
    columns = {"week": utc_times(ms), "validator": names.iloc[group].array, "net_apr": net}
    complete = pd.DataFrame(columns)[whole & ~np.isnan(net)]
    table = complete.pivot(index="week", columns="validator", values="net_apr").dropna(axis=1)
    ranked = table.rank(axis=1, ascending=False)
    figures = {"concordance": (_concordance, 0.0), "next_week": (_next_week_correlation, -1.0)}
    values = ranked.to_numpy(dtype="float64")
    found = [(name, *_jackknife(values, *figure, level)) for name, figure in figures.items()]
    params = pd.DataFrame(found, columns=["name", "estimate", "low", "high"])
    ranks = pd.DataFrame({"net_apr": table.unstack(), "rank": ranked.unstack()}).reset_index()
    state_provenance((params, ranks), inputs, helper="staking.rank_stability", level=level)
    return RankStability(
        params=params,
        n=len(table),
        level=level,
        method="Kendall's W and Spearman's correlation of weekly ranks; jackknife over weeks",
        ranks=ranks,
        left_out=len(names) - table.shape[1],
    )


def _concordance(ranks: Floats) -> float:
    """Return Kendall's W of a table of weeks by validators."""
    weeks, validators = ranks.shape
    if weeks < 2 or validators < 2:
        return float("nan")
    sums = ranks.sum(axis=0)
    counts = np.concatenate([np.unique(week, return_counts=True)[1] for week in ranks])
    ties = float((counts**3 - counts).sum())
    most = weeks**2 * (validators**3 - validators) - weeks * ties
    return float(12 * ((sums - sums.mean()) ** 2).sum() / most) if most else float("nan")


def _next_week_correlation(ranks: Floats) -> float:
    """Return the mean correlation of each week's ranks with those of the next week."""
    if ranks.shape[0] < 2 or ranks.shape[1] < 2:
        return float("nan")
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=1))
    size = length[:-1] * length[1:]
    found = (centred[:-1] * centred[1:]).sum(axis=1)[size > 0] / size[size > 0]
    return float(found.mean()) if len(found) else float("nan")


def _jackknife(
    ranks: Floats, figure: Callable[[Floats], float], least: float, level: float
) -> tuple[float, float, float]:
    """Return a figure of all weeks and its interval, from the figures without one week each."""
    estimate, n = figure(ranks), len(ranks)
    if n < 3 or estimate != estimate:
        return estimate, float("nan"), float("nan")
    without = np.array([figure(np.delete(ranks, place, axis=0)) for place in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    half = float(student(level, n - 1) * error)
    return estimate, max(estimate - half, least), min(estimate + half, 1.0)


def _read_weeks(
    history: Frame, now: Time | None
) -> tuple[pd.Series, Ints, Ints, Flags, Floats, Floats, dict[str, pd.DataFrame]]:
    """Return the weeks of validators, by validator and time, each once; and the input.

    They are the validators, sorted; the place of each week's validator among them; when the week
    begins; whether it is complete; its net APR and its gross APR.
    """
    table = Table(history, "history")
    table.require(NEEDED)
    validator, ms = table.text("validator", blank=True).sorted(), table.ms("week")
    rows = np.lexsort((ms, validator.codes))
    repeats = ~starts_group(validator.codes[rows], ms[rows])
    rows = rows[~np.append(repeats[1:], False)[: len(rows)]]  # the last of several rows counts
    present, group = np.unique(validator.codes[rows], return_inverse=True)
    names = pd.Series([validator.values[code] for code in present.tolist()], dtype="str")
    # ASSUMED: A week is complete when the next Monday begins. The service has published rewards
    # since 2025-08-01, so the week of 2025-07-28 is never complete.
    now_ms, ms = present_ms(table.frame, now, "history", "now"), ms[rows]
    whole = (ms + WEEK <= now_ms) & (ms != FIRST_WEEK)
    net, gross = (table.number(name)[rows] for name in ("net_apr", "gross_apr"))
    return names, group, ms, whole, net, gross, {"history": table.frame}


def __dir__() -> list[str]:
    return __all__
