"""Staking: validators and their daily rewards, delegations, and what each staker sees.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any, NamedTuple

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


class _Stake(NamedTuple):
    """The amount that an account has delegated to one validator."""

    user: str
    validator: str
    amount: int
    locked_until: int


def validator_addresses(seed: int) -> list[str]:
    """Return the addresses of the validators."""
    return [party_address(seed, "validator", str(number)) for number in range(len(COMMISSIONS))]


def delegations(exchange: Exchange) -> dict[str, list[Delegation]]:
    """Return the delegations of each account: all of its stake, to one validator or two.

    Some of it is still locked, the rest has been free for a while.
    """
    rows: dict[str, list[Delegation]] = {}
    for user, validator, stake, locked_until in _final_stakes(exchange):
        amount = decimal_text(stake, WEI)
        row = Delegation(validator=validator, amount=amount, locked_until_timestamp=locked_until)
        rows.setdefault(user, []).append(row)
    return rows


def daily_rewards(exchange: Exchange) -> list[DailyReward]:
    """Return the rewards of every validator on every day since rewards are published.

    The total reward is rounded to the token's last digit, and so is the commission. The
    delegators get the rest, so that nothing is lost.
    """
    rng = random_stream(exchange.seed, "rewards")
    validators = validator_addresses(exchange.seed)
    delegated = dict.fromkeys(validators, 0)
    for stake in _final_stakes(exchange):
        delegated[stake.validator] += stake.amount
    own = (rng.integers(500_000, 5_000_000, len(COMMISSIONS)) * ONE_TOKEN).tolist()
    rewards = []
    for time in range(_FIRST_DAY + DAY, exchange.end_ms + 1, DAY):
        factors = rng.integers(900, 1_100, len(COMMISSIONS)).tolist()
        for validator, share, kept, factor in zip(
            validators, COMMISSIONS, own, factors, strict=True
        ):
            staked = kept + (delegated[validator] if time > exchange.start_ms else 0)
            total = rounded_share(staked, _ANNUAL_MILLIONTHS * factor, 365 * 10**9)
            commission = rounded_share(total, share, 10_000)
            rewards.append(
                DailyReward(
                    validator=validator,
                    time=time,
                    staked=decimal_text(staked, WEI),
                    delegator_rewards=decimal_text(total - commission, WEI),
                    commission=decimal_text(commission, WEI),
                )
            )
    return rewards


def delegator_summaries(exchange: Exchange) -> dict[str, DelegatorSummary]:
    """Return each staker's stake: all of it is delegated, and no withdrawal is pending."""
    totals: dict[str, int] = defaultdict(int)
    for stake in _final_stakes(exchange):
        totals[stake.user] += stake.amount
    return {
        user: DelegatorSummary(
            delegated=decimal_text(total, WEI),
            undelegated="0.0",
            total_pending_withdrawal="0.0",
            n_pending_withdrawals=0,
        )
        for user, total in totals.items()
    }


def delegator_events(exchange: Exchange) -> dict[str, list[DelegatorEvent]]:
    """Return the changes of each staker's stake, newest first.

    The transfers are those of the ledger. Tokens are delegated one minute after they come in.
    They are undelegated from the first validator one minute before they leave.
    """
    stakes: dict[str, list[_Stake]] = defaultdict(list)
    for stake in _final_stakes(exchange):
        stakes[stake.user].append(stake)
    transfers = [
        (user, update)
        for user, update in exchange.ledger
        if update.delta.type == _TRANSFER and user in stakes
    ]
    withdrawn: dict[str, int] = defaultdict(int)
    for user, update in transfers:
        if not update.delta.is_deposit:
            withdrawn[user] += parse_units(str(update.delta.amount), WEI)
    events: dict[str, list[DelegatorEvent]] = defaultdict(list)

    def delegate(user: str, time: int, validator: str, amount: str, is_undelegate: bool) -> None:
        """Add an event whose transaction moves no money and is in no other table."""
        inner = {"validator": validator, "amount": amount, "isUndelegate": is_undelegate}
        name = transaction_hash(exchange.seed, int(user[2:10], 16) + time)
        events[user].append(DelegatorEvent(time=time, hash=name, delta={"delegate": inner}))

    for user, update in transfers:
        time, amount = update.time, str(update.delta.amount)
        delta: dict[str, Any] = {"cDeposit": {"amount": amount}}
        if not update.delta.is_deposit:
            delegate(user, time - MINUTE, stakes[user][0].validator, amount, True)
            delta = {"withdrawal": {"amount": amount, "phase": "finalized"}}
        events[user].append(DelegatorEvent(time=time, hash=update.hash, delta=delta))
        for place, stake in enumerate(stakes[user] if update.delta.is_deposit else ()):
            # The first validator also had the tokens that were withdrawn later.
            total = stake.amount + (0 if place else withdrawn[user])
            delegate(user, time + MINUTE, stake.validator, decimal_text(total, WEI), False)
    return {user: rows[::-1] for user, rows in events.items()}


def delegator_rewards(
    exchange: Exchange, rewards: list[DailyReward]
) -> dict[str, list[DelegatorReward]]:
    """Return what each staker, and each validator, earned on every day, newest first.

    A staker's share of the delegators' rewards is its share of the validator's stake.
    """
    # ASSUMED: Stakes earn rewards from the second day of the history. The stake of a validator is
    # its own stake plus these stakes.
    stakes: dict[str, list[_Stake]] = defaultdict(list)
    for stake in _final_stakes(exchange):
        stakes[stake.validator].append(stake)
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
            earned[reward.time, stake.user, "delegation"] += total * stake.amount // staked
    rows: dict[str, list[DelegatorReward]] = defaultdict(list)
    for (time, user, source), amount in sorted(earned.items(), reverse=True):
        row = DelegatorReward(time=time, source=source, total_amount=decimal_text(amount, WEI))
        rows[user].append(row)
    return dict(rows)


def _final_stakes(exchange: Exchange) -> list[_Stake]:
    """Return every stake at the end of history."""
    validators, stakes = validator_addresses(exchange.seed), []
    for account in exchange.accounts:
        balance = exchange.wallets[account.number].get(NATIVE_TOKEN)
        if balance is None or balance.staked <= 0:
            continue
        number, amount = account.number, balance.staked
        locked_until = exchange.end_ms + (20 * HOUR if number % 3 == 0 else -number % 29 * DAY)
        parts = (amount,) if number % 2 else (amount // 3, amount - amount // 3)
        for place, part in enumerate(parts, number):
            validator = validators[place % len(validators)]
            stakes.append(_Stake(account.address, validator, part, locked_until))
    return stakes
