"""Staking. Specification, "Delegation" and "Validator weekly APR entry"."""

from typing import Annotated

from toolkit.contract.kinds import ADDRESS, AMOUNT, RATE, TIME
from toolkit.contract.records.record import Record

__all__ = ["Delegation", "ValidatorWeek"]


class Delegation(Record, kw_only=True):
    """What a user has delegated to one validator."""

    validator: Annotated[str, ADDRESS("validator", key=True)]
    amount: Annotated[str, AMOUNT("delegated amount", unit="native token", key=True)]
    locked_until_timestamp: Annotated[int, TIME("unlock time")]


class ValidatorWeek(Record, kw_only=True):
    """What a validator's delegators earned in one week, not compounded."""

    week: Annotated[int, TIME("week start, Monday 00:00 UTC", key=True)]
    net_apr: Annotated[float, RATE("APR of delegators after commission; 0.182 is 18.2 %")]
    gross_apr: Annotated[float, RATE("APR before commission; implied fee = 1 - net / gross")]
    total_delegator_rewards: Annotated[
        str, AMOUNT("rewards distributed to delegators that week", unit="native token")
    ]
