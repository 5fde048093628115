"""Funding coverage: how much of an account's funding its funding rows cover.

A missing row looks like funding of 0. The fills show the position at each full hour, and thereby
which rows there must be.
"""

from typing import Final, NamedTuple

import numpy as np

from toolkit import prepare
from toolkit.prepare.door import Frame, Table
from toolkit.prepare.funding import chains_of, payment_spans
from toolkit.times import HOUR

_UNITS: Final = 1e6  # sizes of perps have at most six decimals


class FundingCoverage(NamedTuple):
    """Agreement of funding rows with positions.

    - ``held``: position hours: full hours with an open position by the fills, summed over coins
    - ``covered``: position hours with a funding row
    - ``agreeing``: position hours whose funding row has the same size as the fills
    - ``beyond``: funding rows at hours without a position in the fills
    - ``carried``: coins with a position before their first fill of the period. Its hours are not
      known.
    """

    held: int
    covered: int
    agreeing: int
    beyond: int
    carried: int

    @property
    def is_complete(self) -> bool:
        """Whether every position hour has its row, and every row belongs to a position."""
        return self.held == self.covered and self.beyond == 0 and self.carried == 0


def compare_funding(fills: "Frame | prepare.Fills", funding: Frame, end_ms: int) -> FundingCoverage:
    """Compare funding rows with the positions from the fills.

    - ``fills``: all fills of one account
    - ``funding``: its funding rows of the same period
    - ``end_ms``: end of the period, inclusive

    A position is known from the first fill of its coin on, not before. A row that sums n payments
    covers n hours (docs/live_service.md, section 5); its size is that of the last hour.
    """
    steps, table = prepare.fills(fills).steps, Table(funding, "funding")
    position = np.where(steps.spot, 0.0, np.rint(_UNITS * (steps.end / steps.scale)))
    until = np.where(steps.last, end_ms, np.roll(steps.ms, -1)) // HOUR
    spans, size = payment_spans(table), np.rint(_UNITS * table.number("szi", np.nan))
    row = np.repeat(np.arange(len(table)), spans)
    back = np.arange(len(row)) - np.repeat(np.cumsum(spans) - spans, spans)
    chain, hours = chains_of(table, steps)[row], table.ms("time")[row] // HOUR - back
    # ASSUMED: A fill in the same millisecond as a funding payment is executed after the payment.
    key = max(end_ms, steps.ms.max(initial=0), HOUR * hours.max(initial=0)) + 1
    before = np.searchsorted(steps.chain * key + steps.ms, chain * key + hours * HOUR) - 1
    is_known = np.append(steps.chain, -1)[before] == chain
    at = np.where(is_known, np.append(position, 0.0)[before], 0.0)
    matched = (at != 0) & (hours * HOUR <= end_ms)
    return FundingCoverage(
        held=int((until - steps.ms // HOUR)[position != 0].sum()),
        covered=int(matched.sum()),
        agreeing=int((matched & ((back > 0) | (size[row] == at))).sum()),
        beyond=int((~matched & (back == 0)).sum()),
        carried=int(np.count_nonzero((~steps.spot & (steps.start != 0))[steps.heads])),
    )
