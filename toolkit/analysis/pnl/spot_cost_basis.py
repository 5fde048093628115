"""The cost basis of spot and outcome tokens along their fills.

Source: docs/live_service.md, sections 3 and 7; the rule is `toolkit.rules.spot_cost`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw

from toolkit.analysis.common import memory_frames
from toolkit.analysis.pnl.execution_sequence import IntegerFills
from toolkit.rules.spot_cost import (
    FLAT,
    SWAPS,
    CostBasis,
    adjust_balance,
    apply_spot_fill,
    swap_tokens,
)


@dataclass(slots=True)
class SpotResults:
    """The result of each spot fill, by row.

    - ``expected``: closed PnL by the rule, in units of px * change; None if a cost is not known
    - ``basis``: balance and cost after the fill
    - ``gap``: size that came into the balance (+) or left it (-) before the fill by something other
      than a fill; only gaps larger than rounding
    """

    expected: dict[int, int | None] = field(default_factory=dict)
    basis: dict[int, CostBasis] = field(default_factory=dict)
    gap: dict[int, int] = field(default_factory=dict)


class Swaps(NamedTuple):
    """Conversions that swap outcome tokens without cash, as groups of rows.

    - ``groups``: the row of each leg -> all legs of its conversion
    - ``ms``: the time of every row
    """

    groups: dict[int, list[int]]
    ms: list[int]


def find_swaps(frame: nw.DataFrame[Any], integers: IntegerFills) -> Swaps:
    """Return the legs of each `Negate Outcome`, grouped by account, time and transaction."""
    if "dir" not in frame.columns or not any(integers.spot):
        return Swaps({}, [])
    words = frame["dir"].to_list()
    rows = [row for row, word in enumerate(words) if word in SWAPS and integers.spot[row]]
    if not rows:
        return Swaps({}, [])
    ms = memory_frames.series_ms(frame["time"])
    hashes = frame["hash"].to_list() if "hash" in frame.columns else [None] * len(ms)
    together: dict[tuple[int, int, Any], list[int]] = {}
    for row in rows:
        user = int(integers.chain[row]) // integers.coins
        together.setdefault((user, ms[row], hashes[row]), []).append(row)
    return Swaps({row: legs for legs in together.values() for row in legs}, ms)


def spot_rows(integers: IntegerFills, order: Sequence[int], swaps: Swaps) -> list[int]:
    """Return the rows of spot chains in the order in which they are processed.

    Rows of a chain keep their order. If a conversion connects chains, all rows are sorted by time.
    """
    rows = [row for row in order if integers.spot[row]]
    if not swaps.groups:
        return rows
    rank = {row: place for place, row in enumerate(rows)}
    return sorted(rows, key=lambda row: (swaps.ms[row], rank[row]))


def take_legs(row: int, swaps: Swaps, done: set[int]) -> Iterator[int]:
    """Yield the legs of the conversion of a row that are not in `done`, and add them to it."""
    for leg in swaps.groups[row]:
        if leg not in done:
            done.add(leg)
            yield leg


def walk_spot_fills(integers: IntegerFills, order: Sequence[int], swaps: Swaps) -> SpotResults:
    """Return closed PnL, cost basis and gaps of spot and outcome tokens."""
    walk = SpotResults()
    if not any(integers.spot):
        return walk
    chains, unit = integers.chain.tolist(), integers.money_unit
    held: dict[int, CostBasis] = {}
    tolerance: dict[int, int] = {}
    done: set[int] = set()

    def arrive(row: int) -> CostBasis:
        """Return the balance before a fill, after any gap."""
        chain, start = chains[row], integers.start[row]
        before = held.get(chain)
        if before is None:
            return adjust_balance(FLAT, start, 0, unit)[1]
        gap = start - before.size
        if abs(gap) > tolerance[chain]:
            walk.gap[row] = gap
        return adjust_balance(before, start, tolerance[chain], unit)[1]

    def leave(row: int, closed: int | None, basis: CostBasis) -> None:
        walk.expected[row], walk.basis[row] = closed, basis
        held[chains[row]], tolerance[chains[row]] = basis, integers.tolerance[row]

    for row in spot_rows(integers, order, swaps):
        if row not in swaps.groups:
            basis = arrive(row)
            closed, after = apply_spot_fill(
                basis, integers.change[row], integers.px[row], integers.token_fee[row], unit
            )
            unknown = integers.change[row] < 0 and basis.unknown
            leave(row, None if unknown else closed, after)
        elif row not in done:
            legs = list(take_legs(row, swaps, done))
            out = [leg for leg in legs if integers.change[leg] < 0]
            into = [leg for leg in legs if integers.change[leg] >= 0]
            sources = [(arrive(leg), -integers.change[leg]) for leg in out]
            targets = [(arrive(leg), integers.change[leg]) for leg in into]
            left, came = swap_tokens(sources, targets, unit)
            for leg, basis in zip([*out, *into], [*left, *came], strict=True):
                leave(leg, 0, basis)
    return walk
