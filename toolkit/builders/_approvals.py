"""Approval spans: when users had approved a builder, from the rows attributed to it."""

import numpy as np
import pandas as pd

from toolkit.prepare.door import NO_TIME, Frame, Names, Table, utc_times
from toolkit.prepare.provenance import finish

FILL_KEYS = ("user", "time", "oid", "tid", "sz")
"""What a fill of one frame has in common with the same fill in another."""

PAYMENT_KEYS = ("user", "time", "coin")
"""Columns that distinguish funding payments."""


def approval_spans(
    approved: Frame, fills: Frame | None = None, funding: Frame | None = None
) -> pd.DataFrame:
    """Find the time ranges in which each user is known to have approved a builder.

    The service does not list approvals. It attributes to a builder every fill and every funding
    payment that its users made while they had approved it. Any other fill of such a user happened
    without an approval.

    Parameters
    ----------
    approved : DataFrame
        `tk.builder_approved_fills_by_time` of one builder: ``user, time, oid``. Repeated rows
        count once.
    fills : DataFrame, optional
        All fills of these users, from `tk.many` with `tk.user_fills_by_time`; ``tid`` and ``sz``
        distinguish fills of one millisecond. Without it no gap is found.
    funding : DataFrame, optional
        `tk.builder_approved_funding_by_time` of the builder: ``user, time``; ``coin`` distinguishes
        payments of one hour. Repeated rows count once; without ``coin`` every row counts.

    Returns
    -------
    DataFrame
        One row for each span, sorted by user and time. Spans are merged if no row lies
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
    inputs = {"approved": Table(approved, "approved", "fills")}
    known = _read_rows(inputs["approved"], ("oid",), FILL_KEYS)
    seen = [known[["user", "ms"]].assign(held=True)]
    if funding is not None:
        inputs["funding"] = Table(funding, "funding")
        paid = _read_rows(inputs["funding"], (), PAYMENT_KEYS)
        seen.append(paid[["user", "ms"]].assign(held=True))
    if fills is not None:
        inputs["fills"] = Table(fills, "fills")
        every = _read_rows(inputs["fills"], ("oid",), FILL_KEYS)
        every = every[every["user"].isin(known["user"])]
        keys = [name for name in every.columns if name in known]
        is_approved = pd.concat([known[keys], every[keys]]).duplicated().to_numpy()[len(known) :]
        seen.append(every.loc[~is_approved, ["user", "ms"]].assign(held=False))
    rows = pd.concat(seen, ignore_index=True)
    user, names = pd.factorize(rows["user"], sort=True)
    ms, held = rows["ms"].to_numpy(), rows["held"].to_numpy(dtype=bool)
    # A block is one millisecond. Within a block, all or none of a user's fills have the approval.
    order = np.lexsort((held, ms, user))
    user, ms, held = user[order], ms[order], held[order]
    is_begin = np.append(True, (user[1:] != user[:-1]) | (held[1:] != held[:-1]))[: len(user)]
    begin = np.flatnonzero(is_begin)
    end = np.append(begin[1:], len(user)) - 1
    # The runs of one user alternate: with the approval, and without it.
    same = user[begin[1:]] == user[begin[:-1]]
    after = np.append(NO_TIME, np.where(same, ms[end[:-1]], NO_TIME))[: len(begin)]
    before = np.append(np.where(same, ms[begin[1:]], NO_TIME), NO_TIME)[: len(begin)]
    kept = np.flatnonzero(held[begin])
    owner = user[begin[kept]]
    columns = {
        "user": Names(owner, [*names, ""]).texts(),
        "span": np.arange(len(kept)) - np.searchsorted(owner, owner) + 1,
        "after": utc_times(after[kept]),
        "first": utc_times(ms[begin[kept]]),
        "last": utc_times(ms[end[kept]]),
        "before": utc_times(before[kept]),
        "seen": (end - begin + 1)[kept],
    }
    frames = {name: table.frame for name, table in inputs.items()}
    return finish(pd.DataFrame(columns), frames, helper="builders.approval_spans")


def _read_rows(table: Table, needed: tuple[str, ...], keys: tuple[str, ...]) -> pd.DataFrame:
    """Return the columns `keys` with ``ms``; rows that are equal in them are one row."""
    table.require(("user", "time", *needed))
    table.require_some("user", "says whose each row is")
    others = [name for name in keys if name not in ("user", "time") and table.has(name)]
    amounts = [name for name in others if name == "sz"]
    rows = table.columns(("user", *others), (), amounts).assign(ms=table.ms())
    if table.what == "funding" and "coin" not in rows:
        return rows  # payments of several coins would look equal
    return rows.drop_duplicates(ignore_index=True)
