"""Legs: the closing and the opening part of each fill, by trip from flat to flat."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare.steps import Steps


@dataclass(frozen=True, eq=False, slots=True)
class Legs:
    """Legs of fills in the order of execution, and their trips; a flip has two legs.

    One value per leg:

    - ``step``: the number of the step
    - ``rows``: the row of the prepared table
    - ``closes``: whether it closes or opens
    - ``size``: its size, in units of the coin
    - ``share``: its share of the fill's size
    - ``is_first``: whether it is the first leg of its fill

    One value per trip:

    - ``heads``, ``tails``: the first and the last leg
    - ``sign``: 1 for long, -1 for short
    - ``opened``, ``closed``: whether a fill opened it, and whether a fill closed it
    - ``status``: ``closed``, ``open``, ``late``, ``broken`` or ``moved``
    - ``basis``: whether all opening prices are known
    - ``whole``: whether all that left was sold
    """

    step: Ints
    rows: Ints
    closes: Flags
    size: Floats
    share: Floats
    is_first: Flags
    heads: Ints
    tails: Ints
    sign: Ints
    opened: Flags
    closed: Flags
    status: list[str]
    basis: Flags
    whole: Flags

    def sums(self, values: Any, how: np.ufunc = np.add) -> Any:
        """Return the sum of values of legs by trip, or what another function makes of them."""
        return how.reduceat(values, self.heads) if len(self.heads) else values[:0]


def split_legs(steps: Steps, swaps: Flags) -> Legs:
    """Return the legs of fills, and the trips that they make.

    - ``swaps``: the rows of the table that swap outcome tokens without cash
    """
    start, change, spot = steps.start, steps.change, steps.spot
    size = np.abs(change)
    closing = np.where(
        (start != 0) & ((start > 0) != (change > 0)), np.minimum(np.abs(start), size), 0
    )
    opening, end = size - closing, steps.end
    # A spot balance is never negative: a sell of one unit more is rounding and opens nothing.
    opening = np.where(spot & (closing > 0) & (opening <= steps.tolerance), 0, opening)
    before = np.append(0, end[:-1])[: len(end)]  # the position after the fill before
    rounding = steps.same_start
    gap = steps.is_gap & ~rounding
    is_new = steps.first | (gap & (~spot | (before == 0)))
    begins = is_new & (start != 0)  # a trip that no known fill opened
    alive = (start != 0) & ~(rounding & (before == 0) & ~steps.first)
    flip = (closing > 0) & (opening > 0) & alive
    lost = (closing > 0) & ~alive  # a rest of rounding, which no trip has

    step = np.repeat(np.arange(len(steps)), 1 + flip)
    is_first = np.append(True, np.diff(step) != 0)[: len(step)]
    closes = (closing > 0)[step] & is_first
    head = np.where(is_first, (begins | ~alive)[step], True)
    kept = ~lost[step]
    step, is_first, closes, head = (values[kept] for values in (step, is_first, closes, head))
    heads = np.flatnonzero(head)
    tails = np.append(heads[1:], len(step))[: len(heads)] - 1
    units = np.where(closes, closing[step], opening[step])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(size[step] > 0, units / size[step], 1.0)
    whole_fill = ~flip[step]
    at, tail = step[heads], step[tails]
    opened = ~(begins[at] & is_first[heads])
    closed = closes[tails] & ((end[tail] == 0) | flip[tail])
    # What happens between the last fill of a trip and the next one of its chain.
    after = np.minimum(tail + 1, max(len(steps) - 1, 0))
    has_next = (tail + 1 < len(steps)) & ~steps.first[after]
    ends_in_gap = has_next & gap[after] & ~closed
    left = ends_in_gap & spot[at] & (start[after] == 0)
    inner = gap[step] & is_first & ~head
    moved, came = inner & spot[step], inner & (steps.gap[step] > 0)
    swap = swaps[steps.rows][step]

    def of_trip(flags: Flags) -> Flags:
        return np.asarray(np.logical_or.reduceat(flags, heads) if len(heads) else flags[:0])

    broken = ends_in_gap & ~spot[at]
    status = np.select(
        [
            broken,
            ~opened & steps.first[at],
            ~opened & spot[at],
            ~opened,
            of_trip(moved) | left,
            closed,
        ],
        ["broken", "late", "moved", "broken", "moved", "closed"],
        "open",
    )
    sign = np.where(opened, np.sign(change[at]), np.sign(start[at]))
    return Legs(
        step=step,
        rows=steps.rows[step],
        closes=closes,
        size=units / steps.scale[step],
        share=np.where(whole_fill, 1.0, share),
        is_first=is_first,
        heads=heads,
        tails=tails,
        sign=sign,
        opened=opened,
        closed=closed,
        status=status.tolist(),
        basis=opened & ~of_trip(came) & ~of_trip(swap & ~closes),
        whole=~(of_trip(moved & (steps.gap[step] < 0)) | left) & ~of_trip(swap & closes),
    )
