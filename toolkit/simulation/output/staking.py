"""Staking: validators and their daily rewards, delegations, and what each staker sees.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from toolkit.contract.records import Delegation, DelegatorEvent, DelegatorReward, DelegatorSummary
from toolkit.contract.source_tables import DailyReward
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.simulation.quantities import ONE_TOKEN, decimal_text, parse_units, rounded_share
from toolkit.simulation.random_draws import party_address, random_stream, transaction_hash
from toolkit.times import DAY, HOUR, MINUTE, to_ms

COMMISSIONS = (0, 300, 400, 500, 1_000, 10_000)
"""Each validator's commission, in hundredths of a percent of the rewards."""

_FIRST_DAY = to_ms("2025-08-01")  # specification, "Data availability"
_ANNUAL_MILLIONTHS = 22_000
_TRANSFER = "cStakingTransfer"


@dataclass(frozen=True, slots=True)
class _Stake:
    """The amount that an account has delegated to one validator."""

    account: int
    validator: int
    amount: int
    locked_until: int


def validator_addresses(seed: int) -> list[str]:
    """Return the addresses of the validators."""
    return [party_address(seed, "validator", str(number)) for number in range(len(COMMISSIONS))]


def delegations(exchange: Exchange) -> dict[str, list[Delegation]]:
    """Return the delegations of each account: all of its stake, to one validator or two.

    Some of it is still locked, the rest has been free for a while.
    """
    validators = validator_addresses(exchange.seed)
    rows: dict[str, list[Delegation]] = {}
    for stake in _final_stakes(exchange):
        row = Delegation(
            validator=validators[stake.validator],
            amount=decimal_text(stake.amount, WEI),
            locked_until_timestamp=stake.locked_until,
        )
        rows.setdefault(exchange.accounts[stake.account].address, []).append(row)
    return rows


def daily_rewards(exchange: Exchange) -> list[DailyReward]:
    """Return the rewards of every validator on every day since rewards are published.

    The total reward is rounded to the token's last digit, and so is the commission. The
    delegators get the rest, so that nothing is lost.
    """
    rng = random_stream(exchange.seed, "rewards")
    validators = validator_addresses(exchange.seed)
    delegated = [0] * len(COMMISSIONS)
    for stake in _final_stakes(exchange):
        delegated[stake.validator] += stake.amount
    own = (rng.integers(500_000, 5_000_000, len(COMMISSIONS)) * ONE_TOKEN).tolist()
    rewards = []
    for time in range(_FIRST_DAY + DAY, exchange.end_ms + 1, DAY):
        factors = rng.integers(900, 1_100, len(COMMISSIONS)).tolist()
        for number, share in enumerate(COMMISSIONS):
            staked = own[number] + (delegated[number] if time > exchange.start_ms else 0)
            total = rounded_share(staked, _ANNUAL_MILLIONTHS * factors[number], 365 * 10**9)
            commission = rounded_share(total, share, 10_000)
            rewards.append(
                DailyReward(
                    validator=validators[number],
                    time=time,
                    staked=decimal_text(staked, WEI),
                    delegator_rewards=decimal_text(total - commission, WEI),
                    commission=decimal_text(commission, WEI),
                )
            )
    return rewards


def delegator_summaries(exchange: Exchange) -> dict[str, DelegatorSummary]:
    """Return each staker's stake: all of it is delegated, and no withdrawal is pending."""
    totals: dict[int, int] = defaultdict(int)
    for stake in _final_stakes(exchange):
        totals[stake.account] += stake.amount
    return {
        exchange.accounts[account].address: DelegatorSummary(
            delegated=decimal_text(total, WEI),
            undelegated="0.0",
            total_pending_withdrawal="0.0",
            n_pending_withdrawals=0,
        )
        for account, total in totals.items()
    }


def delegator_events(exchange: Exchange) -> dict[str, list[DelegatorEvent]]:
    """Return the changes of each staker's stake, newest first.

    The transfers are those of the ledger. Tokens are delegated one minute after they come in.
    They are undelegated from the first validator one minute before they leave.
    """
    validators = validator_addresses(exchange.seed)
    stakes: dict[str, list[_Stake]] = defaultdict(list)
    for stake in _final_stakes(exchange):
        stakes[exchange.accounts[stake.account].address].append(stake)
    transfers = [
        (user, update) for user, update in exchange.ledger if update.delta.type == _TRANSFER
    ]
    withdrawn: dict[str, int] = defaultdict(int)
    for user, update in transfers:
        if not update.delta.is_deposit:
            withdrawn[user] += parse_units(str(update.delta.amount), WEI)
    events: dict[str, list[DelegatorEvent]] = defaultdict(list)
    for user, update in transfers:
        if user not in stakes:
            continue
        amount, final = str(update.delta.amount), stakes[user]
        if update.delta.is_deposit:
            deposit = {"cDeposit": {"amount": amount}}
            events[user].append(DelegatorEvent(time=update.time, hash=update.hash, delta=deposit))
            for place, stake in enumerate(final):
                # The first validator also had the tokens that were withdrawn later.
                total = stake.amount + (0 if place else withdrawn[user])
                delta = _delegate_delta(
                    validators[stake.validator], decimal_text(total, WEI), is_undelegate=False
                )
                events[user].append(_silent_event(exchange, user, update.time + MINUTE, delta))
        else:
            delta = _delegate_delta(validators[final[0].validator], amount, is_undelegate=True)
            events[user].append(_silent_event(exchange, user, update.time - MINUTE, delta))
            delta = {"withdrawal": {"amount": amount, "phase": "finalized"}}
            events[user].append(DelegatorEvent(time=update.time, hash=update.hash, delta=delta))
    return {user: rows[::-1] for user, rows in events.items()}


def delegator_rewards(
    exchange: Exchange, rewards: list[DailyReward]
) -> dict[str, list[DelegatorReward]]:
    """Return what each staker, and each validator, earned on every day, newest first.

    A staker's share of the delegators' rewards is its share of the validator's stake.
    """
    # ASSUMED: Stakes earn rewards from the second day of the history. The stake of a validator is
    # its own stake plus these stakes.
    validators = validator_addresses(exchange.seed)
    stakes: dict[str, list[_Stake]] = defaultdict(list)
    for stake in _final_stakes(exchange):
        stakes[validators[stake.validator]].append(stake)
    earned: dict[tuple[int, str, str], int] = defaultdict(int)
    for reward in rewards:
        commission = parse_units(reward.commission, WEI)
        if commission:
            earned[reward.time, reward.validator, "commission"] += commission
        if reward.time <= exchange.start_ms + DAY:
            continue
        staked = parse_units(reward.staked, WEI)
        total = parse_units(reward.delegator_rewards, WEI)
        for stake in stakes[reward.validator]:
            user = exchange.accounts[stake.account].address
            earned[reward.time, user, "delegation"] += total * stake.amount // staked
    rows: dict[str, list[DelegatorReward]] = defaultdict(list)
    for (time, user, source), amount in sorted(earned.items(), reverse=True):
        row = DelegatorReward(time=time, source=source, total_amount=decimal_text(amount, WEI))
        rows[user].append(row)
    return dict(rows)


def _final_stakes(exchange: Exchange) -> list[_Stake]:
    """Return every stake at the end of history."""
    stakes = []
    for account in exchange.accounts:
        balance = exchange.wallets[account.number].get(NATIVE_TOKEN)
        if balance is None or balance.staked <= 0:
            continue
        number, amount = account.number, balance.staked
        locked_until = exchange.end_ms + (20 * HOUR if number % 3 == 0 else -number % 29 * DAY)
        parts = (amount,) if number % 2 else (amount // 3, amount - amount // 3)
        for place, part in enumerate(parts):
            validator = (number + place) % len(COMMISSIONS)
            stakes.append(_Stake(number, validator, part, locked_until))
    return stakes


def _silent_event(
    exchange: Exchange, user: str, time: int, delta: dict[str, Any]
) -> DelegatorEvent:
    """Return an event whose transaction moves no money and is in no other table."""
    number = int(user[2:10], 16) + time
    return DelegatorEvent(time=time, hash=transaction_hash(exchange.seed, number), delta=delta)


def _delegate_delta(validator: str, amount: str, *, is_undelegate: bool) -> dict[str, Any]:
    inner = {"validator": validator, "amount": amount, "isUndelegate": is_undelegate}
    return {"delegate": inner}
