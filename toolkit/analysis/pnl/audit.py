"""Audit: recompute the exchange's closed PnL from fills, and find missing fills."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrameT

from toolkit.analysis.common import fill_kinds, fixed_point, frame_access, memory_frames, usd_values
from toolkit.analysis.common.account_batches import run_by_account
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import refuse_several_accounts
from toolkit.analysis.pnl import execution_sequence
from toolkit.analysis.pnl.positions import PerpRule, add_spot_states, walk_positions
from toolkit.analysis.pnl.single_account_check import check_one_account
from toolkit.rules.closed_pnl import apply_perp_fill, apply_perp_fill_2023

Rule = Literal["current", "2023"]
RULES: dict[Rule, PerpRule] = {"current": apply_perp_fill, "2023": apply_perp_fill_2023}


def audit(
    fills: IntoFrameT, sz_decimals: execution_sequence.SizeDecimals, *, rule: Rule = "current"
) -> IntoFrameT:
    """Recompute the closed PnL of every fill by the exchange's rules for perps and for spot.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them
        (pandas, Polars, DuckDB, PySpark; numbers float or exact). Columns
        ``coin, px, sz, side, time, start_position, closed_pnl``; ``user`` if there are several
        accounts; ``tx_index`` if there are ties; ``fee`` and ``fee_token`` for spot. Do not fetch
        them with ``aggregate_by_time=True``: merged fills do not show the position before each
        fill, so ``chain_break`` would be True although no fill is missing.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).
    rule : {"current", "2023"}
        The rule of the exchange: the current one, which holds for all data of the service, or the
        rule of 2023, for recordings from then.

    Returns
    -------
    DataFrame
        The same rows with the same index (repeated rows once), with three more columns:

        - ``expected_closed_pnl``: closed PnL by the rule, in USD. For perps it is missing before
          the position is flat for the first time, after a break until the position is flat again,
          and if `sz_decimals` does not have the coin. For spot and outcome tokens it is missing
          while a part of the balance came from outside the fills, because its cost is not known
        - ``difference``: ``closed_pnl - expected_closed_pnl``, in USD
        - ``chain_break`` bool: True if the fill does not start from the position after the fill
          before it (same account and coin), so that fills between them are missing. On spot, a
          transfer, staking or priority gas has the same effect and does not change the cost of the
          remaining tokens; a difference of one unit of the recorded precision is rounding

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If `rule` is unknown.

    Notes
    -----
    Rows are sorted by time, by ``tx_index`` if every row has one, and within a tie by the chain of
    positions. Arithmetic uses integers. A float price or size counts as the shortest decimal text
    that has this float as its value, which is the text of the wire. Rules:
    `toolkit.rules.closed_pnl`, which also has the rule of 2023, and for spot and outcome tokens
    `toolkit.rules.spot_cost` (docs/live_service.md, sections 3 and 7), in their quote token.

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
    fills = drop_repeated_rows(fills, "fills")
    refuse_several_accounts(fills, "fills")
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(RULES)}")
    sizes = execution_sequence.size_decimals(sz_decimals)
    run = partial(audit, sz_decimals=sizes, rule=rule)
    made: Any = run_by_account(run, {"fills": fills})
    opened: Any = nw.from_native(fills)
    if made is None and isinstance(opened, nw.LazyFrame):
        table = run(nw.to_native(opened.collect("pyarrow")))
        made = memory_frames.result_from_table(table, {"fills": fills})
    if made is not None:
        result: IntoFrameT = made
        return result
    native: Any = frame_access.normalise_frame(fills)
    frame = nw.from_native(native, eager_only=True)
    frame_access.require_columns(frame, execution_sequence.NEEDED, "fills")
    kind = frame_access.number_kind(frame, execution_sequence.NUMBERS, "fills")
    usd_values.warn_missing_tokens(frame, "fills")
    fill_kinds.warn_missing_directions(frame, "fills", outcomes_alone=True)
    integers = execution_sequence.integer_fills(frame, sizes)
    order = execution_sequence.execution_order(frame, integers)
    check_one_account(fills, frame, integers, order)
    walk = walk_positions(integers, order, RULES[rule])
    add_spot_states(frame, integers, order, walk)
    difference = [
        None if e is None else c - e for c, e in zip(integers.closed, walk.expected, strict=True)
    ]
    result = _add_columns(
        fills,
        {
            "expected_closed_pnl": _number_column(walk.expected, integers.decimals, kind),
            "difference": _number_column(difference, integers.decimals, kind),
            "chain_break": np.array(walk.broken, dtype=bool),
        },
    )
    return result


def _number_column(
    values: Sequence[int | None], decimals: int, kind: frame_access.NumberKind
) -> Any:
    return (fixed_point.to_decimal if kind == "exact" else fixed_point.to_float)(values, decimals)


def _add_columns(fills: Any, made: Mapping[str, Any]) -> Any:
    """Return the fills with more columns; rows, index and provenance are unchanged."""
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
