"""Weekly APRs from daily rewards. Specification, "Validator weekly APR entry"."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from toolkit.contract.records import ValidatorWeek
from toolkit.contract.sources import DailyReward
from toolkit.rules.staking import apr
from toolkit.service.merging import plain
from toolkit.times import DAY

__all__ = ["week_of", "weeks"]

_FIRST_MONDAY = 4 * DAY  # 1970-01-05


def weeks(rewards: Iterable[DailyReward]) -> dict[str, list[ValidatorWeek]]:
    """Compute what each validator's delegators earned, week by week, newest first.

    Net APR is the sum of delegation rewards over the sum of stakes, times 365; gross APR counts
    the commission, too. Not compounded.

    Examples
    --------
    >>> reward = DailyReward("0xv", 1759104000000, "36500", "9", "1")
    >>> [entry] = weeks([reward])["0xv"]
    >>> entry.net_apr, entry.gross_apr
    (0.09, 0.1)
    """
    by_week: dict[str, dict[int, list[DailyReward]]] = defaultdict(lambda: defaultdict(list))
    for one in rewards:
        # ASSUMED: a distribution at midnight belongs to the day, and the week, that it ends.
        by_week[one.validator][week_of(one.time - DAY)].append(one)
    return {
        validator: [_entry(week, found[week]) for week in sorted(found, reverse=True)]
        for validator, found in by_week.items()
    }


def week_of(time: int) -> int:
    """Give the Monday, 00:00 UTC, of a time, both in milliseconds."""
    return (time - _FIRST_MONDAY) // (7 * DAY) * (7 * DAY) + _FIRST_MONDAY


def _entry(week: int, days: list[DailyReward]) -> ValidatorWeek:
    staked = sum(Decimal(day.staked) for day in days)
    net = sum((Decimal(day.delegator_rewards) for day in days), Decimal(0))
    gross = net + sum(Decimal(day.commission) for day in days)
    return ValidatorWeek(
        week=week,
        net_apr=float(apr(net, staked)) if staked else 0.0,
        gross_apr=float(apr(gross, staked)) if staked else 0.0,
        total_delegator_rewards=plain(net),
    )
