"""Funding payments. Specification, "Funding row"."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract.kinds import ADDRESS, COIN, COUNT, NESTED, RATE, SIZE, TEXT, TIME, USD, WORD
from toolkit.contract.records.record import Record

__all__ = ["FundingDelta", "FundingRow"]


class FundingDelta(Record, kw_only=True):
    """What one funding payment moved."""

    type: Annotated[str, WORD("always funding")]
    coin: Annotated[str, COIN("asset symbol", key=True)]
    usdc: Annotated[str, USD("amount received; negative when paid", key=True)]
    szi: Annotated[str, SIZE("position at funding time; negative: short")]
    funding_rate: Annotated[str, RATE("funding rate applied; positive: longs pay")]
    n_samples: Annotated[
        int | UnsetType | None,
        COUNT("how many payments the row sums up; missing: one", beyond=5),
    ] = UNSET


class FundingRow(Record, kw_only=True):
    """One position's funding payment of one hour."""

    user: Annotated[
        str, ADDRESS("payer or receiver", lacks="funding rows of a single user lack it")
    ]
    time: Annotated[int, TIME("time of the funding block", key=True)]
    hash: Annotated[str, TEXT("always the zero hash")]
    delta: Annotated[FundingDelta, NESTED("the payment", key=True)]
