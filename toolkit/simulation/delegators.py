"""What stakers see: their stake, how it came about, and what it earned.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any

from toolkit.contract.records import (
    DelegatorEvent,
    DelegatorReward,
    DelegatorSummary,
    LedgerUpdate,
)
from toolkit.contract.sources import DailyReward
from toolkit.simulation.draws import transaction_hash
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.quantities import WEI, text, units
from toolkit.simulation.staking import Stake, stakes, validator_addresses
from toolkit.times import DAY, MINUTE

__all__ = ["delegator_events", "delegator_rewards", "delegator_summaries"]

_TRANSFER = "cStakingTransfer"


def delegator_summaries(exchange: Exchange) -> dict[str, DelegatorSummary]:
    """Return what each staker has staked: all of it is delegated, nothing is on its way out."""
    totals: dict[int, int] = defaultdict(int)
    for stake in stakes(exchange):
        totals[stake.who] += stake.amount
    return {
        exchange.accounts[who].address: DelegatorSummary(
            delegated=text(total, WEI),
            undelegated="0.0",
            total_pending_withdrawal="0.0",
            n_pending_withdrawals=0,
        )
        for who, total in totals.items()
    }


def delegator_events(exchange: Exchange) -> dict[str, list[DelegatorEvent]]:
    """Return the changes of each staker's stake, newest first.

    Transfers are those of the ledger. A minute after tokens came in they are delegated, and a
    minute before they leave they are taken back from the first validator.
    """
    validators = validator_addresses(exchange.seed)
    mine: dict[int, list[Stake]] = defaultdict(list)
    for stake in stakes(exchange):
        mine[stake.who].append(stake)
    numbers = {account.address: account.number for account in exchange.accounts}
    events: dict[str, list[DelegatorEvent]] = defaultdict(list)
    left: dict[str, int] = defaultdict(int)
    transfers = [
        (user, update) for user, update in exchange.ledger if update.delta.type == _TRANSFER
    ]
    for user, update in transfers:
        if not update.delta.is_deposit:
            left[user] += units(str(update.delta.amount), WEI)
    for user, update in transfers:
        held, amount = mine[numbers[user]], str(update.delta.amount)
        if not held:
            continue
        if update.delta.is_deposit:
            events[user].append(_moved(update, {"cDeposit": {"amount": amount}}))
            for place, stake in enumerate(held):
                # What left later was with the first validator until then.
                more = stake.amount + (0 if place else left[user])
                delta = _delegate(validators[stake.validator], text(more, WEI), False)
                events[user].append(_event(exchange, user, update.time + MINUTE, delta))
        else:
            delta = _delegate(validators[held[0].validator], amount, True)
            events[user].append(_event(exchange, user, update.time - MINUTE, delta))
            gone = {"withdrawal": {"amount": amount, "phase": "finalized"}}
            events[user].append(_moved(update, gone))
    return {user: some[::-1] for user, some in events.items()}


def delegator_rewards(
    exchange: Exchange, rewards: list[DailyReward]
) -> dict[str, list[DelegatorReward]]:
    """Return what each staker, and each validator, earned on every day, newest first.

    A staker gets the share of the delegators' rewards that its stake is of the validator's.
    """
    # ASSUMED: stakes earn from the day after the history begins, as the validators' totals say.
    validators = validator_addresses(exchange.seed)
    by_validator: dict[str, list[Stake]] = defaultdict(list)
    for stake in stakes(exchange):
        by_validator[validators[stake.validator]].append(stake)
    earned: dict[tuple[str, int, str], int] = defaultdict(int)
    for reward in rewards:
        commission = units(reward.commission, WEI)
        if commission:
            earned[reward.validator, reward.time, "commission"] += commission
        if reward.time <= exchange.start_ms + DAY:
            continue
        staked, whole = units(reward.staked, WEI), units(reward.delegator_rewards, WEI)
        for stake in by_validator[reward.validator]:
            user = exchange.accounts[stake.who].address
            earned[user, reward.time, "delegation"] += whole * stake.amount // staked
    rows: dict[str, list[DelegatorReward]] = defaultdict(list)
    for (user, time, source), amount in sorted(earned.items(), key=_time, reverse=True):
        row = DelegatorReward(time=time, source=source, total_amount=text(amount, WEI))
        rows[user].append(row)
    return dict(rows)


def _moved(update: LedgerUpdate, delta: dict[str, Any]) -> DelegatorEvent:
    """Return the event of a transfer that the ledger has, too."""
    return DelegatorEvent(time=update.time, hash=update.hash, delta=delta)


def _event(exchange: Exchange, user: str, time: int, delta: dict[str, Any]) -> DelegatorEvent:
    # These transactions move no money, and are in no other table.
    number = int(user[2:10], 16) + time
    return DelegatorEvent(time=time, hash=transaction_hash(exchange.seed, number), delta=delta)


def _delegate(validator: str, amount: str, is_undelegate: bool) -> dict[str, Any]:
    inner: dict[str, Any] = {
        "validator": validator,
        "amount": amount,
        "isUndelegate": is_undelegate,
    }
    return {"delegate": inner}


def _time(entry: tuple[tuple[str, int, str], int]) -> tuple[int, str, str]:
    (user, time, source), _ = entry
    return time, user, source
