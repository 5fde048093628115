"""Example accounts: addresses with a name, and one sentence about each."""

from operator import attrgetter

from toolkit.simulation.agents.gamblers import STORIES
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import NATIVE_TOKEN
from toolkit.simulation.output.profiles import validator_addresses

STORY_TEXTS = {
    "WHALE": "the taker with the largest first deposit",
    "MARKET_MAKER": "quotes every perp, receives rebates, and holds what others sold",
    "TWAP_USER": "has a TWAP that still runs at the end of history",
    "PORTFOLIO_MARGIN": "a portfolio-margin account; its snapshots have eight values",
    "UNIFIED": "a unified account: its spot wallet and its perps share the same USDC",
    "SPOT_TRADER": "buys and sells tokens and outcomes; pays fees in the token that it buys",
    "VAULT": "trades the money of its followers",
    "LIQUIDATED": "long at the largest leverage before the price fell",
    "SQUEEZED": "short at the largest leverage before the price rose",
    "ISOLATED": "bets long and short, each with its own margin; each is liquidated alone",
    "DELEVERAGED": "too large for its market: closed against the accounts that gained most",
    "SOLD": "liquidated by market orders: its fills say Close Long and name the liquidation",
    "TRIMMED": "liquidated in part by market orders: the rest has enough margin",
    "LARGE": "has positions so large that their maintenance margin is tiered",
    "SUB_ACCOUNT": "a sub-account: its first money comes from its main account",
    "STAKER": "delegates more than any other account",
    "BORROWER": "has borrowed almost as much as it supplied: its health is at risk",
    "BUILDER": "the builder with the lowest fee; users approve, revoke and approve it again",
    "VALIDATOR": "keeps 4 % of the rewards of its stake",
}
"""Name -> what the account shows."""


def find_examples(exchange: Exchange) -> dict[str, str]:
    """Return the address of each name of `STORY_TEXTS`."""
    accounts = exchange.accounts
    active = [account for account in accounts if account.activity]
    perp_traders = [account for account in active if account.trades_only_perps]
    natives = [account for account in accounts if account.uses_native]
    found = {
        "WHALE": max(perp_traders, key=attrgetter("funds")),
        "MARKET_MAKER": accounts[0],
        # A running TWAP with fills that started late:
        "TWAP_USER": max(
            exchange.twaps, key=lambda twap: (not twap.ended, twap.executed > 0, twap.start)
        ).account,
        "PORTFOLIO_MARGIN": next(account for account in perp_traders if account.mode == 3),
        "UNIFIED": next(account for account in perp_traders if account.mode == 2),
        "SPOT_TRADER": next(account for account in active if account.spot_share),
        "SUB_ACCOUNT": next(account for account in accounts if account.sub_account_of is not None),
        "STAKER": max(natives, key=lambda one: exchange.wallets[one.number][NATIVE_TOKEN].staked),
        "BORROWER": natives[1],  # the second state of health in `states` is at risk
        "VAULT": next(account for account in accounts if account.is_vault),
    }
    gamblers = (account for account in accounts if account.has_story)
    found |= {story.name: account for story, account in zip(STORIES, gamblers, strict=True)}
    addresses = {name: account.address for name, account in found.items()}
    addresses["BUILDER"] = exchange.builders[0]
    addresses["VALIDATOR"] = validator_addresses(exchange.seed)[2]
    return {name: addresses[name] for name in STORY_TEXTS}
