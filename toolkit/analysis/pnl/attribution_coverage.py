"""Coverage of an attribution: its sources, and the share of funding that is known."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa

from toolkit.analysis.common import frame_access, grouping
from toolkit.analysis.common.frame_access import Frame, NumberKind
from toolkit.analysis.pnl.attribution_sources import FEES
from toolkit.analysis.pnl.funding_hours import KEYS

NO_ROWS = "not funding (no rows)"
CURVE_GAPS = {
    "unpriced_fees": "fees in other tokens",
    "unknown_flows": "flows of unknown amount",
    "missing_amounts": "funding rows of unknown amount",
}
"""Counts of what the sums of a curve leave out. All of its fills have their amounts."""


def source_state(name: str, keys: Sequence[str], possible: Sequence[str]) -> str:
    """Return the name of a source, or why it cannot be grouped by these keys."""
    missing = [key for key in keys if key not in possible]
    return f"not {name} (it has no {', '.join(missing)})" if missing else name


def curve_coverage(row: pd.Series) -> str:
    """Return the sources that a curve covers, and the number of rows without a known amount."""
    gaps = [f"without {row[name]} {words}" for name, words in CURVE_GAPS.items() if row[name]]
    return ", ".join([row["covers"], *gaps])


def mark_uncovered(
    whole: Frame,
    keys: Sequence[str],
    kind: NumberKind,
    covers: Mapping[str, str],
    hours: Frame | None,
) -> Frame:
    """Return the sums with missing values for what is not covered, and with `covers`.

    `hours` is the result of `funding_hours.count_position_hours`.
    """
    number = frame_access.number_type(kind)
    missing = frame_access.missing_literal(kind)
    whole = whole.with_columns(covers=nw.lit(", ".join(covers.values())))
    if covers.get("unrealised") == "unrealised":
        # A change between two times is unknown if one of its two values is.
        known = nw.when(nw.col("_no_unrealised") == 0).then(nw.col("unrealised"))
        whole = whole.with_columns(unrealised=known)
    else:
        whole = whole.with_columns(unrealised=missing)
    if covers.get("ledger") != "ledger":
        whole = whole.with_columns(ledger=missing)
    if covers.get("funding") != "funding":
        whole = whole.with_columns(funding=missing, equity_change=missing)
        return whole.with_columns(covers=_add_unknown_count(nw.col("covers")))
    whole = _add_hours(whole.with_columns(_one=nw.lit(1)), keys, hours)
    whole = whole.with_columns(_unpaid=_misses_payments(keys, has_hours=hours is not None))
    change = (nw.col("_perp_net") + nw.col("ledger")).cast(number)
    return whole.with_columns(
        funding=nw.when(~nw.col("_unpaid")).then(nw.col("funding")),
        equity_change=nw.when(~nw.col("_unpaid")).then(change),
        covers=_add_unknown_count(
            _add_outside_count(
                _coverage_text(
                    covers, "in all" if any(key in grouping.CALENDAR for key in keys) else ""
                )
            )
        ),
    )


def mark_unknown(whole: Frame) -> Frame:
    """Return the sums with missing values if no fill states the amount, with the share known."""
    rows = nw.col("_rows")
    closed, fee = (nw.col(name) for name in ("_no_closed_pnl", "_no_fee"))
    no_closed, no_fee = (rows > 0) & (closed == rows), (rows > 0) & (fee == rows)
    lost = {
        "closed_pnl": no_closed,
        **dict.fromkeys((*FEES, "fees_in_cost"), no_fee),
        "net": no_closed | no_fee,
        "equity_change": no_closed | no_fee,
    }
    share = nw.concat_str(
        nw.lit("fills ("),
        (rows - closed).cast(nw.String()),
        nw.lit(" of "),
        rows.cast(nw.String()),
        nw.lit(" closed PnLs, "),
        (rows - fee).cast(nw.String()),
        nw.lit(" of "),
        rows.cast(nw.String()),
        nw.lit(" fees known)"),
        nw.col("covers").str.slice(len("fills")),
    )
    return whole.with_columns(
        **{n: nw.when(~gone).then(nw.col(n)) for n, gone in lost.items()},
        covers=nw.when((closed + fee) > 0).then(share).otherwise(nw.col("covers")),
    )


def _add_outside_count(words: nw.Expr) -> nw.Expr:
    """Return the text with the number of funding rows outside the time of the fills."""
    rows = nw.col("_outside").cast(nw.String())
    noun = nw.when(nw.col("_outside") == 1).then(nw.lit("row")).otherwise(nw.lit("rows"))
    parts = (nw.lit(", without "), rows, nw.lit(" funding "), noun)
    return (
        nw.when(nw.col("_outside") > 0)
        .then(nw.concat_str(words, *parts, nw.lit(" outside the time of the fills")))
        .otherwise(words)
    )


def _add_unknown_count(words: nw.Expr) -> nw.Expr:
    """Return the text with the number of positions without an unrealised PnL."""
    unknown = nw.col("_no_unrealised")
    noun = nw.when(unknown == 1).then(nw.lit(" position")).otherwise(nw.lit(" positions"))
    parts = (nw.lit(", without the unrealised PnL of "), unknown.cast(nw.String()), noun)
    return nw.when(unknown > 0).then(nw.concat_str(words, *parts)).otherwise(words)


def _coverage_text(covers: Mapping[str, str], of_what: str) -> nw.Expr:
    """Return what each row covers, with the share of position hours."""
    part = nw.concat_str(
        nw.lit("funding ("),
        nw.col("_paid_hours").cast(nw.String()),
        nw.lit(" of "),
        nw.col("_held").cast(nw.String()),
        nw.lit(f" position hours{' ' * bool(of_what)}{of_what})"),
    )
    before, after = ", ".join(covers.values()).split("funding", 1)
    return (
        nw.when(nw.col("_unpaid"))
        .then(nw.lit(f"{before}{NO_ROWS}{after}"))
        .when(nw.col("_paid_hours") < nw.col("_held"))
        .then(nw.concat_str(nw.lit(before), part, nw.lit(after)))
        .otherwise(nw.col("covers"))
    )


def _add_hours(whole: Frame, keys: Sequence[str], hours: Frame | None) -> Frame:
    """Add `_held` and `_paid_hours` to each row; calendar groups get those of the entire time."""
    if hours is None:
        return whole.with_columns(_held=nw.lit(0), _paid_hours=nw.lit(0))
    groups = [key for key in keys if key in KEYS]
    right = _convert_engine(hours, whole).rename({name: f"_of_{name}" for name in groups})
    right = right.with_columns(_one=nw.lit(1))
    right_on = [*(f"_of_{name}" for name in groups), "_one"]
    options: Any = {"left_on": [*groups, "_one"], "right_on": right_on}
    joined: Frame = whole.join(right, how="left", **options)  # type: ignore[arg-type]  # one engine
    return joined.with_columns(
        nw.col(name).fill_null(0).cast(nw.Int64()) for name in ("_held", "_paid_hours")
    )


def _convert_engine(frame: Frame, other: Frame) -> Frame:
    """Return a frame in the engine of another one; Arrow requires equal types to join."""
    like = nw.to_native(other)
    if not isinstance(like, pa.Table):
        return frame
    table = pa.Table.from_pandas(nw.to_native(frame), preserve_index=False)
    for place, name in enumerate(table.column_names):
        if name in like.column_names:
            table = table.set_column(place, name, table[name].cast(like.schema.field(name).type))
    made: Frame = nw.from_native(table)
    return made


def _misses_payments(keys: Sequence[str], *, has_hours: bool) -> nw.Expr:
    """Return whether funding rows are missing although there were positions.

    `builderApprovedFundingByTime` has no rows of accounts without an approval. So an account with
    perp fills and no rows did not necessarily pay nothing. The same holds for a coin with open
    positions at full hours, and for a day without rows if a row of any position hour is missing or
    if position hours are not known. An account without fills misses nothing.
    """
    account = ["user"] if "user" in keys else ["_one"]
    group = [key for key in keys if key in KEYS] or ["_one"]
    row, payments, perps = nw.col("_payments"), nw.col("_payments").sum(), nw.col("_perps").sum()
    is_unpaid = (payments.over(*account) == 0) & (perps.over(*account) > 0)
    is_unpaid = is_unpaid | ((payments.over(*group) == 0) & (nw.col("_held") > 0))
    gaps = nw.col("_paid_hours") < nw.col("_held") if has_hours else perps.over(*group) > 0
    return is_unpaid | ((row == 0) & gaps)
