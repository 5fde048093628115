"""When users had approved a builder, told from what was and what was not attributed to it."""

from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import columns, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once

__all__ = ["approval_spans"]

SAME = ("user", "time", "oid", "tid", "sz")
"""What a fill of one frame has in common with the same fill in another."""


def approval_spans(approved: Any, fills: Any = None, funding: Any = None) -> pd.DataFrame:
    """Tell when each user had approved a builder, between which moments that began and ended.

    The service does not list approvals, but gives every fill and every funding payment that
    users made while they had one. A fill of the same user that is not among them was made
    without.

    Parameters
    ----------
    approved : DataFrame
        `tk.builder_approved_fills_by_time` of one builder: ``user, time, oid`` (any engine).
        Rows given twice are one.
    fills : DataFrame, optional
        All fills of these users, as `tk.many` with `tk.user_fills_by_time` gives them; ``tid``
        and ``sz`` tell fills of one millisecond apart. Without it no gap is seen.
    funding : DataFrame, optional
        `tk.builder_approved_funding_by_time` of the builder: ``user, time``.

    Returns
    -------
    DataFrame
        pandas, one row a span, sorted by user and time:

        - ``user``; ``span``: 1 for the first;
        - ``after``: the last moment before it that was seen without approval, missing where
          none was; ``first``, ``last``: the first and last moments seen with it;
        - ``before``: the next moment seen without, missing where none was (UTC);
        - ``seen``: fills and payments in it.

        The approval came after ``after`` and not after ``first``; the revocation after
        ``last`` and not after ``before``. Two spans that nothing was seen between are one.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    An approval applies from the block it lands in, and a revocation likewise (specification,
    "Builder approval").

    Examples
    --------
    >>> times = pd.to_datetime([1, 2, 3, 4], unit="h", utc=True)
    >>> fills = pd.DataFrame({"user": "a", "time": times, "oid": [1, 2, 3, 4]})
    >>> spans = approval_spans(fills.iloc[[0, 1, 3]], fills)
    >>> spans[["span", "seen"]].assign(until=spans["before"].dt.hour)
       span  seen  until
    0     1     2    3.0
    1     2     1    NaN
    """
    approved = count_once(approved, "fills", "approved")
    fills = count_once(fills, "fills")
    funding = count_once(funding, "funding")
    needed = ["user", "time", "oid"]
    mine = _read(approved, "approved", needed)
    seen = [mine[["user", "ms"]].assign(held=True)]
    if funding is not None:
        seen.append(_read(funding, "funding", ["user", "time"])[["user", "ms"]].assign(held=True))
    if fills is not None:
        seen.append(_without(_read(fills, "fills", needed), mine))
    rows = pd.concat(seen, ignore_index=True)
    # A block is a millisecond: within one, all or none of a user's fills had the approval.
    rows = rows.sort_values(["user", "ms", "held"], kind="stable", ignore_index=True)
    made = _spans(rows)
    inputs = {"approved": approved, "fills": fills, "funding": funding}
    made.attrs["toolkit"] = {**result_provenance(inputs), "helper": "builders.approval_spans"}
    return made


def _read(native: Any, what: str, needed: list[str]) -> pd.DataFrame:
    rows = columns.pandas_columns(
        native, what, needed, [n for n in SAME if n not in needed], ["sz"]
    )
    frame = nw.from_native(rows, eager_only=True)
    columns.require_some_values(frame, "user", what, "says whose each row is")
    rows = rows.assign(user=rows["user"].astype("str"), ms=timestamps.ms_from_times(rows["time"]))
    return rows.drop_duplicates([n for n in SAME if n in rows], ignore_index=True)


def _without(fills: pd.DataFrame, approved: pd.DataFrame) -> pd.DataFrame:
    """Give the fills of the approved fills' users that are not among those."""
    keys = [name for name in SAME if name in fills and name in approved]
    known = approved[keys].drop_duplicates().assign(held=True)
    both = fills[fills["user"].isin(approved["user"].unique())].merge(known, on=keys, how="left")
    return both.loc[both["held"].isna(), ["user", "ms"]].assign(held=False)


def _spans(rows: pd.DataFrame) -> pd.DataFrame:
    changes = (rows["held"] != rows["held"].shift()) | (rows["user"] != rows["user"].shift())
    rows = rows.assign(run=changes.cumsum())
    runs = rows.groupby("run", sort=True).agg(
        user=("user", "first"),
        held=("held", "first"),
        first=("ms", "min"),
        last=("ms", "max"),
        seen=("ms", "size"),
    )
    after = runs["last"].shift().where(runs["user"] == runs["user"].shift())
    before = runs["first"].shift(-1).where(runs["user"] == runs["user"].shift(-1))
    runs = runs.assign(after=after, before=before)
    runs = runs[runs["held"].astype(bool)].reset_index(drop=True)
    return pd.DataFrame(
        {
            "user": runs["user"].astype("str"),
            "span": (runs.groupby("user").cumcount() + 1).astype("int64"),
            "after": timestamps.timestamps_from_ms(runs["after"].astype("float64")),
            "first": timestamps.timestamps_from_ms(runs["first"].astype("float64")),
            "last": timestamps.timestamps_from_ms(runs["last"].astype("float64")),
            "before": timestamps.timestamps_from_ms(runs["before"].astype("float64")),
            "seen": runs["seen"].astype("int64"),
        }
    )
