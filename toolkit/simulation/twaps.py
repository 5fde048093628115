"""TWAP orders: their state, and how a snapshot shows them."""

from dataclasses import dataclass

from toolkit.contract.records import TwapRow
from toolkit.simulation.accounts import Account
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import MICRO
from toolkit.times import SECOND, to_iso

__all__ = ["SLICE_MS", "Twap", "twap_row"]

SLICE_MS = 30 * SECOND
"""Time between slices."""


@dataclass(slots=True, kw_only=True)
class Twap:
    """One TWAP order.

    Parameters
    ----------
    number : int
        Its id, unique per user.
    account : Account
        Whose it is.
    coin : int
        Index of the perp.
    is_buy, reduce_only, randomize : bool
        Side and flags.
    total, executed : int
        Sizes in lots.
    executed_ntl : int
        Micro-dollars.
    duration_secs, start : int
        How long it runs once active, and when it was registered, in milliseconds.
    stop_px, trigger_px : int
        Prices, 0 where there is none.
    trigger_above : bool
        Whether it activates above the trigger price.
    waiting : bool
        Registered, and not yet active.
    cancel_at : int
        When its owner cancels it; 0 for never.
    slice_number, next_slice : int
        Slices done, and the time of the next.
    ended : bool
        Whether it is over.
    """

    number: int
    account: Account
    coin: int
    is_buy: bool
    total: int
    duration_secs: int
    start: int
    reduce_only: bool = False
    randomize: bool = False
    stop_px: int = 0
    trigger_px: int = 0
    trigger_above: bool = True
    waiting: bool = False
    cancel_at: int = 0
    executed: int = 0
    executed_ntl: int = 0
    slice_number: int = 0
    next_slice: int = 0
    ended: bool = False

    @property
    def slices(self) -> int:
        """How many slices it has."""
        return max(1, self.duration_secs * SECOND // SLICE_MS)


def twap_row(twap: Twap, snapshot_id: str) -> TwapRow:
    """Write a TWAP as its snapshot shows it."""
    perp = PERPS[twap.coin]
    lots, ticks = float(10**perp.sz_decimals), float(10**perp.px_decimals)
    return TwapRow(
        snapshot_id=snapshot_id,
        market=perp.coin,
        address=twap.account.address,
        twap_id=twap.number,
        asset=perp.coin,
        is_buy=twap.is_buy,
        total_sz=twap.total / lots,
        executed_sz=twap.executed / lots,
        remaining_sz=(twap.total - twap.executed) / lots,
        executed_ntl=twap.executed_ntl / float(10**MICRO),
        progress_pct=100.0 * twap.executed / twap.total,
        duration_secs=twap.duration_secs,
        start_time_ms=twap.start,
        reduce_only=twap.reduce_only,
        randomize=twap.randomize,
        next_slice_time=to_iso(twap.next_slice),
        slice_number=twap.slice_number,
        market_name=None,
        market_readable=None,
        stop_px=twap.stop_px / ticks if twap.stop_px else None,
        trigger_px=twap.trigger_px / ticks if twap.waiting else None,
        trigger_above=twap.trigger_above if twap.waiting else None,
        waiting=twap.waiting,
    )
