"""Recompute the exchange's closed PnL from the fills themselves, and find missing fills."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from toolkit.analysis.common import columns, directions, fees, fixed_point
from toolkit.analysis.common.owners import refuse_mixed_chains, refuse_several_accounts
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.analysis.pnl import fill_order
from toolkit.analysis.pnl.spot_basis import find_swaps, walk_spot_fills
from toolkit.rules.closed_pnl import apply_perp_fill, apply_perp_fill_2023

Rule = Literal["current", "2023"]


def audit(fills: Any, sz_decimals: Any, *, rule: Rule = "current") -> Any:
    """Recompute the closed PnL of every fill by the exchange's rules for perps and for spot.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or many accounts in any order, as `tk.user_fills_by_time` gives them
        (pandas or eager Polars; numbers float or exact). Columns ``coin, px, sz, side, time,
        start_position, closed_pnl``; ``user`` and ``tx_index`` where there are several accounts
        or ties; ``fee`` and ``fee_token`` for spot.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).
    rule : {"current", "2023"}
        How the exchange accounts: as it does for all that the service has, or as it did in 2023,
        for recordings from then.

    Returns
    -------
    DataFrame
        The same rows and index (rows given twice stand once) with three more columns:

        - ``expected_closed_pnl``: closed PnL in USD by the rule; missing where the history does
          not start flat, after a break until the position is flat again, and for perps without
          `sz_decimals`. For spot and outcome tokens: missing while some of what is held came
          from outside the fills, so that its cost is not known;
        - ``difference``: ``closed_pnl - expected_closed_pnl``;
        - ``chain_break``: True where a fill does not start from the position that the one
          before it (same account and coin) left, so that fills in between are missing. On spot
          a transfer, staking or priority gas does the same, and costs nothing of the rest's
          cost basis; one unit of the recorded precision is rounding and no break.

    Raises
    ------
    MissingColumns
        If a column is missing, holds text, or has missing values.
    ValueError
        If there is no such rule.

    Notes
    -----
    Rows are put in order by time, by ``tx_index`` where every row has one, and within such a
    tie by the chain of positions. Arithmetic is in whole numbers; a float price or size is read
    as the shortest decimal text that gives that float, which is the text of the wire.
    Rules: `toolkit.rules.closed_pnl`, and for spot and outcome tokens `toolkit.rules.spot_cost`
    (docs/live_service.md, sections 3 and 7), in the token that they are quoted in.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0], "sz": [2.0, 1.0], "side": ["B", "A"],
    ...     "time": pd.to_datetime([0, 1], unit="ms", utc=True), "start_position": [0.0, 2.0],
    ...     "closed_pnl": [0.0, 10.0]})
    >>> audit(fills, {"BTC": 5})[["expected_closed_pnl", "difference", "chain_break"]]
       expected_closed_pnl  difference  chain_break
    0                  0.0         0.0        False
    1                 10.0         0.0        False
    """
    fills = count_once(fills, "fills")
    refuse_several_accounts(fills, "fills")
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be one of {', '.join(get_args(Rule))}, not {rule!r}")
    frame = nw.from_native(columns.normalise_frame(fills), eager_only=True)
    columns.require_columns(frame, fill_order.NEEDED, "fills")
    kind = columns.number_kind(frame, fill_order.NUMBERS, "fills")
    fees.warn_missing_tokens(frame, "fills")
    directions.warn_missing_directions(frame, "fills", outcomes_alone=True)
    read = fill_order.integer_fills(frame, fill_order.size_decimals(sz_decimals))
    order = fill_order.execution_order(frame, read)
    refuse_mixed_chains(read.chain.tolist(), read.start, read.end, order, frame.columns)
    expected, broken = _replay_perps(read, order, rule)
    walk = walk_spot_fills(read, order, find_swaps(frame, read))
    for row, closed in walk.expected.items():
        expected[row] = None if closed is None else closed * read.unit
    for row in walk.gap:
        broken[row] = True
    difference = [None if e is None else c - e for c, e in zip(read.closed, expected, strict=True)]
    return _add_columns(
        fills,
        {
            "expected_closed_pnl": _number_column(expected, read.decimals, kind),
            "difference": _number_column(difference, read.decimals, kind),
            "chain_break": np.array(broken, dtype=bool),
        },
    )


def _replay_perps(
    read: fill_order.IntegerFills, order: Sequence[int], rule: Rule
) -> tuple[list[int | None], list[bool]]:
    """Walk along every chain; None where the entry price cannot be known."""
    expected: list[int | None] = [None] * len(order)
    broken = [False] * len(order)
    chains, starts, ends = read.chain.tolist(), read.start, read.end
    changes, prices, ticks, unit = read.change, read.px, read.tick, read.unit
    spot = read.spot
    apply = apply_perp_fill if rule == "current" else apply_perp_fill_2023
    last, position, known, entry = -1, 0, False, 0
    for row in order:
        if spot[row]:
            continue
        start = starts[row]
        if chains[row] != last or start != position:
            broken[row] = chains[row] == last
            last, known, entry = chains[row], start == 0, 0
        position = ends[row]
        if not ticks[row]:
            continue
        if known:
            gain, _, entry = apply(start, entry, changes[row], prices[row], ticks[row])
            expected[row] = gain * unit
        elif position == 0 or (position > 0) != (start > 0):
            # Flat or through zero: whatever stands now was opened here.
            _, _, entry = apply(0, 0, position, prices[row], ticks[row]) if position else (0, 0, 0)
            known = True
    return expected, broken


def _number_column(values: Sequence[int | None], decimals: int, kind: columns.Numbers) -> Any:
    return (fixed_point.to_decimal if kind == "exact" else fixed_point.to_float)(values, decimals)


def _add_columns(fills: Any, made: Mapping[str, Any]) -> Any:
    """Add columns by position, leaving rows, index and provenance as they are."""
    if isinstance(fills, pd.DataFrame):
        return fills.assign(**{name: _pandas_column(column) for name, column in made.items()})
    frame = nw.from_native(fills, eager_only=True)
    space = frame.implementation
    series = {
        name: nw.from_arrow(pa.table({name: column}), backend=space)[name]
        for name, column in made.items()
    }
    return frame.with_columns(**series).to_native()


def _pandas_column(column: Any) -> Any:
    if isinstance(column, pa.Array):
        return pd.array(column, dtype=pd.ArrowDtype(column.type))
    return column
