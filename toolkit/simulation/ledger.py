"""The ledger: money that moves without a trade, and the row it leaves."""

from toolkit.contract.records import LedgerDelta, LedgerUpdate
from toolkit.simulation.exchange import Exchange, Transaction
from toolkit.simulation.quantities import MICRO, WEI, money, text

__all__ = ["FINER", "credit", "give", "usd", "wei", "write"]

FINER: int = 10 ** (WEI - MICRO)
"""Units of a spot balance to one micro-dollar."""


def credit(exchange: Exchange, who: int, usdc: int, dex: int = 0) -> None:
    """Put micro-dollars into an account's perps on a dex; negative takes them out."""
    exchange.balances[who][dex] += usdc
    exchange.totals[who].ledger += usdc


def give(exchange: Exchange, who: int, token: str, amount: int) -> None:
    """Put tokens into an account's spot wallet, in units of 1e-8; negative takes them out."""
    exchange.wallets[who][token].ledger += amount


def write(exchange: Exchange, tx: Transaction, delta: LedgerDelta, *concerned: int) -> None:
    """Write one update into the ledger of each account that it concerns, once."""
    update = LedgerUpdate(time=tx.time, hash=tx.hash, delta=delta)
    for who in dict.fromkeys(concerned):
        exchange.ledger.append((exchange.accounts[who].address, update))


def usd(micro: int) -> str:
    """Write micro-dollars."""
    return money(micro)


def wei(amount: int) -> str:
    """Write an amount of a token."""
    return text(amount, WEI)
