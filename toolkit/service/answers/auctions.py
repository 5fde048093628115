"""Answers about deploy auctions. Specification, "Deploy auction status"."""

from decimal import Decimal
from fractions import Fraction

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.records import AuctionStatus
from toolkit.contract.source_tables import Auction
from toolkit.errors import ServiceDown
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.service.decimals import format_decimal
from toolkit.service.handler_messages import CheckedRequest
from toolkit.service.store import Store


def spot_pair_deploy_auction_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of the auction for deploying a spot pair."""
    return _latest_status(store, request, "spot")


def perp_deploy_auction_status(store: Store, request: CheckedRequest) -> bytes:
    """Return the state of the auction for deploying a perp."""
    return _latest_status(store, request, "perp")


def spot_deploy_state(store: Store, request: CheckedRequest) -> bytes:
    """Return the auction for deploying spot tokens; no user deploys a token here."""
    return b'{"states":[],"gasAuction":%b}' % _latest_status(store, request, "spot")


def auction_status(auction: Auction, now_seconds: int) -> AuctionStatus:
    """Return the state of an auction at a time.

    Examples
    --------
    >>> auction_status(Auction("perp", 1000, 100, "600", "500"), 1025).current_gas
    '575.0'
    """
    end = auction.end_seconds
    is_bought = end is not None and end <= now_seconds
    elapsed = min(now_seconds - auction.start_seconds, auction.duration_seconds)
    is_over = is_bought or elapsed == auction.duration_seconds
    start, floor = Fraction(auction.start_gas), Fraction(auction.floor_gas)
    exact_price = auction_price(start, floor, elapsed, auction.duration_seconds)
    price = format_decimal(Decimal(exact_price).scaleb(-GAS_DECIMALS))
    end_gas = auction.end_gas if is_bought else price
    # ASSUMED: The `currentGas` of an ended spot auction is the price at its end.
    current = price if not is_over else end_gas if auction.kind == "spot" else None
    return AuctionStatus(
        start_time_seconds=auction.start_seconds,
        duration_seconds=auction.duration_seconds,
        start_gas=auction.start_gas,
        current_gas=current,
        end_gas=end_gas if is_over else None,
    )


def _latest_status(store: Store, request: CheckedRequest, kind: str) -> bytes:
    text = request.find_document(store, "auctions", kind)
    auctions = msgspec.json.decode(text, type=list[Auction]) if text else []
    started = [auction for auction in auctions if auction.start_seconds * 1000 <= request.now_ms]
    if not started:
        # ASSUMED: If there is no auction, the status is 500, the same as for `currentDepth` before
        # its first sample.
        raise ServiceDown("An internal error occurred")
    latest = max(started, key=lambda auction: auction.start_seconds)
    return encode(auction_status(latest, request.now_ms // 1000))
