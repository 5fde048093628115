"""Funding hours: the share of an account's position hours that have a funding row.

Funding is paid at each full hour for each open position. The service has funding rows only of times
at which the account had approved a builder, and a missing row looks like funding of 0. A row that
sums n payments covers the n hours up to its time (docs/live_service.md, section 5).

The fills state whether a position is open after each fill, and so at each full hour until the next
fill. The computation only sums over pairs of neighbours, so that it runs on every engine.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from toolkit.analysis.common import frame_access, grouping, markets
from toolkit.analysis.common.frame_access import Frame
from toolkit.analysis.common.provenance import frame_provenance
from toolkit.analysis.common.row_owners import FillOwners, keep_own_rows, lower_address
from toolkit.analysis.funding.payment_counts import SAMPLES, span_hours
from toolkit.times import HOUR, to_ms

NEEDED = ("coin", "time", "side", "sz", "start_position")
KEYS = ("user", "coin", "dex")
# Sizes of perps have at most six decimals: whole numbers of this unit compare exactly.
_UNIT = 1e6
_PAIR = ("_user", "coin")
_COIN = nw.col("coin").cast(nw.String())
_NEVER = -1


def count_position_hours(
    fills: Any, funding: Any, keys: Sequence[str], names: Sequence[str]
) -> Frame | None:
    """Return the number of hours with an open position, and of those with a funding row.

    - ``fills``, ``funding``: see `attribution`
    - ``keys``: the groups; hours are counted by user, coin and dex
    - ``names``: the accounts of the fills, if the fills do not state them

    Returns: the groups with ``_held`` (hours with an open position) and ``_paid_hours`` (those of
    them with a funding row), summed over coins. The hours of a coin begin at its first fill. They
    end at the last fill or payment of the account, or at the time of the request. None if the fills
    do not state positions.
    """
    column_names = nw.from_native(fills).columns
    payments: Frame = nw.from_native(frame_access.normalise_frame(funding))
    split = "user" in column_names
    if any(name not in column_names for name in NEEDED) or (
        split and "user" not in payments.columns
    ):
        return None
    few = frame_access.keep_columns(fills, (*NEEDED, "user"))
    trades = frame_access.open_as_floats(few, "fills", ("sz", "start_position"))
    payments = keep_own_rows(payments, "user", FillOwners(trades, names), "funding")
    user = lower_address("user") if split else nw.lit("")
    changes = _position_changes(_open_after(_perp_sizes(trades, user)))
    turns = frame_access.stack_frames([changes, _payment_turns(payments, user)])
    return _sum_hours(_count_hours(turns, common_end(fills, funding)), keys)


def _perp_sizes(fills: Frame, user: nw.Expr) -> Frame:
    start, size = nw.col("start_position"), nw.col("sz")
    end = start + nw.when(nw.col("side") == "B").then(size).otherwise(-size)
    return grouping.add_ms(fills.filter(markets.is_perp(nw.col("coin")))).select(
        "_ms", coin=_COIN, _user=user, _start=_integer_size(start), _after=_integer_size(end)
    )


def _integer_size(size: nw.Expr) -> nw.Expr:
    known = nw.when(~(size.is_null() | size.is_nan())).then(size).otherwise(nw.lit(0.0))
    return (known * _UNIT).round(0).cast(nw.Int64())


def _open_after(fills: Frame) -> Frame:
    """Return for each coin and millisecond whether a position is open after it.

    The order of fills in one millisecond is not known, but each fill starts from the position at
    which the fill before it ends. So the last position is the one at which a fill ends and from
    which no other fill starts. If there is none, the fills returned to their first position.
    """
    place = [*_PAIR, "_ms"]
    edges = frame_access.stack_frames(
        [
            fills.select(*place, _at=nw.col("_after"), _net=nw.lit(1).cast(nw.Int64())),
            fills.select(*place, _at=nw.col("_start"), _net=nw.lit(-1).cast(nw.Int64())),
        ]
    )
    ends = edges.group_by(*place, "_at").agg(nw.col("_net").sum()).filter(nw.col("_net") > 0)
    ends = ends.with_columns(_open=nw.when(nw.col("_at") != 0).then(1).otherwise(0))
    return ends.group_by(*place).agg(nw.col("_open").max())


def _position_changes(ends: Frame) -> Frame:
    """Return each change of a position, its sort key, and the time of the next change."""
    before = nw.col("_open").shift(1).over(*_PAIR, order_by="_ms")
    after = nw.col("_ms").shift(-1).over(*_PAIR, order_by="_ms")
    ends = ends.with_columns(_before=before, _next=after)
    change = nw.col("_open") - nw.col("_before").fill_null(0)
    return ends.select(
        *_PAIR,
        *_integer_columns(
            _ms=nw.col("_ms"), _next=nw.col("_next").fill_null(_NEVER), _change=change
        ),
        *_integer_columns(_open=nw.col("_open"), _row=nw.lit(0)),
        *_integer_columns(_place=nw.col("_ms") * 2),
    )


def _payment_turns(funding: Frame, user: nw.Expr) -> Frame:
    payments = grouping.add_ms(funding)
    column_names = payments.columns
    span = span_hours(column_names).cast(nw.Int64())
    rows = payments.select(coin=_COIN, _user=user, _ms=_start_of_hour(nw.col("_ms")), _span=span)
    if SAMPLES in column_names:
        rows = _repeat_by_hour(rows)
    rows = rows.select(*_PAIR, "_ms").unique([*_PAIR, "_ms"])
    zero = nw.lit(0)
    return rows.select(
        *_PAIR,
        *_integer_columns(_ms=nw.col("_ms"), _next=nw.col("_ms"), _change=zero),
        *_integer_columns(_open=zero, _row=nw.col("_ms") * 0 + 1),
        # A fill in the same millisecond as the payment comes after it.
        *_integer_columns(_place=nw.col("_ms") * 2 - 1),
    )


def _repeat_by_hour(rows: Frame) -> Frame:
    """Return rows that sum several payments once for each of their hours.

    Of a lazy frame one column is read, to find the largest number of hours.
    """
    most = rows.select(_most=nw.col("_span").max()).lazy().collect("pyarrow")
    longest = int(most["_most"].to_list()[0] or 1)
    if longest == 1:
        return rows
    back = [
        rows.filter(nw.col("_span") > k).with_columns(_ms=nw.col("_ms") - k * HOUR)
        for k in range(1, longest)
    ]
    return frame_access.stack_frames([rows, *back])


def _integer_columns(**expressions: nw.Expr) -> list[nw.Expr]:
    return [expression.cast(nw.Int64()).alias(name) for name, expression in expressions.items()]


def _start_of_hour(ms: nw.Expr) -> nw.Expr:
    return ms - ms % HOUR


def _count_hours(turns: Frame, until: int) -> Frame:
    """Return the position hours of each change, and whether each payment had a position."""
    turns = turns.with_columns(
        _position=nw.col("_change").cum_sum().over(*_PAIR, order_by="_place"),
        _last=nw.col("_ms").max().over("_user"),
    )
    last = nw.when(nw.col("_last") > until).then(nw.col("_last")).otherwise(nw.lit(until))
    turns = turns.with_columns(
        _next=nw.when(nw.col("_next") == _NEVER).then(last).otherwise(nw.col("_next"))
    )
    hours = (_start_of_hour(nw.col("_next")) - _start_of_hour(nw.col("_ms"))) // HOUR
    held = nw.when(nw.col("_open") == 1).then(hours).otherwise(nw.lit(0))
    paid = nw.when(nw.col("_position") > 0).then(nw.col("_row")).otherwise(nw.lit(0))
    return turns.select(*_PAIR, *_integer_columns(_held=held, _paid_hours=paid))


def _sum_hours(hours: Frame, keys: Sequence[str]) -> Frame:
    groups = [key for key in keys if key in KEYS]
    hours = hours.with_columns(user=nw.col("_user"), dex=markets.dex_of(nw.col("coin")))
    sums = [nw.col(name).sum() for name in ("_held", "_paid_hours")]
    made = hours.group_by(*groups).agg(*sums) if groups else hours.select(*sums)
    return made.select(
        *groups, *(nw.col(name).fill_null(0).cast(nw.Int64()) for name in ("_held", "_paid_hours"))
    )


def common_end(fills: Any, funding: Any) -> int:
    """Return the end (ms) of the time that both frames were requested for; 0 if not known."""
    of_fills, of_funding = frame_provenance(fills), frame_provenance(funding)
    # If the user removed fills, the end of the remaining ones is not known.
    if not of_fills or not of_funding or of_fills.get("rows") != len(fills):
        return 0
    known = (of_fills.get("asked_at"), of_funding.get("asked_at"))
    times = [to_ms(time) for time in known if isinstance(time, str)]
    end = of_fills.get("parameters", {}).get("end")
    return min([*times, end] if isinstance(end, int) else times, default=0)
