"""The fetch functions by topic: one per operation, and one per further frame of an answer."""

from toolkit.fetch import (  # noqa: F401 - fills FUNCTIONS
    accounts,
    auctions,
    fills,
    funding,
    market,
    orders,
    snapshots,
    staking,
    trades,
)
