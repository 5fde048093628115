"""What deployers see: auctions of both kinds, running and ended, and the limits of dexes."""

from collections.abc import Sequence
from fractions import Fraction

from toolkit.contract.records import DexLimits, PerpDex
from toolkit.contract.sources import Auction
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.simulation.draws import address
from toolkit.simulation.markets import DEXES, PERPS
from toolkit.simulation.quantities import text
from toolkit.times import HOUR, SECOND

__all__ = ["deploy_auctions", "dex_limits", "next_rounds", "perp_dexes", "rounds_begun"]

_ROUND = 31 * HOUR
_BOUGHT = 10 * HOUR
_KINDS = ("spot", "perp")
_FULL_NAMES = {"eqx": "Equities exchange", "pre": "Private firms"}


def deploy_auctions(start_ms: int, end_ms: int) -> list[Auction]:
    """Give rounds of 31 hours, one after the other; every second one finds a buyer.

    The last spot round is running at the end of history; the last perp round has ended.
    """
    auctions = []
    for place, kind in enumerate(_KINDS):
        first = end_ms - 12 * HOUR - (end_ms - start_ms) // _ROUND * _ROUND
        for number, start in enumerate(range(first, end_ms + 1, _ROUND)):
            last = start + _ROUND > end_ms
            bought = last if kind == "perp" and last else not last and number % 2 == place
            auctions.append(_round(kind, start, number, bought))
    return sorted(auctions, key=_start)


def rounds_begun(auctions: Sequence[Auction], now_ms: int) -> int:
    """Say how many rounds of each kind have begun since the last of `auctions`."""
    last = max(auction.start_seconds for auction in auctions) * SECOND
    return max(0, now_ms - last) // _ROUND


def next_rounds(auctions: Sequence[Auction], count: int) -> list[Auction]:
    """Give the rounds that follow `auctions`, `count` of each kind, by start."""
    last = max(auction.start_seconds for auction in auctions) * SECOND
    rounds = []
    for place, kind in enumerate(_KINDS):
        before = sum(auction.kind == kind for auction in auctions)
        for number in range(before, before + count):
            start = last + (number - before + 1) * _ROUND
            rounds.append(_round(kind, start, number, number % 2 == place))
    return sorted(rounds, key=_start)


def dex_limits() -> dict[str, DexLimits]:
    """Give the limits of the dex that has some."""
    caps = [(perp.coin, text(int(perp.depth_usd) * 50, 0)) for perp in PERPS if perp.dex == "eqx"]
    limits = DexLimits(
        total_oi_cap="25000000.0",
        oi_sz_cap_per_perp="1000000.0",
        max_transfer_ntl="5000000.0",
        coin_to_oi_cap=caps,
    )
    return {"eqx": limits}


def perp_dexes(seed: int) -> list[PerpDex]:
    """Return the builder-deployed dexes, in the order of `DEXES`."""
    limits = dex_limits()
    return [
        PerpDex(
            name=dex,
            full_name=_FULL_NAMES[dex],
            deployer=address(seed, "deployer", dex),
            oracle_updater=None,
            fee_recipient=address(seed, "deployer", dex),
            asset_to_streaming_oi_cap=list(limits[dex].coin_to_oi_cap) if dex in limits else [],
            sub_deployers=[],
            deployer_fee_scale="1.0",  # the deployer gets as much again as the exchange
            last_deployer_fee_scale_change_time="1970-01-01T00:00:00",
            asset_to_funding_multiplier=[],
            asset_to_funding_interest_rate=[],
        )
        for dex in DEXES[1:]
    ]


def _round(kind: str, start: int, number: int, bought: bool) -> Auction:
    start_gas, floor_gas = 50_000 + 1_700 * (number % 7), 10_000
    end_gas = auction_price(
        Fraction(start_gas, 100), Fraction(floor_gas, 100), _BOUGHT // SECOND, _ROUND // SECOND
    )
    return Auction(
        kind=kind,
        start_seconds=start // SECOND,
        duration_seconds=_ROUND // SECOND,
        start_gas=text(start_gas, 2),
        floor_gas=text(floor_gas, 2),
        end_seconds=(start + _BOUGHT) // SECOND if bought else None,
        end_gas=text(end_gas, GAS_DECIMALS) if bought else None,
    )


def _start(auction: Auction) -> tuple[int, str]:
    return auction.start_seconds, auction.kind
