"""Who has a special role: account modes, native tokens, spot trading, stories, vaults."""

from toolkit.simulation.accounts import Account
from toolkit.simulation.markets import PERPS

__all__ = ["DORMANT", "HEDGER", "SPOT_MAKER", "give_roles"]

SPOT_MAKER = "spot maker"
"""The manner of those who quote spot and outcome markets."""

HEDGER = "hedger"
DORMANT = "dormant"
"""The manners of those who trade neither on a view nor for long."""

_MODES = {2: 1, 5: 2, 8: 3, 11: 1}  # by number modulo 12; the others are standard accounts
_UNIFIED = 2
_ENDING = next(coin for coin, perp in enumerate(PERPS) if perp.delisted)
_STORIES = 7
_VAULTS = 2
_MOST_HEDGED = 20_000 * 10**6
"""Funds of a hedger at most: a whale takes a view."""


def give_roles(accounts: list[Account], makers: int) -> None:
    """Give roles by number: the last accounts are for spot, for stories and vaults.

    Parameters
    ----------
    accounts : list of Account
        Market makers first.
    makers : int
        How many of them there are.
    """
    takers = accounts[makers:]
    builders = {account.builder for account in takers} - {None}
    spot = max(4, len(takers) // 10)
    plain = takers[: -(spot + _STORIES + _VAULTS)]
    for place, account in enumerate(takers[: -(_STORIES + _VAULTS)]):
        account.mode = _MODES.get(place % 12, 0)
        account.wants_native = account.pays_priority or place % 5 == 0
        if place % 6 == 4:  # so that a market that ends has somebody in it
            account.coins = sorted({*account.coins, _ENDING})
    for account in plain[1::12]:
        account.sub_account_of = account.number - 1
    for place, account in enumerate(plain):
        if place % 12 == 3 or (account.manner == HEDGER and place % 12 not in _MODES):
            _to_hedger(account)
        elif place % 12 == 7:
            account.manner, account.activity = DORMANT, 0.0
        elif account.manner == HEDGER:
            account.manner = "noise"
        account.isolated = place % 12 == 9
        account.on_fee_trial = place % 12 == 10
    _to_spot(takers[len(plain) : len(plain) + spot])
    for account in takers[-(_STORIES + _VAULTS) : -_VAULTS]:
        _to_story(account)
    largest = max(account.funds for account in plain)
    for account in takers[-_VAULTS:]:
        _to_vault(account, largest // 10)
    _keep_modes_used(plain)
    _keep_builders_used(plain, builders)


def _keep_modes_used(people: list[Account]) -> None:
    """Let somebody of every account mode trade."""
    for mode in dict.fromkeys(_MODES.values()):
        mine = [account for account in people if account.mode == mode]
        if mine and not any(account.activity for account in mine):
            mine[0].manner, mine[0].activity = "noise", 1.0


def _keep_builders_used(people: list[Account], builders: set[int | None]) -> None:
    """Let every builder that somebody likes have one who trades."""
    active = [account for account in people if account.activity]
    lost = builders - {account.builder for account in active}
    free = [account for account in active if account.builder is None]
    for builder, account in zip(sorted(lost, key=str), free, strict=False):
        account.builder = builder


def _to_spot(people: list[Account]) -> None:
    """Let the first of them quote, and the others trade."""
    quoting, *trading = people
    quoting.manner, quoting.activity, quoting.coins = SPOT_MAKER, 0.0, []
    quoting.funds, quoting.spot_share, quoting.builder = 20_000_000 * 10**6, 90, None
    quoting.mode, quoting.wants_native, quoting.pays_priority = 0, False, False
    for account in trading:
        if account.manner in (HEDGER, DORMANT):
            account.manner, account.activity = "noise", 1.0
        account.spot_share = 30
        account.funds = max(account.funds, 10_000 * 10**6)
    trading[-1].mode = _UNIFIED
    # Gaps in spot balances: the first one gets, stakes, lends and burns native tokens; the
    # second one burns as gas what it has bought.
    for account, wants_native in zip(trading, (True, False), strict=False):
        account.wants_native, account.pays_priority = wants_native, True


def _to_hedger(account: Account) -> None:
    account.manner, account.activity, account.builder = HEDGER, 0.0, None
    account.wants_native = account.pays_priority = False
    account.funds, account.spot_share = min(account.funds, _MOST_HEDGED), 50


def _to_story(account: Account) -> None:
    account.story = True
    account.manner, account.activity, account.builder = "gambler", 0.0, None
    account.wants_native = account.pays_priority = False


def _to_vault(account: Account, funds: int) -> None:
    account.is_vault = True
    account.manner, account.activity, account.builder = "trend", 1.5, None
    account.wants_native = account.pays_priority = False
    account.coins = [coin for coin, perp in enumerate(PERPS) if not perp.dex][:6]
    account.funds = funds
