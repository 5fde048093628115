"""Staking: validators and their daily rewards, delegations, and what each staker sees.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from typing import Any

from toolkit.contract.records import Delegation, DelegatorEvent, DelegatorReward, DelegatorSummary
from toolkit.contract.source_tables import DailyReward
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import exact
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.times import DAY, HOUR, MINUTE, to_ms

COMMISSIONS = (0, 300, 400, 500, 1_000, 10_000)
"""Each validator's commission, in hundredths of a percent of the rewards."""

_FIRST_DAY = to_ms("2025-08-01")  # specification, "Data availability"
_ANNUAL_MILLIONTHS = 22_000

_Stakes = dict[str, dict[str, int]]
"""Account -> validator -> the amount that the account has delegated to it."""


def validator_addresses(seed: int) -> list[str]:
    """Return the addresses of the validators."""
    return [
        exact.party_address(seed, "validator", str(number)) for number in range(len(COMMISSIONS))
    ]


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the rewards of validators, and each account's delegations, stake and its changes.

    An account has delegated all of its stake, to one validator or two. Some of it is still locked,
    the rest has been free for a while. No withdrawal is pending.
    """
    validators = validator_addresses(exchange.seed)
    stakes: _Stakes = {}
    delegations: dict[str, list[Delegation]] = {}
    summaries = {}
    for number, account in enumerate(exchange.accounts):
        balance = exchange.wallets[number].get(NATIVE_TOKEN)
        if balance is None or (staked := balance.staked) <= 0:
            continue
        locked_until = exchange.end_ms + (20 * HOUR if number % 3 == 0 else -number % 29 * DAY)
        parts = (staked,) if number % 2 else (staked // 3, staked - staked // 3)
        stakes[account.address] = {
            validators[place % len(validators)]: part for place, part in enumerate(parts, number)
        }
        delegations[account.address] = [
            Delegation(
                validator=validator,
                amount=exact.decimal_text(part, WEI),
                locked_until_timestamp=locked_until,
            )
            for validator, part in stakes[account.address].items()
        ]
        summaries[account.address] = DelegatorSummary(
            delegated=exact.decimal_text(staked, WEI),
            undelegated="0.0",
            total_pending_withdrawal="0.0",
            n_pending_withdrawals=0,
        )
    rewards, stake_rewards = _rewards(exchange, validators, stakes)
    return {
        "delegations": delegations,
        "rewards": rewards,
        "stakes": summaries,
        "stake_events": _stake_events(exchange, stakes),
        "stake_rewards": stake_rewards,
    }


def _rewards(
    exchange: Exchange, validators: list[str], stakes: _Stakes
) -> tuple[list[DailyReward], dict[str, list[DelegatorReward]]]:
    """Return the rewards of every validator on every day since rewards are published.

    The total reward is rounded to the token's last digit, and so is the commission. The
    delegators get the rest, so that nothing is lost. The second table has what each staker, and
    each validator, earned, newest first: a staker's share is its share of the validator's stake.
    """
    # ASSUMED: Stakes earn rewards from the second day of the history. The stake of a validator is
    # its own stake plus these stakes.
    rng = exact.random_stream(exchange.seed, "rewards")
    own = (rng.integers(500_000, 5_000_000, len(COMMISSIONS)) * exact.ONE_TOKEN).tolist()
    delegated: dict[str, dict[str, int]] = {validator: {} for validator in validators}
    for user, parts in stakes.items():
        for validator, amount in parts.items():
            delegated[validator][user] = amount
    rewards = []
    earned: dict[tuple[int, str, str], int] = defaultdict(int)
    for time in range(_FIRST_DAY + DAY, exchange.end_ms + 1, DAY):
        factors = rng.integers(900, 1_100, len(COMMISSIONS)).tolist()
        for validator, share, kept, factor in zip(
            validators, COMMISSIONS, own, factors, strict=True
        ):
            users = delegated[validator] if time > exchange.start_ms else {}
            staked = kept + sum(users.values())
            total = exact.rounded_share(staked, _ANNUAL_MILLIONTHS * factor, 365 * 10**9)
            commission = exact.rounded_share(total, share, 10_000)
            reward = DailyReward(
                validator=validator,
                time=time,
                staked=exact.decimal_text(staked, WEI),
                delegator_rewards=exact.decimal_text(total - commission, WEI),
                commission=exact.decimal_text(commission, WEI),
            )
            rewards.append(reward)
            if commission:
                earned[time, validator, "commission"] += commission
            for user, amount in users.items() if time > exchange.start_ms + DAY else ():
                earned[time, user, "delegation"] += (total - commission) * amount // staked
    rows: dict[str, list[DelegatorReward]] = defaultdict(list)
    for (time, user, source), amount in sorted(earned.items(), reverse=True):
        row = DelegatorReward(
            time=time, source=source, total_amount=exact.decimal_text(amount, WEI)
        )
        rows[user].append(row)
    return rewards, dict(rows)


def _stake_events(exchange: Exchange, stakes: _Stakes) -> dict[str, list[DelegatorEvent]]:
    """Return the changes of each staker's stake, newest first.

    The transfers are those of the ledger. Tokens are delegated one minute after they come in.
    They are undelegated from the first validator one minute before they leave.
    """
    transfers = [
        (user, update, exact.parse_units(str(update.delta.amount), WEI))
        for user, update in exchange.ledger
        if update.delta.type == "cStakingTransfer" and user in stakes
    ]
    withdrawn: dict[str, int] = defaultdict(int)
    for user, update, amount in transfers:
        withdrawn[user] += 0 if update.delta.is_deposit else amount
    events: dict[str, list[DelegatorEvent]] = defaultdict(list)

    def delegate(user: str, time: int, validator: str, amount: int, is_undelegate: bool) -> None:
        """Add an event whose transaction moves no money and is in no other table."""
        text = exact.decimal_text(amount, WEI)
        inner = {"validator": validator, "amount": text, "isUndelegate": is_undelegate}
        name = exact.transaction_hash(exchange.seed, int(user[2:10], 16) + time)
        events[user].append(DelegatorEvent(time=time, hash=name, delta={"delegate": inner}))

    for user, update, amount in transfers:
        time, is_deposit = update.time, update.delta.is_deposit
        moved: dict[str, Any] = {"amount": exact.decimal_text(amount, WEI)}
        delta = {"cDeposit": moved} if is_deposit else {"withdrawal": moved}
        if not is_deposit:
            moved["phase"] = "finalized"
            delegate(user, time - MINUTE, next(iter(stakes[user])), amount, True)
        events[user].append(DelegatorEvent(time=time, hash=update.hash, delta=delta))
        for place, (validator, part) in enumerate(stakes[user].items() if is_deposit else ()):
            # The first validator also had the tokens that were withdrawn later.
            total = part + (0 if place else withdrawn[user])
            delegate(user, time + MINUTE, validator, total, False)
    return {user: rows[::-1] for user, rows in events.items()}
