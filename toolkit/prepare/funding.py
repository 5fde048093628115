"""Funding beside fills: the time that fills cover, and the position hours with a payment.

Funding of a week together with fills of a day would look like a very good or a very bad day. So
funding outside the time of the fills is counted separately.

Funding is paid at each full hour for each open position. The service has funding rows only of times
at which the account had approved a builder, and a missing row looks like funding of 0. A row that
sums n payments covers the n hours up to its time (docs/live_service.md, section 5).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats, Ints
from toolkit.errors import MissingColumns
from toolkit.prepare.door import NO_TIME, Frame, Table, name_pairs
from toolkit.prepare.fills import Fills
from toolkit.prepare.provenance import frame_provenance, is_owned
from toolkit.prepare.steps import Steps
from toolkit.times import HOUR, Time, to_ms

POSITIONS: Final = ("coin", "side", "sz", "start_position")
"""The columns of fills that state positions."""

_UNITS: Final = 1e6  # sizes of perps have at most six decimals
EIGHT_HOURS: Final = 8
HOURLY_FROM: Final = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)


class CoveredPeriod(NamedTuple):
    """A time range in milliseconds, both ends included; without bounds by default.

    - ``start``, ``end``: the range
    - ``is_observed``: whether the range is only derived from the fills: from the first fill to the
      full hour after the last one. Then a payment outside the range counts, too, if the fills show
      its position.
    - ``earliest``, ``latest``: the bounds that the caller passes. A payment outside the range must
      be between them to count.
    """

    start: int = NO_TIME + 1
    end: int = np.iinfo(np.int64).max
    is_observed: bool = False
    earliest: int = NO_TIME + 1
    latest: int = np.iinfo(np.int64).max


def covered_period(
    fills: Table, start_time: Time | None = None, end_time: Time | None = None
) -> CoveredPeriod:
    """Return the time range that fills cover.

    - ``start_time``, ``end_time``: the bounds that the caller knows; each replaces its side

    Returns: the bounds of the caller; otherwise the requested range, if the frame is complete and
    unchanged since the fetch; otherwise the time from the first fill to the full hour after the
    last one. Without fills and bounds it is all time.
    """
    start, end, is_observed, *_ = always = CoveredPeriod()
    earliest, latest = (
        bound if time is None else time if isinstance(time, int) else to_ms(time)
        for time, bound in ((start_time, always.start), (end_time, always.end))
    )
    facts = frame_provenance(fills.frame)
    parameters, asked_at = facts.get("parameters"), facts.get("asked_at")
    if (
        facts.get("complete") == "yes"
        and isinstance(parameters, Mapping)
        and isinstance(asked_at, str)
        and facts.get("rows") == len(fills)  # else the user removed rows, perhaps at the ends
        and "may be missing" not in str(facts.get("history"))  # as in recorded answers
    ):
        asked = parameters.get("start"), parameters.get("end")
        start = asked[0] if isinstance(asked[0], int) else start
        end = asked[1] if isinstance(asked[1], int) else to_ms(asked_at)
    elif len(fills) and (start_time is None or end_time is None):
        # The payment at the full hour after the last fill is for the position after this fill. Its
        # time is some milliseconds after the full hour.
        ms = fills.known_ms()
        start, end, is_observed = int(ms.min()), (int(ms.max()) // HOUR + 2) * HOUR - 1, True
    if start_time is not None:
        start = earliest
    if end_time is not None:
        end = latest
    return CoveredPeriod(start, end, is_observed, earliest, latest)


def is_inside(funding: Table, fills: Fills, period: CoveredPeriod) -> Flags:
    """Return which funding rows are inside the time of the fills."""
    funding.require(("time",))
    ms = funding.ms("time")
    within: Flags = (ms >= period.start) & (ms <= period.end)
    if not (period.is_observed and len(fills) and all(map(fills.table.has, POSITIONS))):
        return within
    # The first or last fill of a coin shows the position of a payment.
    steps = fills.steps
    chain = chains_of(funding, steps)
    heads, tails = np.flatnonzero(steps.first), np.flatnonzero(steps.last)
    start, end = (np.rint(units / steps.scale * _UNITS) for units in (steps.start, steps.end))
    before = ms <= steps.ms[heads][chain]
    at = np.where(before, start[heads][chain], end[tails][chain])
    size = np.rint(funding.number("szi", np.nan) * _UNITS)
    # A row without a size requires only an open position.
    shown = np.where(np.isnan(size), at != 0, (size == at) & (at != 0)) & (chain >= 0)
    shown &= (before | (ms > steps.ms[tails][chain])) & (ms >= period.earliest)
    return np.asarray(within | (shown & (ms <= period.latest)))


class Payments(NamedTuple):
    """Funding rows beside fills; arrays have one value for each row.

    - ``mine``: whether a row is of the accounts of the fills
    - ``inside``: whether it is inside their time
    - ``usd``: its amount; NaN if it is not known
    """

    table: Table
    mine: Flags
    inside: Flags
    usd: Floats


def read_payments(
    fills: Fills, funding: Frame, period: CoveredPeriod, *, named: bool = False
) -> Payments:
    """Return the funding rows beside fills.

    - ``named``: whether each row needs a user if the fills have one
    """
    table = Table(funding, "funding")
    is_named = named and fills.table.has("user")
    table.require(("coin", "time", "usdc", *(["user"] if is_named else [])))
    count = len(fills.table.text("user", blank=True).present(blank=True))
    if count > 1 and not table.has("user"):
        raise MissingColumns(
            f"funding: the frame has no column user, and the fills are of {count} accounts. Add "
            "the account of its rows: funding.assign(user=address)"
        )
    mine, inside = is_owned(table, "user", fills.owners), is_inside(table, fills, period)
    usd = fills.in_usd(table.number("usdc"), table.text("coin"))
    return Payments(table, mine, inside, usd)


def chains_of(funding: Table, steps: Steps) -> Ints:
    """Return the number of each payment's chain of fills; -1 if there are no fills of the coin."""
    coins, places = funding.text("coin"), steps.places()
    if not (any(steps.users) and funding.has("user")):  # the fills are of one account
        by_coin = {coin: place for (_, coin), place in places.items()}
        return np.asarray(coins.facts(lambda coin: by_coin.get(coin, -1)).astype(np.int64))
    rows, pairs = name_pairs(funding.text("user"), coins)
    return np.array([places.get(pair, -1) for pair in pairs], dtype=np.int64)[rows]


# ASSUMED: If a funding row from before 2024 sums several payments, each payment is for eight hours,
# the same as in the recorded rows of 2023.
def payment_spans(funding: Table) -> Ints:
    """Return the number of hours that each row is for."""
    count = np.fmax(funding.number("n_samples", 1.0), 1.0)
    is_old = (funding.ms("time") < HOURLY_FROM) & (count > 1)
    return np.asarray(np.where(is_old, count * EIGHT_HOURS, count).astype(np.int64))
