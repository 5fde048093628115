"""Accounts worth looking at, by name, with a line on each one's story."""

from functools import partial

from toolkit.simulation.accounts import Account
from toolkit.simulation.floor import Floor
from toolkit.simulation.lending import borrow_lend_states
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.simulation.staking import validator_addresses
from toolkit.simulation.stories import STORIES
from toolkit.simulation.twaps import Twap

__all__ = ["LINES", "find_examples", "trades_more_than_perps"]

LINES = {
    "WHALE": "the taker with the largest first deposit",
    "MARKET_MAKER": "quotes every perp, is paid rebates, and holds what others sold",
    "TWAP_USER": "has a TWAP that still runs at the end of history",
    "PORTFOLIO_MARGIN": "a portfolio-margin account; its snapshots have eight values",
    "UNIFIED": "a unified account: its USDC lies in the spot wallet and in perps alike",
    "SPOT_TRADER": "buys and sells tokens and outcomes; pays fees in what it bought",
    "VAULT": "trades what its followers have put in",
    "LIQUIDATED": "long at the largest leverage before the price fell",
    "SQUEEZED": "short at the largest leverage before the price rose",
    "ISOLATED": "bet long and short, each with a margin of its own: each liquidated alone",
    "DELEVERAGED": "too large for its market: closed against those who gained most",
    "SOLD": "liquidated by market orders: its fills say Close Long, and name the liquidation",
    "TRIMMED": "liquidated in part by market orders: what is left has margin enough",
    "LARGE": "holds positions so large that their maintenance margin is tiered",
    "SUB_ACCOUNT": "a sub-account: its first money comes from its main account",
    "STAKER": "delegates the most of all",
    "BORROWER": "has borrowed almost as much as it supplied: its health is at risk",
    "BUILDER": "the builder with the lowest fee; users approve, revoke and approve it again",
    "VALIDATOR": "keeps 4 % of what its stake earns",
}
"""Name -> what there is to see."""


def find_examples(floor: Floor) -> dict[str, str]:
    """Give the address behind each name of `LINES`."""
    accounts = floor.exchange.accounts
    active = [account for account in accounts if account.activity]
    people = [account for account in active if not trades_more_than_perps(account)]
    spot = [account for account in active if account.spot_share]
    lending = borrow_lend_states(accounts)
    states = {address: state.health for address, state in lending.items()}
    named = {
        "WHALE": max(people, key=_funds),
        "MARKET_MAKER": accounts[0],
        "TWAP_USER": max(floor.twaps, key=_running).account,
        "PORTFOLIO_MARGIN": next(account for account in people if account.mode == 3),
        "UNIFIED": next(account for account in people if account.mode == 2),
        "SPOT_TRADER": spot[0],
        "SUB_ACCOUNT": next(account for account in accounts if account.sub_account_of is not None),
        "STAKER": max(accounts, key=partial(_staked, floor)),
        "BORROWER": next(
            account for account in accounts if states.get(account.address) == "atRisk"
        ),
        "VAULT": next(account for account in accounts if account.is_vault),
    }
    gamblers = (account for account in accounts if account.story)
    named |= {story.name: account for story, account in zip(STORIES, gamblers, strict=True)}
    found = {name: account.address for name, account in named.items()}
    validator = validator_addresses(floor.exchange.seed)[2]
    found |= {"BUILDER": floor.builders[0], "VALIDATOR": validator}
    return {name: found[name] for name in LINES}


def trades_more_than_perps(account: Account) -> bool:
    """Say whether an account trades spot, or holds what belongs to others."""
    return account.is_vault or account.spot_share > 0


def _staked(floor: Floor, account: Account) -> int:
    holding = floor.exchange.wallets[account.number].get(NATIVE_TOKEN)
    return 0 if holding is None else holding.staked


def _running(twap: Twap) -> tuple[bool, bool, int]:
    """Prefer what still runs, has traded, and began last."""
    return not twap.ended, twap.executed > 0, twap.start


def _funds(account: Account) -> int:
    return account.funds
