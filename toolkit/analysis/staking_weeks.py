"""What delegating earns: yields from weekly APRs, and the fees they imply."""

from typing import Any

import numpy as np
import pandas as pd

from toolkit.analysis.common import columns, timestamps
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.rules import staking as rules
from toolkit.times import DAY, Time

__all__ = ["apy", "implied_fee", "weeks"]

NEEDED = ("week", "net_apr", "gross_apr")
WEEK = 7 * DAY
_NOBODY = ""


def weeks(history: Any, *, now: Time | None = None) -> pd.DataFrame:
    """Say of each week whether it is whole, what it earned, and what fee it implies.

    Parameters
    ----------
    history : DataFrame
        ``week``, ``net_apr``, ``gross_apr``, and ``validator`` where there are several. Rows
        given twice count once: the last one of a validator and week counts.
    now : time, optional
        The present; without it, when the frame was fetched.

    Returns
    -------
    DataFrame
        pandas, sorted by validator and week:

        - ``validator`` (empty where the frame has none), ``week`` (its Monday, UTC);
        - ``whole``: False for the running week, and for the first week with rewards where the
          service's history begins in its middle;
        - ``net_apr``, ``gross_apr``: as they were, shares, not compounded;
        - ``earned``: share of the stake that the week earned, ``net_apr * 7 / 365``;
        - ``apy``: yield of a year of such weeks, compounded weekly,
          ``(1 + earned) ** (365 / 7) - 1``;
        - ``fee``: share of the rewards that the validator kept, ``1 - net_apr / gross_apr``;
          missing where there was no reward.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If nothing says what the present is.

    Notes
    -----
    Specification, "Validator weekly APR entry".

    Examples
    --------
    >>> history = pd.DataFrame({"week": pd.to_datetime(["2025-09-01", "2025-09-08"], utc=True),
    ...                         "net_apr": [0.0365, 0.02], "gross_apr": [0.073, 0.04]})
    >>> weeks(history, now="2025-09-10")[["whole", "earned", "apy", "fee"]].round(5)
       whole   earned      apy  fee
    0   True  0.00070  0.03716  0.5
    1  False  0.00038  0.02020  0.5
    """
    history = count_once(history, "history")
    rows = columns.pandas_columns(history, "history", NEEDED, ["validator"], NEEDED[1:])
    if "validator" not in rows:
        rows["validator"] = pd.Series(_NOBODY, index=rows.index, dtype="str")
    monday = timestamps.ms_from_times(rows["week"])
    rows = rows.assign(monday=monday).sort_values(["validator", "monday"], kind="stable")
    rows = rows.drop_duplicates(["validator", "monday"], keep="last", ignore_index=True)
    made = pd.DataFrame(
        {
            "validator": rows["validator"].astype("str"),
            "week": timestamps.timestamps_from_ms(rows["monday"]),
            "whole": _whole(rows["monday"], timestamps.present_ms(history, now, "history", "now")),
            "net_apr": rows["net_apr"],
            "gross_apr": rows["gross_apr"],
            "earned": rows["net_apr"] / rules.WEEKS,
            "apy": rules.apy(rows["net_apr"]),
            "fee": rules.implied_fee(
                rows["net_apr"], rows["gross_apr"].where(rows["gross_apr"] > 0)
            ),
        }
    )
    return given(made, history, "staking.weeks")


def apy(history: Any, *, now: Time | None = None, level: float = 0.95) -> pd.DataFrame:
    """Give each validator's yearly yield, as whole weeks compounded one after the other.

    Parameters
    ----------
    history, now
        As for `weeks`.
    level : float, default 0.95
        Of the interval.

    Returns
    -------
    DataFrame
        pandas, one row a validator, sorted:

        - ``validator``; ``n``: whole weeks; ``partial``: weeks left out;
        - ``apr``: mean of the weekly net APRs, not compounded;
        - ``apy``: rewards staked again every week, ``exp(mean(log(1 + earned)) * 365 / 7) - 1``;
        - ``low``, ``high``: Student's interval of the mean of the logarithms, which takes weeks
          for independent; missing with fewer than two weeks.

    Raises
    ------
    MissingColumns, ValueError
        As `weeks`; also if `level` is not between 0 and 1.

    Examples
    --------
    >>> history = pd.DataFrame({"week": pd.to_datetime(["2025-09-01", "2025-09-08"], utc=True),
    ...                         "net_apr": [0.0365, 0.0365], "gross_apr": [0.073, 0.04]})
    >>> apy(history, now="2025-09-15")[["n", "apr", "apy"]].round(5)
       n     apr      apy
    0  2  0.0365  0.03716
    """
    from scipy import stats

    check_level(level)
    rows = weeks(history, now=now)
    growth = np.log1p(rows["earned"]).where(rows["whole"])
    grouped = rows.assign(growth=growth, part=~rows["whole"]).groupby("validator")
    n = grouped["growth"].count()
    mean, spread = grouped["growth"].mean(), grouped["growth"].std(ddof=1)
    half = spread / np.sqrt(n) * stats.t.ppf((1 + level) / 2, np.maximum(n - 1, 1))
    apr = rows.loc[rows["whole"]].groupby("validator")["net_apr"].mean().reindex(n.index)
    made = pd.DataFrame(
        {
            "n": n.astype("int64"),
            "partial": grouped["part"].sum().astype("int64"),
            "apr": apr,
            "apy": np.expm1(mean * rules.WEEKS),
            "low": np.expm1((mean - half) * rules.WEEKS),
            "high": np.expm1((mean + half) * rules.WEEKS),
        }
    ).reset_index()
    return given(made, history, "staking.apy", level=level)


def implied_fee(history: Any, *, now: Time | None = None) -> pd.DataFrame:
    """Give the fee that each validator's APRs imply, and how far it is behind the best one.

    Parameters
    ----------
    history, now
        As for `weeks`.

    Returns
    -------
    DataFrame
        pandas, one row a validator, sorted:

        - ``validator``; ``n``: whole weeks with rewards;
        - ``fee``: share of the rewards kept, ``1 - sum(net_apr) / sum(gross_apr)``;
        - ``low``, ``high``: its smallest and largest week: apart where the commission changed;
        - ``behind_best``: median over the weeks of ``1 - net_apr / best net_apr`` of that week:
          what delegating here costs against the best validator, luck included.

    Raises
    ------
    MissingColumns, ValueError
        As `weeks`.

    Examples
    --------
    >>> history = pd.DataFrame({"validator": ["a", "b"], "net_apr": [0.02, 0.015],
    ...     "gross_apr": [0.02, 0.02], "week": pd.to_datetime(["2025-09-01"] * 2, utc=True)})
    >>> implied_fee(history, now="2025-09-15")[["validator", "fee", "behind_best"]]
      validator   fee  behind_best
    0         a  0.00         0.00
    1         b  0.25         0.25
    """
    rows = weeks(history, now=now)
    best = rows["net_apr"].where(rows["whole"]).groupby(rows["week"]).transform("max")
    counts = rows["whole"] & ~rows["fee"].isna()
    rows["behind_best"] = 1 - rows["net_apr"] / best.where(best > 0)
    rows[["net_apr", "gross_apr", "fee", "behind_best"]] = rows[
        ["net_apr", "gross_apr", "fee", "behind_best"]
    ].where(counts)
    grouped = rows.groupby("validator")
    net, gross = (grouped[name].sum(min_count=1) for name in ("net_apr", "gross_apr"))
    made = pd.DataFrame(
        {
            "n": grouped["fee"].count().astype("int64"),
            "fee": rules.implied_fee(net, gross),
            "low": grouped["fee"].min(),
            "high": grouped["fee"].max(),
            "behind_best": grouped["behind_best"].median(),
        }
    ).reset_index()
    return given(made, history, "staking.implied_fee")


def _whole(monday: pd.Series, now_ms: int) -> pd.Series:
    # ASSUMED: a week is whole once the next Monday has come; its rewards are published since
    # 2025-08-01, so that the week of 2025-07-28 never is.
    return (monday + WEEK <= now_ms) & (monday != FIRST_WEEK)


FIRST_WEEK = 1_753_660_800_000
"""Monday 2025-07-28: rewards are published from the Friday after it. Specification, "Data
availability"."""


def given(made: pd.DataFrame, history: Any, helper: str, **facts: Any) -> pd.DataFrame:
    made.attrs["toolkit"] = {**result_provenance({"history": history}), "helper": helper, **facts}
    return made
