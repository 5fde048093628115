"""Borrowing and lending: positions in every state of health."""

from toolkit.contract.records import BorrowLend, LendPosition, TokenState
from toolkit.simulation.accounts import Account
from toolkit.simulation.markets import NATIVE_TOKEN, TOKENS
from toolkit.simulation.quantities import WEI, text

__all__ = ["HEALTH", "borrow_lend_states"]

HEALTH = (
    ("healthy", 250),
    ("atRisk", 108),
    ("marketLiquidatable", 97),
    ("backstopLiquidatable", 62),
)
"""States of health, each with a health factor in hundredths."""

_ONE = 10**WEI


def borrow_lend_states(accounts: list[Account]) -> dict[str, BorrowLend]:
    """Give the states of those who hold native tokens; one has paid everything back."""
    # ASSUMED: a health factor is the value supplied over the value borrowed.
    users = [account for account in accounts if account.wants_native]
    states = {account.address: _state(place) for place, account in enumerate(users)}
    if users:
        cleared = BorrowLend(token_to_state=[], health="healthy", health_factor=None)
        states[users[-1].address] = cleared
    return states


def _state(place: int) -> BorrowLend:
    health, hundredths = HEALTH[place % len(HEALTH)]
    supplied = (1_000 + 37 * place) * _ONE
    borrowed = supplied * 100 // hundredths
    usdc = TokenState(borrow=_position(0, 0), supply=_position(supplied, place))
    native = TokenState(borrow=_position(borrowed // 45, place), supply=_position(0, 0))
    return BorrowLend(
        token_to_state=[(0, usdc), (TOKENS[NATIVE_TOKEN], native)],
        health=health,
        health_factor=text(hundredths, 2),
    )


def _position(value: int, place: int) -> LendPosition:
    """Give a position whose value has grown by some interest since it was made."""
    basis = value - value * (place % 9) // 1_000
    return LendPosition(basis=text(basis, WEI), value=text(value, WEI))
