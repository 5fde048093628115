"""TWAPs that begin while the clock runs on: each one's whole life is a function of its number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolkit.contract.records import TwapRow
from toolkit.simulation.draws import stream
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import MICRO
from toolkit.simulation.twaps import SLICE_MS
from toolkit.times import MINUTE, SECOND, to_iso

__all__ = ["LOTS", "TWAP_EVERY_MS", "begun_twaps"]

TWAP_EVERY_MS = 4 * MINUTE
"""Time in which one new TWAP begins."""

LOTS = {perp.coin: 10**perp.sz_decimals for perp in PERPS}
"""Market -> lots to one unit of its size."""

_USD = 10**MICRO
_LONGEST = 60  # minutes
_CANCELLED = 0.15


@dataclass(frozen=True, slots=True)
class _Model:
    """A TWAP of history: who trades what, how much of it, and at which price."""

    row: TwapRow
    lots: int
    px: int  # micro-dollars a lot


def begun_twaps(
    seed: int, end: int, last: Mapping[str, Sequence[TwapRow]], time: int, snapshot_id: str
) -> list[TwapRow]:
    """Give the TWAPs that have begun since the end of history and still run.

    Parameters
    ----------
    seed : int
        What they are drawn from.
    end, time : int
        The end of history, and the moment to look at.
    last : mapping of str to sequence of TwapRow
        The TWAPs at the end of history, by market: those who had one begin another, on the same
        market and at about the price that they paid; without any that has traded nobody does.
    snapshot_id : str
        What the rows shall carry.

    Returns
    -------
    list of TwapRow
        In the order in which they have begun.
    """
    models = list(_models(last))
    if not models:
        return []
    highest = max(row.twap_id for rows in last.values() for row in rows)
    newest = (time - end) // TWAP_EVERY_MS
    oldest = max(0, newest - _LONGEST * MINUTE // TWAP_EVERY_MS - 1)
    drawn = (
        _row(seed, number, models, end, time, highest + 1 + number, snapshot_id)
        for number in range(oldest, newest + 1)
    )
    return [row for row in drawn if row is not None]


def _models(last: Mapping[str, Sequence[TwapRow]]) -> Iterator[_Model]:
    for market, rows in sorted(last.items()):
        for row in rows:
            lots, done = (round(size * LOTS[market]) for size in (row.total_sz, row.executed_sz))
            if done:
                yield _Model(row, lots, max(1, round(row.executed_ntl * _USD) // done))


def _row(
    seed: int,
    number: int,
    models: list[_Model],
    end: int,
    time: int,
    twap_id: int,
    snapshot_id: str,
) -> TwapRow | None:
    """Give the TWAP of a number as it is at a time; None before it begins and after it ends."""
    rng = stream(seed, "begun twaps", str(number))
    model = models[int(rng.integers(0, len(models)))]
    start = end + number * TWAP_EVERY_MS + int(rng.integers(0, TWAP_EVERY_MS))
    minutes = int(rng.integers(10, _LONGEST + 1))
    whole = minutes * MINUTE // SLICE_MS
    until = whole // 2 if rng.random() < _CANCELLED else whole
    total = max(whole, model.lots * int(rng.integers(20, 101)) // 100)
    px = max(1, model.px * int(rng.integers(990, 1_011)) // 1_000)
    is_buy, randomize = (bool(flag) for flag in rng.integers(0, 2, 2))
    slices = (time - start) // SLICE_MS
    done = -(-total * slices // whole)
    if time < start or slices >= until or done >= total:
        return None
    market, lots = model.row.market, LOTS[model.row.market]
    return TwapRow(
        snapshot_id=snapshot_id,
        market=market,
        address=model.row.address,
        twap_id=twap_id,
        asset=model.row.asset,
        is_buy=is_buy,
        total_sz=total / lots,
        executed_sz=done / lots,
        remaining_sz=(total - done) / lots,
        executed_ntl=done * px / _USD,
        progress_pct=100.0 * done / total,
        duration_secs=minutes * MINUTE // SECOND,
        start_time_ms=start,
        reduce_only=False,
        randomize=randomize,
        next_slice_time=to_iso(start + (slices + 1) * SLICE_MS),
        slice_number=slices,
        market_name=None,
        market_readable=None,
        stop_px=None,
        trigger_px=None,
        trigger_above=None,
        waiting=False,
    )
