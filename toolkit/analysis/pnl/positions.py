"""Positions after each fill: size, average entry price by the exchange's rule, closed PnL."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrame, IntoFrameT

from toolkit.analysis.common import fill_kinds, fixed_point, frame_access, memory_frames, usd_values
from toolkit.analysis.common.account_batches import run_by_account
from toolkit.analysis.common.repeated_rows import drop_repeated_rows
from toolkit.analysis.common.row_owners import lower_address, refuse_several_accounts
from toolkit.analysis.common.timestamps import aware_ms
from toolkit.analysis.pnl import execution_sequence
from toolkit.analysis.pnl.single_account_check import check_one_account
from toolkit.analysis.pnl.spot_cost_basis import find_swaps, walk_spot_fills
from toolkit.errors import MissingColumns
from toolkit.rules.closed_pnl import apply_perp_fill, entry_price
from toolkit.times import Time


class PositionStates(NamedTuple):
    """The state after each fill, by row; None if it is not known."""

    entry: list[int | None]
    expected: list[int | None]
    broken: list[bool]
    gap: list[int]


PerpRule = Callable[[int, int, int, int, int], tuple[int, int, int]]
"""`apply_perp_fill`, or the function of another rule."""

_FINER = 10  # extra decimals of a spot token's average cost, compared with prices

MarkPrices = Mapping[str, float | Decimal] | IntoFrame
"""Coin -> mark price, or a frame with ``name`` and ``mark_px``."""


def positions(fills: IntoFrameT, sz_decimals: execution_sequence.SizeDecimals) -> IntoFrameT:
    """Return the position after every fill: its size, its average entry price, its closed PnL.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them
        (pandas, Polars, DuckDB, PySpark; numbers float or exact). Columns ``coin, px,
        sz, side, time, start_position, closed_pnl``; ``user`` if there are several accounts;
        ``tx_index`` if there are ties; ``fee`` and ``fee_token`` for spot.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).
        The entry price of a coin that it does not have is missing.

    Returns
    -------
    DataFrame
        In the engine of `fills`: one row per fill, in the order of execution, by user and coin:

        - ``user``: the account in lower case, if the fills have this column
        - ``coin``: the coin
        - ``time``: the time of the fill, UTC
        - ``start_position``: position before the fill, in units of the coin, positive for long
        - ``change``: change of the position by the fill, in units of the coin, positive for buys
        - ``position``: position after the fill, ``start_position + change``, positive for long
        - ``entry_px``: average entry price of the position after the fill, by the exchange's rule;
          for spot and outcome tokens the average cost, including fees in the token. It is missing
          if the position is flat, or if the history does not determine it
        - ``px``: price of the fill, in USD
        - ``closed_pnl``: closed PnL that the exchange states, in USD
        - ``expected_closed_pnl``: closed PnL by the rule, in USD; missing if it is not known
        - ``chain_break`` bool: True if fills before this one are missing, or if spot tokens came or
          left without a fill
        - ``gap``: size that came (+) or left (-) before this fill without a fill, in units of the
          coin; 0 if there is no break. On spot a difference of one unit of the recorded precision
          is rounding and no gap

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.

    Notes
    -----
    The rule: an exact entry notional grows by px * sz when a fill opens, and shrinks by the closed
    share when a fill closes. The entry price is notional / size, **truncated** to 6 - szDecimals
    decimals; `tk.pnl.audit` checks this rule with the closed PnL of the fills (docs/accounting.md,
    "The check against the exchange"). Spot and outcome tokens have an average cost that is not
    truncated; tokens of a negative gap leave at this cost, tokens of a positive gap have an unknown
    cost (docs/live_service.md, sections 3 and 7). A lazy frame is read a few accounts at a time.
    Repeated rows count once.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 101.0, 110.0], "sz": [2.0, 1.0, 2.0],
    ...     "side": ["B", "B", "A"], "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "start_position": [0.0, 2.0, 3.0], "closed_pnl": [0.0, 0.0, 19.4]})
    >>> positions(fills, {"BTC": 5})[["position", "entry_px", "expected_closed_pnl"]]
       position  entry_px  expected_closed_pnl
    0       2.0     100.0                  0.0
    1       3.0     100.3                  0.0
    2       1.0     100.3                 19.4
    """
    fills = drop_repeated_rows(fills, "fills")
    sizes = execution_sequence.size_decimals(sz_decimals)
    run = partial(positions, sz_decimals=sizes)
    if (divided := run_by_account(run, {"fills": fills})) is not None:
        all_accounts: IntoFrameT = divided
        return all_accounts
    frame, kind = read_position_fills(fills)
    usd_values.warn_missing_tokens(frame, "fills")
    fill_kinds.warn_missing_directions(frame, "fills", outcomes_alone=True)
    integers = execution_sequence.integer_fills(frame, sizes)
    order = sort_by_chain(fills, frame, integers)
    walk = walk_positions(integers, order)
    entry, finer = add_spot_states(frame, integers, order, walk)
    made = {
        **identity_columns(frame, order),
        "start_position": memory_frames.number_column(
            take_rows(integers.start, order), integers.size_decimals, kind
        ),
        "change": memory_frames.number_column(
            [integers.end[row] - integers.start[row] for row in order], integers.size_decimals, kind
        ),
        "position": memory_frames.number_column(
            take_rows(integers.end, order), integers.size_decimals, kind
        ),
        "entry_px": memory_frames.number_column(
            take_rows(entry, order), integers.px_decimals + finer, kind
        ),
        "px": memory_frames.number_column(
            take_rows(integers.px, order), integers.px_decimals, kind
        ),
        "closed_pnl": memory_frames.number_column(
            take_rows(integers.closed, order), integers.decimals, kind
        ),
        "expected_closed_pnl": memory_frames.number_column(
            take_rows(walk.expected, order), integers.decimals, kind
        ),
        "chain_break": pa.array(take_rows(walk.broken, order), type=pa.bool_()),
        "gap": memory_frames.number_column(
            take_rows(walk.gap, order), integers.size_decimals, kind
        ),
    }
    return memory_frames.result_from_table(pa.table(made), {"fills": fills}, helper="pnl.positions")


def add_spot_states(
    frame: nw.DataFrame[Any],
    integers: execution_sequence.IntegerFills,
    order: Sequence[int],
    walk: PositionStates,
) -> tuple[list[int | None], int]:
    """Add spot and outcome tokens to a walk; return entry prices and their extra decimals."""
    spot = walk_spot_fills(integers, order, find_swaps(frame, integers))
    if not spot.basis:
        return walk.entry, 0
    unit = 10**_FINER
    entry = [None if px is None else px * unit for px in walk.entry]
    for row, basis in spot.basis.items():
        closed = spot.expected[row]
        walk.expected[row] = None if closed is None else closed * integers.unit
        if basis.size and basis.is_known:
            entry[row] = (2 * basis.cost * unit + basis.size) // (2 * basis.size)
    for row, size in spot.gap.items():
        walk.broken[row], walk.gap[row] = True, size
    return entry, _FINER


def unrealised(
    fills: IntoFrameT,
    marks: MarkPrices,
    sz_decimals: execution_sequence.SizeDecimals,
    at: Time | None = None,
) -> IntoFrameT:
    """Return the open positions and their unrealised PnL at given mark prices.

    Parameters
    ----------
    fills, sz_decimals
        See `tk.pnl.positions`.
    marks : mapping of coin to price, or DataFrame
        Mark prices: a dict, or a frame of `tk.meta_and_asset_ctxs` (``name``, ``mark_px``).
    at : int or datetime, optional
        A time in milliseconds or with a time zone. Fills up to and including this time count. By
        default all fills.

    Returns
    -------
    DataFrame
        In the engine of `fills`: one row per open perp position, by user and coin, with columns as
        in the positions of `tk.batch_clearinghouse_states`:

        - ``user``: the account, if the fills have this column
        - ``coin``: the coin
        - ``szi``: size of the position in units of the coin, positive for long
        - ``entry_px``: average entry price, in USD; missing if `sz_decimals` does not have the
          coin, or if the history does not determine it
        - ``mark_px``: mark price, in USD; missing if `marks` does not have it
        - ``position_value``: size times mark price, in USD, never negative; missing if the mark
          price is
        - ``unrealized_pnl``: ``szi * (mark_px - entry_px)``, in USD; missing if one of the prices
          is

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.

    Notes
    -----
    The entry price is truncated as the exchange does it when a position is closed, so that
    unrealised PnL and later closed PnL add up to the last digit.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0], "sz": [2.0], "side": ["A"], "start_position": [0.0],
    ...     "time": pd.to_datetime([0], unit="ms", utc=True), "closed_pnl": [0.0]})
    >>> unrealised(fills, {"BTC": 90.0}, {"BTC": 5})[["coin", "szi", "unrealized_pnl"]]
      coin  szi  unrealized_pnl
    0  BTC -2.0            20.0
    """
    fills = drop_repeated_rows(fills, "fills")
    sizes = execution_sequence.size_decimals(sz_decimals)
    prices = marks if isinstance(marks, Mapping) else memory_frames.to_pandas(marks)
    run = partial(unrealised, marks=prices, sz_decimals=sizes, at=at)
    if (divided := run_by_account(run, {"fills": fills})) is not None:
        all_accounts: IntoFrameT = divided
        return all_accounts
    frame, kind = read_position_fills(fills)
    if at is not None:
        ms = at if isinstance(at, int) else aware_ms(at)
        frame = frame.filter([time <= ms for time in memory_frames.series_ms(frame["time"])])
    integers = execution_sequence.integer_fills(frame, sizes)
    order = sort_by_chain(fills, frame, integers)
    walk = walk_positions(integers, order)
    rows = _open_rows(integers, order)
    known, decimals = mark_prices(prices, integers.px_decimals)
    mark = [known.get(coin) for coin in take_rows(frame["coin"].to_list(), rows)]
    finer = 10 ** (decimals - integers.px_decimals)
    entry = [None if e is None else e * finer for e in take_rows(walk.entry, rows)]
    size = take_rows(integers.end, rows)
    value = [None if m is None else abs(s) * m for s, m in zip(size, mark, strict=True)]
    gain = [
        None if m is None or e is None else s * (m - e)
        for s, m, e in zip(size, mark, entry, strict=True)
    ]
    whole = decimals + integers.size_decimals
    made = {
        key: column
        for key, column in identity_columns(frame, rows).items()
        if key in ("user", "coin")
    } | {
        "szi": memory_frames.number_column(size, integers.size_decimals, kind),
        "entry_px": memory_frames.number_column(entry, decimals, kind),
        "mark_px": memory_frames.number_column(mark, decimals, kind),
        "position_value": memory_frames.number_column(value, whole, kind),
        "unrealized_pnl": memory_frames.number_column(gain, whole, kind),
    }
    return memory_frames.result_from_table(
        pa.table(made), {"fills": fills}, helper="pnl.unrealised"
    )


def _open_rows(integers: execution_sequence.IntegerFills, order: Sequence[int]) -> list[int]:
    """Return the last fill of each position chain of perps that ends with an open position."""
    chains = integers.chain.tolist()
    followers = [*(chains[row] for row in order[1:]), None]
    return [
        row
        for row, follower in zip(order, followers, strict=False)
        if follower != chains[row] and not integers.spot[row] and integers.end[row]
    ]


def read_position_fills(
    fills: Any, needed: Sequence[str] = execution_sequence.NEEDED
) -> tuple[nw.DataFrame[Any], frame_access.NumberKind]:
    """Return fills in memory, with users in lower case, and their kind of numbers."""
    refuse_several_accounts(fills, "fills")
    frame = memory_frames.collect_frame(fills, "fills")
    frame_access.require_columns(frame, needed, "fills")
    if "user" in frame.columns:
        frame = frame.with_columns(user=lower_address("user"))
    return frame, frame_access.number_kind(frame, execution_sequence.NUMBERS, "fills")


def sort_by_chain(
    fills: Any,
    frame: nw.DataFrame[Any],
    integers: execution_sequence.IntegerFills,
    account: str | None = None,
) -> list[int]:
    """Return the rows in the order of execution, with the chains sorted by user and coin.

    - ``fills``: the fills as the caller passed them
    - ``account``: their account, if the caller named it
    """
    order = np.array(execution_sequence.execution_order(frame, integers), dtype=np.int64)
    check_one_account(fills, frame, integers, order.tolist(), account)
    starts = np.flatnonzero(np.diff(integers.chain[order], prepend=-1))
    chains = np.split(order, starts[1:])
    owners = [name for name in ("user", "coin") if name in frame.columns]
    names = frame.select(owners)[order[starts]].rows()
    ranked = sorted(range(len(names)), key=names.__getitem__)
    return [row for number in ranked for row in chains[number].tolist()]


def identity_columns(frame: nw.DataFrame[Any], rows: Sequence[int]) -> dict[str, Any]:
    """Return user (if known), coin and time of rows."""
    kept = {
        name: memory_frames.text_column(take_rows(frame[name].to_list(), rows))
        for name in ("user", "coin")
        if name in frame.columns
    }
    ms = memory_frames.series_ms(frame["time"])
    return kept | {"time": memory_frames.utc_times(take_rows(ms, rows))}


def take_rows(values: Sequence[Any], rows: Sequence[int]) -> list[Any]:
    """Return the values of rows."""
    return [values[row] for row in rows]


def walk_positions(
    integers: execution_sequence.IntegerFills,
    order: Sequence[int],
    apply: PerpRule = apply_perp_fill,
) -> PositionStates:
    """Return the state after each fill of every chain; unknown prices and PnL are None.

    Entry prices are those of the current rule.
    """
    count = len(order)
    walk = PositionStates([None] * count, [None] * count, [False] * count, [0] * count)
    chains = integers.chain.tolist()
    last, position, known, entry = -1, 0, False, 0
    for row in order:
        if integers.spot[row]:
            continue
        start, tick = integers.start[row], integers.tick[row]
        if chains[row] != last or start != position:
            walk.broken[row] = chains[row] == last
            walk.gap[row] = start - position if chains[row] == last else 0
            last, known, entry = chains[row], start == 0, 0
        position = integers.end[row]
        if not tick:
            continue
        if known:
            gain, _, entry = apply(start, entry, integers.change[row], integers.px[row], tick)
            walk.expected[row] = gain * integers.unit
        elif position == 0 or (position > 0) != (start > 0):
            # The position is flat or changed its side, so this fill opened all of it.
            known, (_, _, entry) = True, apply(0, 0, position, integers.px[row], tick)
        if known and position:
            walk.entry[row] = entry_price(position, entry, tick)
    return walk


def mark_prices(marks: Any, least: int) -> tuple[dict[str, int], int]:
    """Return mark prices as integers in units of 10**-decimals, with at least `least` decimals."""
    if isinstance(marks, Mapping):
        marks = pd.DataFrame(
            {"name": pd.Series(list(marks), dtype="str"), "mark_px": list(marks.values())}
        ).astype({"mark_px": "float64"})
    frame = memory_frames.collect_frame(marks, "marks")
    frame_access.require_columns(frame, ("name", "mark_px"), "marks")
    frame_access.number_kind(frame, ["mark_px"], "marks")
    frame = frame.filter(~nw.col("mark_px").is_null() & (nw.col("mark_px") > 0))
    values, decimals = fixed_point.to_integers(frame["mark_px"], least, "marks")
    found = dict(zip(frame["name"].to_list(), values, strict=True))
    if len(found) < len(values):
        (coin, _), *_ = Counter(frame["name"].to_list()).most_common(1)
        raise MissingColumns(f"marks: {coin} has several mark prices. Pass the prices of one time")
    return found, decimals
