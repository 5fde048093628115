"""Validators, what is delegated to them, and what it earns every day."""

from dataclasses import dataclass

from toolkit.contract.records import Delegation
from toolkit.contract.sources import DailyReward
from toolkit.simulation.draws import address, stream
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.simulation.quantities import WEI, rounded_share, text
from toolkit.times import DAY, HOUR, to_ms

__all__ = [
    "COMMISSIONS",
    "Stake",
    "daily_rewards",
    "delegations",
    "stakes",
    "validator_addresses",
]

COMMISSIONS = (0, 300, 400, 500, 1_000, 10_000)
"""What each validator keeps of the rewards, in hundredths of a percent."""

_FIRST_DAY = to_ms("2025-08-01")  # specification, "Data availability"
_ONE = 10**WEI
_ANNUAL_MILLIONTHS = 22_000


@dataclass(frozen=True, slots=True)
class Stake:
    """What an account has delegated to one validator."""

    who: int
    validator: int
    amount: int
    locked_until: int


def validator_addresses(seed: int) -> list[str]:
    """Give the addresses of the validators."""
    return [address(seed, "validator", str(number)) for number in range(len(COMMISSIONS))]


def delegations(exchange: Exchange) -> dict[str, list[Delegation]]:
    """Give what each account has delegated: all it has staked, to one validator or two.

    Some of it is still locked, the rest has been free for a while.
    """
    validators = validator_addresses(exchange.seed)
    kept: dict[str, list[Delegation]] = {}
    for stake in stakes(exchange):
        row = Delegation(
            validator=validators[stake.validator],
            amount=text(stake.amount, WEI),
            locked_until_timestamp=stake.locked_until,
        )
        kept.setdefault(exchange.accounts[stake.who].address, []).append(row)
    return kept


def daily_rewards(exchange: Exchange) -> list[DailyReward]:
    """Give what every validator's stake earned on every day since rewards are published.

    The whole reward is rounded to the token's last digit, and so is the commission; the
    delegators get the rest, so that nothing is lost.
    """
    rng = stream(exchange.seed, "rewards")
    validators = validator_addresses(exchange.seed)
    delegated = [0] * len(COMMISSIONS)
    for stake in stakes(exchange):
        delegated[stake.validator] += stake.amount
    own = (rng.integers(500_000, 5_000_000, len(COMMISSIONS)) * _ONE).tolist()
    rewards = []
    for time in range(_FIRST_DAY + DAY, exchange.end_ms + 1, DAY):
        lucks = rng.integers(900, 1_100, len(COMMISSIONS)).tolist()
        for number, commission in enumerate(COMMISSIONS):
            staked = own[number] + (delegated[number] if time > exchange.start_ms else 0)
            whole = rounded_share(staked, _ANNUAL_MILLIONTHS * lucks[number], 365 * 10**9)
            kept = rounded_share(whole, commission, 10_000)
            rewards.append(
                DailyReward(
                    validator=validators[number],
                    time=time,
                    staked=text(staked, WEI),
                    delegator_rewards=text(whole - kept, WEI),
                    commission=text(kept, WEI),
                )
            )
    return rewards


def stakes(exchange: Exchange) -> list[Stake]:
    """Return every stake at the end of history."""
    stakes = []
    for account in exchange.accounts:
        holding = exchange.wallets[account.number].get(NATIVE_TOKEN)
        if holding is None or holding.staked <= 0:
            continue
        who, amount = account.number, holding.staked
        lock = exchange.end_ms + (20 * HOUR if who % 3 == 0 else -who % 29 * DAY)
        parts = (amount,) if who % 2 else (amount // 3, amount - amount // 3)
        for place, part in enumerate(parts):
            stakes.append(Stake(who, (who + place) % len(COMMISSIONS), part, lock))
    return stakes
