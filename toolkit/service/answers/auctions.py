"""Answers about deploy auctions. Specification, "Deploy auction status"."""

from decimal import Decimal
from fractions import Fraction

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import AuctionStatus
from toolkit.contract.sources import Auction
from toolkit.errors import ServiceDown
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.merging import plain
from toolkit.service.store import Store

__all__ = [
    "auction_status",
    "perp_deploy_auction_status",
    "spot_deploy_state",
    "spot_pair_deploy_auction_status",
]


def spot_pair_deploy_auction_status(store: Store, asked: Asked) -> Answer:
    """Give the state of the auction for deploying a spot pair."""
    return good(_latest(store, asked, "spot"))


def perp_deploy_auction_status(store: Store, asked: Asked) -> Answer:
    """Give the state of the auction for deploying a perp."""
    return good(_latest(store, asked, "perp"))


def spot_deploy_state(store: Store, asked: Asked) -> Answer:
    """Return the spot tokens that a user is deploying, none, and the auction for it."""
    return good(b'{"states":[],"gasAuction":%b}' % _latest(store, asked, "spot"))


def auction_status(auction: Auction, now_seconds: int) -> AuctionStatus:
    """Give the state of an auction at a time.

    Examples
    --------
    >>> auction_status(Auction("perp", 1000, 100, "600", "500"), 1025).current_gas
    '575.0'
    """
    end = auction.end_seconds
    bought = end is not None and end <= now_seconds
    elapsed = min(now_seconds - auction.start_seconds, auction.duration_seconds)
    over = bought or elapsed == auction.duration_seconds
    price = _price(auction, elapsed)
    end_gas = auction.end_gas if bought else price
    # ASSUMED: when a spot auction has ended, its currentGas is the price at its end.
    current = price if not over else end_gas if auction.kind == "spot" else None
    return AuctionStatus(
        start_time_seconds=auction.start_seconds,
        duration_seconds=auction.duration_seconds,
        start_gas=auction.start_gas,
        current_gas=current,
        end_gas=end_gas if over else None,
    )


def _price(auction: Auction, elapsed: int) -> str:
    start, floor = Fraction(auction.start_gas), Fraction(auction.floor_gas)
    price = auction_price(start, floor, elapsed, auction.duration_seconds)
    return plain(Decimal(price).scaleb(-GAS_DECIMALS))


def _latest(store: Store, asked: Asked, kind: str) -> bytes:
    text = asked.document(store, "auctions", kind)
    auctions = msgspec.json.decode(text, type=list[Auction]) if text else []
    started = [one for one in auctions if one.start_seconds * 1000 <= asked.now_ms]
    if not started:
        # ASSUMED: without any auction the answer is 500, as for depth that is not yet published.
        raise ServiceDown("An internal error occurred")
    latest = max(started, key=lambda one: one.start_seconds)
    return encode(auction_status(latest, asked.now_ms // 1000))
