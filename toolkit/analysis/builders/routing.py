"""Which of its users' fills go through a builder, and which pass it by.

A user's fill is *routed* where it carries the builder, goes *elsewhere* where it carries another
one, and is *direct* where it carries none. Slices of TWAPs, liquidations of the user,
deleveraging, settlement and dust conversions carry no builder (specification,
"builderApprovedFillsByTime"): they could not have been routed. A fill against somebody else's
liquidation could have been. Conversions of outcome tokens are no trades and count nowhere
(docs/live_service.md, sections 2 and 7).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from toolkit.analysis.common import columns, directions, grouping
from toolkit.analysis.common.columns import Frame
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.owners import lower_address
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once

__all__ = ["attach_rate", "routing"]

WAYS = ("routed", "elsewhere", "direct", "unroutable")
_TAKEN = ("px", "sz", "fee", "builder_fee", "time", "fills", "volume", "revenue", *WAYS)


def routing(fills: Any, builder: str, by: str | Iterable[str] | None = None) -> Any:
    """Say where the fills of a builder's users went: through it, elsewhere, or direct.

    Parameters
    ----------
    fills : DataFrame
        Fills of users while they had approved the builder, as
        `tk.builder_approved_fills_by_time` gives them: ``px, sz, builder``, and ``twap_id``,
        ``dir``, ``liquidated_user``, which tell fills that could not have been routed (without
        them, these are direct). Any engine; rows given twice count once.
    builder : str
        Its address.
    by : str or list of str, optional
        Groups, as for `revenue`.

    Returns
    -------
    DataFrame
        Of the engine of `fills`, sorted by the groups: the columns of `by`, then ``fills``,
        ``routed``, ``elsewhere``, ``direct``, ``unroutable`` (int64; the four add up to fills),
        and the same in USD: ``volume``, ``routed_usd``, ``elsewhere_usd``, ``direct_usd``,
        ``unroutable_usd``.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Examples
    --------
    >>> fills = pd.DataFrame({"px": 100.0, "sz": [1.0, 2.0, 3.0, 4.0],
    ...                       "builder": ["0xb", "0xc", None, None],
    ...                       "twap_id": [None, None, None, 7]})
    >>> routing(fills, "0xb")[["fills", "routed_usd", "elsewhere_usd", "direct_usd"]]
       fills  routed_usd  elsewhere_usd  direct_usd
    0      4       100.0          200.0       300.0
    """
    keys = grouping.list_keys(by, _TAKEN)
    frame = _routed(fills, builder, keys)
    counts = ("fills", *WAYS)
    money = ("volume", *(f"{way}_usd" for way in WAYS))
    sums = [nw.col(name).sum() for name in (*counts, *money)]
    grouped = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    result = grouped.select(
        *keys,
        *(nw.col(name).fill_null(0).cast(nw.Int64()) for name in counts),
        *(nw.col(name).fill_null(0.0) for name in money),
    )
    result = result.sort(*keys, nulls_last=True) if keys else result
    return columns.result_from_frame(result, {"fills": fills}, helper="builders.routing", by=keys)


def attach_rate(
    fills: Any,
    builder: str,
    by: str | Iterable[str] | None = None,
    *,
    weight: str = "usd",
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimate the share of its users' trading that carries the builder.

    Parameters
    ----------
    fills : DataFrame
        As for `routing`, with ``user`` (any engine); rows given twice count once.
    builder : str
        Its address.
    by : str or list of str, optional
        Groups, as for `revenue`.
    weight : {"usd", "fills"}
        What is counted.
    level : float, default 0.95
        Of the interval.

    Returns
    -------
    DataFrame
        pandas, sorted by the groups: the columns of `by`, then

        - ``users``: how many traded what could have been routed; ``n``: their such fills;
        - ``rate``: routed, of all that could have been routed; missing where there is none;
        - ``low``, ``high``: interval over users (whose fills go together): Taylor
          linearisation of the ratio, on the logit scale, with Student's quantile; missing for
          fewer than two users, and where the rate is 0 or 1.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.
    ValueError
        If `weight` is neither, or `level` is not between 0 and 1.

    Notes
    -----
    Interval: Cochran (1977), ratio estimation with clusters.

    Examples
    --------
    >>> fills = pd.DataFrame({"user": ["a", "b"], "px": 100.0, "sz": [1.0, 3.0],
    ...                       "builder": ["0xb", None]})
    >>> attach_rate(fills, "0xb")[["users", "n", "rate"]]
       users  n  rate
    0      2  2  0.25
    """
    if weight not in {"usd", "fills"}:
        raise ValueError(f'weight must be "usd" or "fills", not {weight!r}')
    check_level(level)
    keys = grouping.list_keys(by, (*_TAKEN, "user") if by != "user" else _TAKEN)
    frame = _routed(fills, builder, [*keys, "user"])
    above, below = ("routed", "_routable") if weight == "fills" else ("routed_usd", "_routable_usd")
    sums = [nw.col(name).sum() for name in dict.fromkeys(("_routable", above, below))]
    each = frame.group_by(*dict.fromkeys((*keys, "user"))).agg(*sums)
    names = each.collect_schema().names()
    rows = columns.pandas_columns(
        nw.to_native(each), "fills", names, [], ["_routable", above, below]
    )
    rows = rows[rows["_routable"] > 0].sort_values([*dict.fromkeys((*keys, "user"))])
    made = _rates(rows, keys, above, below, level)
    facts = {**result_provenance({"fills": fills}), "helper": "builders.attach_rate", "by": keys}
    made.attrs["toolkit"] = {**facts, "level": level}
    return made


def _rates(
    rows: pd.DataFrame, keys: Sequence[str], above: str, below: str, level: float
) -> pd.DataFrame:
    from scipy import stats

    groups: Any = list(keys) or (lambda _: 0)
    top = rows.groupby(groups, dropna=False)[above].transform("sum") if len(rows) else rows[above]
    base = rows.groupby(groups, dropna=False)[below].transform("sum") if len(rows) else rows[below]
    off = (rows[above] - top / base * rows[below]) ** 2
    grouped = rows.assign(_off=off).groupby(groups, dropna=False, sort=True)
    sums = grouped[[above, below, "_off"]].sum()
    users = grouped.size()
    rate = (sums[above] / sums[below]).astype("float64")
    error = np.sqrt(sums["_off"] * users / (users - 1).where(users > 1)) / sums[below]
    inside = rate.where((rate > 0) & (rate < 1))
    wide = error / (inside * (1 - inside)) * stats.t.ppf((1 + level) / 2, (users - 1).clip(lower=1))
    logit = np.log(inside / (1 - inside))
    made = pd.DataFrame(
        {
            "users": users.astype("int64"),
            "n": grouped["_routable"].sum().astype("int64"),
            "rate": rate,
            "low": 1 / (1 + np.exp(wide - logit)),
            "high": 1 / (1 + np.exp(-wide - logit)),
        }
    )
    if keys:
        return made.reset_index()
    if made.empty:
        made.loc[0] = [0, 0, np.nan, np.nan, np.nan]
    return made.astype({"users": "int64", "n": "int64"}).reset_index(drop=True)


def _routed(fills: Any, builder: str, keys: Sequence[str]) -> Frame:
    """Tell each fill's way, and what it is worth that way."""
    fills = count_once(fills, "fills")
    frame = columns.open_as_floats(fills, "fills", ["px", "sz"])
    needed = (
        "px",
        "sz",
        "builder",
        *grouping.own_columns(keys),
        *(["coin"] if "dex" in keys else []),
    )
    if set(keys) & set(grouping.CALENDAR):
        needed = (*needed, "time")
    columns.require_columns(frame, needed, "fills")
    columns.require_values(frame, ("px", "sz"), "fills")
    if "user" in keys:
        columns.require_some_values(frame, "user", "fills", "says whose each fill is")
    directions.warn_missing_directions(frame, "fills")
    have = frame.collect_schema().names()
    none = nw.col("builder").is_null()
    mine = (lower_address("builder") == builder.lower()).fill_null(False)
    frame = frame.filter(~directions.is_conversion(have))
    forced = directions.is_forced_close(have) | ~directions.is_market_trade(have)
    if "twap_id" in have:
        forced = forced | ~nw.col("twap_id").is_null()
    ways = {
        "routed": mine,
        "elsewhere": ~none & ~mine,
        "direct": none & ~forced,
        "unroutable": none & forced,
    }
    zero, usd = nw.lit(0.0), nw.col("volume")
    frame = frame.with_columns(volume=nw.col("px") * nw.col("sz"), fills=nw.lit(1))
    frame = frame.with_columns(
        **{way: nw.when(is_so).then(nw.lit(1)).otherwise(nw.lit(0)) for way, is_so in ways.items()},
        **{f"{way}_usd": nw.when(is_so).then(usd).otherwise(zero) for way, is_so in ways.items()},
    )
    frame = frame.with_columns(
        _routable=nw.col("fills") - nw.col("unroutable"),
        _routable_usd=nw.col("volume") - nw.col("unroutable_usd"),
    )
    return grouping.add_groups(frame, keys)
