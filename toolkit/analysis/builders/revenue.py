"""Revenue of builders, and the share of their users' trading that they carry.

A user's fill is *routed* if it carries the builder, *elsewhere* if it carries another builder, and
*direct* if it carries none. Slices of TWAPs, liquidations of the user, deleveraging, settlement and
dust conversions carry no builder (specification, "builderApprovedFillsByTime"): they are
*unroutable*. A fill against another account's liquidation is routable. Conversions of outcome
tokens are not trades and count nowhere (docs/live_service.md, sections 2 and 7).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fill_kinds, frame_access, grouping, usd_values
from toolkit.analysis.common.estimate import check_level
from toolkit.analysis.common.frame_access import Frame, NumberKind
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import lower_address
from toolkit.installation import explain_missing

NUMBERS = ("px", "sz", "fee", "builder_fee")
ROUTES = ("routed", "elsewhere", "direct", "unroutable")
_REVENUE_NAMES = (*NUMBERS, "time", "fills", "volume", "revenue")
_ROUTING_NAMES = ("px", "sz", "fee", "builder_fee", "time", "fills", "volume", "revenue", *ROUTES)


def revenue(
    fills: IntoFrameT, builder: str | None = None, by: str | Iterable[str] | None = None
) -> IntoFrameT:
    """Sum the builder fees of fills, in groups such as builder, user or week.

    Parameters
    ----------
    fills : DataFrame
        ``coin, px, sz, side, time, fee, builder, builder_fee``, from
        `tk.builder_approved_fills_by_time` or `tk.user_fills` (pandas, Polars, DuckDB, PySpark;
        numbers float or exact). Repeated rows count once.
    builder : str, optional
        Only fills of this builder. Without it, fills of every builder.
    by : str or list of str, optional
        One row for each group: ``builder``, ``user``, ``coin``, ``dex``, ``hour``, ``day``,
        ``week`` (Monday, UTC), or any other column.

    Returns
    -------
    DataFrame
        The engine of `fills`, sorted by the groups: the columns of `by`, then

        - ``fills``: number of fills with a builder.
        - ``volume``: volume of the fills with a builder (px * sz), in USD.
        - ``revenue``: builder fees, in USD, float or exact as in the fills; positive is good for
          the builder.
        - ``fee_bps``: ``revenue / volume`` of the fills whose fee has a price, in basis points;
          missing without volume.
        - ``unpriced``: number of fills with a builder fee in a token without a known price.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Notes
    -----
    `fee` contains the builder fee: do not add the two (docs/accounting.md, "From closed PnL to
    net"). Conversions of outcome tokens are not trades, and are left out (docs/live_service.md,
    section 7). Fills with the ``dir`` ``Settlement``, ``Spot Dust Conversion`` or ``Net Child
    Vaults`` count, as in `tk.pnl.attribution`. If a spot buy pays the fee in the bought token, the
    price of the fill converts it to USD.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": 100.0, "sz": [10.0, 20.0, 5.0], "side": "B", "fee": 0.5,
    ...     "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "builder": ["0xb", "0xb", None], "builder_fee": [0.1, 0.2, None]})
    >>> revenue(fills)[["fills", "volume", "revenue", "fee_bps"]]
       fills  volume  revenue  fee_bps
    0      2  3000.0      0.3      1.0
    """
    fills = drop_repeated_rows(fills, "fills")
    keys = grouping.list_keys(by, _REVENUE_NAMES)
    frame = frame_access.open_frame(fills, "fills")
    needed = ("coin", "px", "sz", "side", "time", "fee", "builder", "builder_fee")
    frame_access.require_columns(frame, (*needed, *grouping.own_columns(keys)), "fills")
    kind = frame_access.number_kind(frame, NUMBERS, "fills")
    conversion = fill_kinds.is_conversion(frame.columns)
    fill_kinds.warn_missing_directions(frame, "fills", outcomes_alone=True)
    frame = frame.filter(has_builder(builder) & ~conversion)
    frame_access.require_values(frame, ("px", "sz"), "fills")
    usd_values.warn_missing_builder_fees(frame, "fills")
    usd_values.warn_missing_tokens(frame, "fills")
    frame = grouping.add_groups(add_earnings(frame, kind), keys)
    result = _sum_earnings(frame, keys, kind)
    result = result.sort(*keys, nulls_last=True) if keys else result
    return frame_access.result_from_frame(
        result, {"fills": fills}, helper="builders.revenue", by=keys
    )


def has_builder(builder: str | None) -> nw.Expr:
    """Return whether a fill carries the builder, or any builder (None)."""
    if builder is None:
        return ~nw.col("builder").is_null()
    return (lower_address("builder") == builder.lower()).fill_null(False)


def add_earnings(frame: Frame, kind: NumberKind) -> Frame:
    """Add what a builder earns on a fill (`_revenue`), and on which volume (`_known`)."""
    lost = usd_values.is_unpriced_fee(frame.columns, kind, "builder_fee")
    volume = nw.col("px").cast(nw.Float64()) * nw.col("sz").cast(nw.Float64())
    known = nw.when(lost == 0).then(volume).otherwise(nw.lit(0.0))
    frame = usd_values.add_fees_in_usd(frame, kind)
    return frame.with_columns(
        _revenue=nw.col("_builder_fee"), unpriced=lost, volume=volume, _known=known
    )


def _sum_earnings(frame: Frame, keys: Sequence[str], kind: NumberKind) -> Frame:
    frame = frame.with_columns(fills=nw.lit(1))
    sums = [nw.col(n).sum() for n in ("fills", "volume", "_revenue", "_known", "unpriced")]
    grouped = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    whole = nw.col("_revenue").fill_null(0).cast(frame_access.number_type(kind))
    grouped = grouped.with_columns(revenue=whole, _float=whole.cast(nw.Float64()))
    rate = nw.when(nw.col("_known") > 0).then(nw.col("_float") / nw.col("_known") * 1e4)
    return grouped.select(
        *keys,
        nw.col("fills").fill_null(0).cast(nw.Int64()),
        nw.col("volume").fill_null(0.0),
        "revenue",
        rate.alias("fee_bps"),
        nw.col("unpriced").fill_null(0).cast(nw.Int64()),
    )


def routing(fills: IntoFrameT, builder: str, by: str | Iterable[str] | None = None) -> IntoFrameT:
    """Count the fills through a builder, through another builder, and without a builder.

    Parameters
    ----------
    fills : DataFrame
        Fills of users while they had approved the builder, from
        `tk.builder_approved_fills_by_time`: ``px, sz, builder``, and ``twap_id``, ``dir``,
        ``liquidated_user``, which mark unroutable fills (without these columns, such fills count as
        direct). Any engine; repeated rows count once.
    builder : str
        Address of the builder.
    by : str or list of str, optional
        Groups, as for `revenue`.

    Returns
    -------
    DataFrame
        The engine of `fills`, sorted by the groups: the columns of `by`, then

        - ``fills``: number of fills; the sum of the next four columns.
        - ``routed``: number of fills that carry the builder.
        - ``elsewhere``: number of fills that carry another builder.
        - ``direct``: number of fills that carry no builder.
        - ``unroutable``: number of fills that cannot carry a builder.
        - ``volume``: volume of all fills, in USD.
        - ``routed_usd``: volume of the routed fills, in USD.
        - ``elsewhere_usd``: volume of the fills with another builder, in USD.
        - ``direct_usd``: volume of the fills without a builder, in USD.
        - ``unroutable_usd``: volume of the unroutable fills, in USD.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({"px": 100.0, "sz": [1.0, 2.0, 3.0, 4.0],
    ...                       "builder": ["0xb", "0xc", None, None],
    ...                       "twap_id": [None, None, None, 7]})
    >>> routing(fills, "0xb")[["fills", "routed_usd", "elsewhere_usd", "direct_usd"]]
       fills  routed_usd  elsewhere_usd  direct_usd
    0      4       100.0          200.0       300.0
    """
    keys = grouping.list_keys(by, _ROUTING_NAMES)
    frame = _classify_fills(fills, builder, keys)
    counts = ("fills", *ROUTES)
    money = ("volume", *(f"{way}_usd" for way in ROUTES))
    sums = [nw.col(name).sum() for name in (*counts, *money)]
    grouped = frame.group_by(*keys).agg(*sums) if keys else frame.select(*sums)
    result = grouped.select(
        *keys,
        *(nw.col(name).fill_null(0).cast(nw.Int64()) for name in counts),
        *(nw.col(name).fill_null(0.0) for name in money),
    )
    result = result.sort(*keys, nulls_last=True) if keys else result
    return frame_access.result_from_frame(
        result, {"fills": fills}, helper="builders.routing", by=keys
    )


def attach_rate(
    fills: IntoFrame,
    builder: str,
    by: str | Iterable[str] | None = None,
    *,
    weight: str = "usd",
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimate the share of eligible trading that a builder's users route through it.

    Parameters
    ----------
    fills : DataFrame
        As for `routing`, with ``user`` (any engine). Repeated rows count once.
    builder : str
        Address of the builder.
    by : str or list of str, optional
        Groups, as for `revenue`.
    weight : {"usd", "fills"}
        What the share is of: volume in USD, or number of fills.
    level : float, default 0.95
        Level of the interval.

    Returns
    -------
    DataFrame
        pandas, sorted by the groups: the columns of `by`, then

        - ``users``: number of users with routable fills.
        - ``n``: number of routable fills.
        - ``rate``: routed share of the routable trading, 0 to 1; missing if there is none.
        - ``low``: lower end of the interval over users; missing for fewer than two users, and if
          the rate is 0 or 1.
        - ``high``: upper end of the interval over users; missing if ``low`` is missing.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text, or a fill has no px or sz.
    ValueError
        If `weight` is something else, or `level` is not between 0 and 1.

    Notes
    -----
    The interval treats the fills of a user as one cluster: Taylor linearisation of the ratio
    (Cochran, 1977), on the logit scale, with Student's quantile.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({"user": ["a", "b"], "px": 100.0, "sz": [1.0, 3.0],
    ...                       "builder": ["0xb", None]})
    >>> attach_rate(fills, "0xb")[["users", "n", "rate"]]
       users  n  rate
    0      2  2  0.25
    """
    if weight not in {"usd", "fills"}:
        raise ValueError(f'weight must be "usd" or "fills", not {weight!r}')
    check_level(level)
    keys = grouping.list_keys(by, (*_ROUTING_NAMES, "user") if by != "user" else _ROUTING_NAMES)
    frame = _classify_fills(fills, builder, [*keys, "user"])
    above, below = ("routed", "_routable") if weight == "fills" else ("routed_usd", "_routable_usd")
    sums = [nw.col(name).sum() for name in dict.fromkeys(("_routable", above, below))]
    users = frame.group_by(*dict.fromkeys((*keys, "user"))).agg(*sums)
    names = users.columns
    rows = frame_access.pandas_columns(
        nw.to_native(users), "fills", names, [], ["_routable", above, below]
    )
    rows = rows[rows["_routable"] > 0].sort_values([*dict.fromkeys((*keys, "user"))])
    result = _attach_rates(rows, keys, above, below, level)
    facts = {**result_provenance({"fills": fills}), "helper": "builders.attach_rate", "by": keys}
    result.attrs["toolkit"] = {**facts, "level": level}
    return result


def _attach_rates(
    rows: pd.DataFrame, keys: Sequence[str], above: str, below: str, level: float
) -> pd.DataFrame:
    with explain_missing("analysis"):
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
    rates = pd.DataFrame(
        {
            "users": users.astype("int64"),
            "n": grouped["_routable"].sum().astype("int64"),
            "rate": rate,
            "low": 1 / (1 + np.exp(wide - logit)),
            "high": 1 / (1 + np.exp(-wide - logit)),
        }
    )
    if keys:
        return rates.reset_index()
    if rates.empty:
        rates.loc[0] = [0, 0, np.nan, np.nan, np.nan]
    return rates.astype({"users": "int64", "n": "int64"}).reset_index(drop=True)


def _classify_fills(fills: IntoFrame, builder: str, keys: Sequence[str]) -> Frame:
    """Return the fills with each route as 0 or 1, and with the volume of each route."""
    fills = drop_repeated_rows(fills, "fills")
    frame = frame_access.open_as_floats(fills, "fills", ["px", "sz"])
    needed = (
        "px",
        "sz",
        "builder",
        *grouping.own_columns(keys),
        *(["coin"] if "dex" in keys else []),
    )
    if set(keys) & set(grouping.CALENDAR):
        needed = (*needed, "time")
    frame_access.require_columns(frame, needed, "fills")
    frame_access.require_values(frame, ("px", "sz"), "fills")
    if "user" in keys:
        frame_access.require_some_values(frame, "user", "fills", "says whose each fill is")
    fill_kinds.warn_missing_directions(frame, "fills")
    column_names = frame.columns
    is_unrouted = nw.col("builder").is_null()
    is_builder = (lower_address("builder") == builder.lower()).fill_null(False)
    frame = frame.filter(~fill_kinds.is_conversion(column_names))
    forced = fill_kinds.is_forced_close(column_names) | ~fill_kinds.is_market_trade(column_names)
    if "twap_id" in column_names:
        forced = forced | ~nw.col("twap_id").is_null()
    routes = {
        "routed": is_builder,
        "elsewhere": ~is_unrouted & ~is_builder,
        "direct": is_unrouted & ~forced,
        "unroutable": is_unrouted & forced,
    }
    zero, usd = nw.lit(0.0), nw.col("volume")
    frame = frame.with_columns(volume=nw.col("px") * nw.col("sz"), fills=nw.lit(1))
    frame = frame.with_columns(
        **{
            route: nw.when(is_so).then(nw.lit(1)).otherwise(nw.lit(0))
            for route, is_so in routes.items()
        },
        **{
            f"{route}_usd": nw.when(is_so).then(usd).otherwise(zero)
            for route, is_so in routes.items()
        },
    )
    frame = frame.with_columns(
        _routable=nw.col("fills") - nw.col("unroutable"),
        _routable_usd=nw.col("volume") - nw.col("unroutable_usd"),
    )
    return grouping.add_groups(frame, keys)
