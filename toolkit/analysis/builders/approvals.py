"""Approval spans: when users had approved a builder, from the rows attributed to it."""

import narwhals as nw
import pandas as pd
from narwhals.typing import IntoFrame

from toolkit.analysis.common import frame_access, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows

FILL_KEYS = ("user", "time", "oid", "tid", "sz")
"""What a fill of one frame has in common with the same fill in another."""

PAYMENT_KEYS = ("user", "time", "coin")
"""Columns that distinguish funding payments."""


def approval_spans(
    approved: IntoFrame, fills: IntoFrame | None = None, funding: IntoFrame | None = None
) -> pd.DataFrame:
    """Find the time ranges in which each user is known to have approved a builder.

    The service does not list approvals. It attributes to a builder every fill and every funding
    payment that its users made while they had approved it. Any other fill of such a user happened
    without an approval.

    Parameters
    ----------
    approved : DataFrame
        `tk.builder_approved_fills_by_time` of one builder: ``user, time, oid`` (any engine).
        Repeated rows count once.
    fills : DataFrame, optional
        All fills of these users, from `tk.many` with `tk.user_fills_by_time`; ``tid`` and ``sz``
        distinguish fills of one millisecond. Without it no gap is found.
    funding : DataFrame, optional
        `tk.builder_approved_funding_by_time` of the builder: ``user, time``; ``coin`` distinguishes
        payments of one hour. Repeated rows count once; without ``coin`` every row counts.

    Returns
    -------
    DataFrame
        pandas, one row for each span, sorted by user and time. Spans are merged if no row lies
        between them.

        - ``user``: account that approved the builder.
        - ``span``: number of the span; 1 is the first of the user.
        - ``after``: last known moment without the approval before the span, UTC; missing if there
          is none. The user approved the builder after it, and at ``first`` at the latest.
        - ``first``: first known moment with the approval, UTC.
        - ``last``: last known moment with the approval, UTC.
        - ``before``: first known moment without the approval after the span, UTC; missing if there
          is none. The user revoked it after ``last``, and before this moment or at it.
        - ``seen``: number of fills and payments in the span; each coin has its own payment.

    Raises
    ------
    MissingColumns
        If a column is missing.

    Notes
    -----
    An approval applies from the block that contains it, and so does a revocation (specification,
    "Builder approval").

    Examples
    --------
    >>> import pandas as pd
    >>> times = pd.to_datetime([1, 2, 3, 4], unit="h", utc=True)
    >>> fills = pd.DataFrame({"user": "a", "time": times, "oid": [1, 2, 3, 4]})
    >>> spans = approval_spans(fills.iloc[[0, 1, 3]], fills)
    >>> spans[["span", "seen"]].assign(until=spans["before"].dt.hour)
       span  seen  until
    0     1     2    3.0
    1     2     1    NaN
    """
    approved = drop_repeated_rows(approved, "fills", "approved")
    fills = drop_repeated_rows(fills, "fills")
    funding = drop_repeated_rows(funding, "funding")
    needed = ["user", "time", "oid"]
    approved_rows = _read_rows(approved, "approved", needed, FILL_KEYS)
    seen = [approved_rows[["user", "ms"]].assign(held=True)]
    if funding is not None:
        paid = _read_rows(funding, "funding", ["user", "time"], PAYMENT_KEYS)
        seen.append(paid[["user", "ms"]].assign(held=True))
    if fills is not None:
        every = _read_rows(fills, "fills", needed, FILL_KEYS)
        seen.append(_fills_without_approval(every, approved_rows))
    rows = pd.concat(seen, ignore_index=True)
    # A block is one millisecond. Within a block, all or none of a user's fills have the approval.
    rows = rows.sort_values(["user", "ms", "held"], kind="stable", ignore_index=True)
    result = _span_rows(rows)
    inputs = {"approved": approved, "fills": fills, "funding": funding}
    result.attrs["toolkit"] = {**result_provenance(inputs), "helper": "builders.approval_spans"}
    return result


def _read_rows(
    native: IntoFrame, what: str, needed: list[str], keys: tuple[str, ...]
) -> pd.DataFrame:
    """Return the rows with ``ms``; those that are equal in `keys` are one row."""
    optional = [name for name in keys if name not in needed]
    rows = frame_access.pandas_columns(native, what, needed, optional, ["sz"])
    frame = nw.from_native(rows, eager_only=True)
    frame_access.require_some_values(frame, "user", what, "says whose each row is")
    rows = rows.assign(user=rows["user"].astype("str"), ms=timestamps.ms_from_times(rows["time"]))
    if what == "funding" and "coin" not in rows:
        return rows  # payments of several coins would look equal
    return rows.drop_duplicates([name for name in keys if name in rows], ignore_index=True)


def _fills_without_approval(fills: pd.DataFrame, approved: pd.DataFrame) -> pd.DataFrame:
    """Return the fills of the approved fills' users that are not among the approved fills."""
    keys = [name for name in FILL_KEYS if name in fills and name in approved]
    known = approved[keys].drop_duplicates().assign(held=True)
    both = fills[fills["user"].isin(approved["user"].unique())].merge(known, on=keys, how="left")
    return both.loc[both["held"].isna(), ["user", "ms"]].assign(held=False)


def _span_rows(rows: pd.DataFrame) -> pd.DataFrame:
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
