"""Staking. Specification, "Delegation" and "Validator weekly APR entry".

Stakes and rewards of a user: docs/live_service.md, section 9.
"""

from typing import Annotated

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record


class Delegation(Record, kw_only=True):
    """The delegation of a user to one validator."""

    validator: Annotated[str, k.ADDRESS("validator", key=True)]
    amount: Annotated[str, k.NATIVE("delegated amount", key=True)]
    locked_until_timestamp: Annotated[int, k.TIME("unlock time")]


class ValidatorWeek(Record, kw_only=True):
    """The earnings of a validator's delegators in one week, not compounded."""

    week: Annotated[int, k.TIME("week start, Monday 00:00 UTC", key=True)]
    net_apr: Annotated[float, k.RATE("APR of delegators after commission; 0.182 is 18.2 %")]
    gross_apr: Annotated[float, k.RATE("APR before commission; implied fee = 1 - net / gross")]
    total_delegator_rewards: Annotated[str, k.NATIVE("rewards distributed to delegators that week")]


class DelegatorSummary(Record, kw_only=True):
    """The stake of a user."""

    delegated: Annotated[str, k.NATIVE("delegated to validators")]
    undelegated: Annotated[str, k.NATIVE("staked, but not delegated")]
    total_pending_withdrawal: Annotated[str, k.NATIVE("amount of pending withdrawals")]
    n_pending_withdrawals: Annotated[int, k.COUNT("number of pending withdrawals")]


class DelegatorEvent(Record, kw_only=True):
    """A change of a user's stake or delegations."""

    time: Annotated[int, k.TIME("time of the change")]
    hash: Annotated[str, k.TEXT("transaction hash")]
    delta: Annotated[object, k.NESTED("the change: delegate, cDeposit or withdrawal")]


class DelegatorReward(Record, kw_only=True):
    """A staking reward of one day."""

    time: Annotated[int, k.TIME("time of the distribution")]
    source: Annotated[str, k.WORD("delegation or commission")]
    total_amount: Annotated[str, k.NATIVE("reward")]
