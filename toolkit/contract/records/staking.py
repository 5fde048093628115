"""Staking. Specification, "Delegation" and "Validator weekly APR entry".

Stakes and rewards of a user: docs/live_service.md, section 9.
"""

from typing import Annotated

from toolkit.contract.records.record import Record
from toolkit.contract.value_kinds import ADDRESS, AMOUNT, COUNT, NESTED, RATE, TEXT, TIME, WORD


class Delegation(Record, kw_only=True):
    """The delegation of a user to one validator."""

    validator: Annotated[str, ADDRESS("validator", key=True)]
    amount: Annotated[str, AMOUNT("delegated amount", unit="native token", key=True)]
    locked_until_timestamp: Annotated[int, TIME("unlock time")]


class ValidatorWeek(Record, kw_only=True):
    """The earnings of a validator's delegators in one week, not compounded."""

    week: Annotated[int, TIME("week start, Monday 00:00 UTC", key=True)]
    net_apr: Annotated[float, RATE("APR of delegators after commission; 0.182 is 18.2 %")]
    gross_apr: Annotated[float, RATE("APR before commission; implied fee = 1 - net / gross")]
    total_delegator_rewards: Annotated[
        str, AMOUNT("rewards distributed to delegators that week", unit="native token")
    ]


class DelegatorSummary(Record, kw_only=True):
    """The stake of a user."""

    delegated: Annotated[str, AMOUNT("delegated to validators", unit="native token")]
    undelegated: Annotated[str, AMOUNT("staked, but not delegated", unit="native token")]
    total_pending_withdrawal: Annotated[
        str, AMOUNT("amount of pending withdrawals", unit="native token")
    ]
    n_pending_withdrawals: Annotated[int, COUNT("number of pending withdrawals")]


class DelegatorEvent(Record, kw_only=True):
    """A change of a user's stake or delegations."""

    time: Annotated[int, TIME("time of the change")]
    hash: Annotated[str, TEXT("transaction hash")]
    delta: Annotated[object, NESTED("the change: delegate, cDeposit or withdrawal")]


class DelegatorReward(Record, kw_only=True):
    """A staking reward of one day."""

    time: Annotated[int, TIME("time of the distribution")]
    source: Annotated[str, WORD("delegation or commission")]
    total_amount: Annotated[str, AMOUNT("reward", unit="native token")]
