"""Deploy auctions. Specification, "Deploy auction status"."""

from typing import Annotated

from toolkit.contract.kinds import AMOUNT, COUNT, SECONDS
from toolkit.contract.records.record import Record

__all__ = ["AuctionStatus"]


class AuctionStatus(Record, kw_only=True):
    """The state of a deploy auction."""

    start_time_seconds: Annotated[int, SECONDS("auction start", key=True)]
    duration_seconds: Annotated[int, COUNT("auction duration", unit="seconds")]
    start_gas: Annotated[str, AMOUNT("gas price at start")]
    current_gas: Annotated[str | None, AMOUNT("current gas price; missing if a perp auction ended")]
    end_gas: Annotated[str | None, AMOUNT("gas price at the end; missing while in progress")]
