"""The population: accounts of heavy-tailed sizes, with strategies, coins, fees and roles."""

import numpy as np

from toolkit.simulation.engine.accounts import MAKER_MICRO, REBATES, TIERS, Account, Strategy
from toolkit.simulation.exact import pareto_draws, party_address, random_stream
from toolkit.simulation.markets import PERPS

_STRATEGY_SHARES: tuple[tuple[Strategy, float], ...] = (
    ("trend", 0.26),
    ("reversion", 0.52),
    ("noise", 0.78),
    ("gambler", 0.86),
    ("hedger", 0.94),
    ("dormant", 1.0),
)
"""Strategies of takers, with cumulative shares."""

_ROUTED_SHARE = 0.4
_MODES = {2: 1, 5: 2, 8: 3, 11: 1}  # by number modulo 12; the others are standard accounts
_ENDING_PERP = next(coin for coin, perp in enumerate(PERPS) if perp.delisted)
_STORIES = 7
_VAULTS = 2
_LARGEST_HEDGER = 20_000 * 10**6
"""Largest funds of a hedger: larger accounts trade on a view."""


def draw_accounts(seed: int, makers: int, takers: int, builders: int) -> list[Account]:
    """Draw market makers first, then all others, without their special roles."""
    rng = random_stream(seed, "accounts")
    sizes = pareto_draws(rng, makers + takers)
    accounts = [
        Account(
            number=number,
            address=party_address(seed, "account", str(number)),
            strategy="maker",
            funds=int(rng.integers(20_000_000, 60_000_000)) * 10**6,
            leverage=3.0,
            coins=list(range(len(PERPS))),
            maker_micro=REBATES[number % len(REBATES)],
            uses_cloids=number % 2 == 0,
        )
        for number in range(makers)
    ]
    for number in range(makers, makers + takers):
        draw = rng.random()
        strategy = next(name for name, share in _STRATEGY_SHARES if draw <= share)
        funds = int(min(float(sizes[number]) * 4_000.0, 30_000_000.0) * 100.0) * 10**4
        is_routed = rng.random() < _ROUTED_SHARE
        account = Account(
            number=number,
            address=party_address(seed, "account", str(number)),
            strategy=strategy,
            funds=funds,
            leverage=8.0 if strategy == "gambler" else 0.5 + 2.0 * rng.random(),
            coins=_draw_coins(rng),
            activity=0.0 if strategy == "dormant" else 0.3 + float(pareto_draws(rng, 1)[0]),
            taker_micro=next(fee for volume, fee in TIERS if funds // 10**5 >= volume),
            maker_micro=MAKER_MICRO,
            builder=int(rng.integers(0, builders)) if is_routed else None,
            uses_cloids=rng.random() < 0.5,
            pays_priority=rng.random() < 0.2,
        )
        accounts.append(account)
    return accounts


def assign_roles(accounts: list[Account], makers: int) -> None:
    """Assign roles by number: the last accounts trade spot, have stories, or are vaults.

    - ``accounts``: market makers first
    - ``makers``: the number of market makers
    """
    takers = accounts[makers:]
    builders = {account.builder for account in takers} - {None}
    spot = max(4, len(takers) // 10)
    plain = takers[: -(spot + _STORIES + _VAULTS)]
    for place, account in enumerate(takers[: -(_STORIES + _VAULTS)]):
        account.mode = _MODES.get(place % 12, 0)
        account.uses_native = account.pays_priority or place % 5 == 0
        if place % 6 == 4:  # so that somebody trades the perp that ends
            account.coins = sorted({*account.coins, _ENDING_PERP})
    for account in plain[1::12]:
        account.sub_account_of = account.number - 1
    for place, account in enumerate(plain):
        if place % 12 == 3 or (account.strategy == "hedger" and place % 12 not in _MODES):
            _stop_trading(account, "hedger")
            account.funds, account.spot_share = min(account.funds, _LARGEST_HEDGER), 50
        elif place % 12 == 7:
            account.strategy, account.activity = "dormant", 0.0
        elif account.strategy == "hedger":
            account.strategy = "noise"
        account.uses_isolated = place % 12 == 9
        account.has_fee_trial = place % 12 == 10
    _make_spot_traders(takers[len(plain) : len(plain) + spot])
    for account in takers[-(_STORIES + _VAULTS) : -_VAULTS]:
        _stop_trading(account, "gambler")
        account.has_story = True
    largest = max(account.funds for account in plain)
    for account in takers[-_VAULTS:]:
        _stop_trading(account, "trend")
        account.is_vault, account.activity, account.funds = True, 1.5, largest // 10
        account.coins = [coin for coin, perp in enumerate(PERPS) if not perp.dex][:6]
    for mode in dict.fromkeys(_MODES.values()):  # an account of every mode trades
        same_mode = [account for account in plain if account.mode == mode]
        if same_mode and not any(account.activity for account in same_mode):
            same_mode[0].strategy, same_mode[0].activity = "noise", 1.0
    # An account that trades uses each builder.
    active = [account for account in plain if account.activity]
    unused = builders - {account.builder for account in active}
    free = [account for account in active if account.builder is None]
    for builder, account in zip(sorted(unused, key=str), free, strict=False):
        account.builder = builder


def _draw_coins(rng: np.random.Generator) -> list[int]:
    """Draw two to seven different perps, the often traded ones more often."""
    tickets = [index for index, perp in enumerate(PERPS) for _ in range(perp.weight)]
    count = int(rng.integers(2, 8))
    coins: set[int] = set()
    while len(coins) < count:
        coins.add(tickets[int(rng.integers(0, len(tickets)))])
    return sorted(coins)


def _stop_trading(account: Account, strategy: Strategy) -> None:
    """Let an account trade by its strategy alone: it looks at no market and pays no extras."""
    account.strategy, account.activity, account.builder = strategy, 0.0, None
    account.uses_native = account.pays_priority = False


def _make_spot_traders(accounts: list[Account]) -> None:
    """Make the first account the market maker of spot, and the others traders."""
    maker, *traders = accounts
    _stop_trading(maker, "spot maker")
    maker.funds, maker.spot_share, maker.coins, maker.mode = 20_000_000 * 10**6, 90, [], 0
    for account in traders:
        if account.strategy in ("hedger", "dormant"):
            account.strategy, account.activity = "noise", 1.0
        account.spot_share = 30
        account.funds = max(account.funds, 10_000 * 10**6)
    traders[-1].mode = 2  # unified
    # These two produce gaps in spot balances: the first receives, stakes, lends and burns native
    # tokens; the second burns as gas what it has bought.
    for account, uses_native in zip(traders, (True, False), strict=False):
        account.uses_native, account.pays_priority = uses_native, True
