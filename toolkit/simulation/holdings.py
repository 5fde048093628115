"""How what an account has came about: on its perps, and in its spot wallet."""

from dataclasses import dataclass

__all__ = ["Holding", "Totals"]


@dataclass(slots=True)
class Totals:
    """What an account has earned and paid on its perps, in micro-dollars; one row of truth."""

    closed: int = 0
    funding: int = 0
    fees: int = 0
    ledger: int = 0


@dataclass(slots=True)
class Holding:
    """How a spot balance of one token came about, in units of ``10**-WEI``."""

    ledger: int = 0
    traded: int = 0
    fees: int = 0
    gas: int = 0
    staked: int = 0

    @property
    def balance(self) -> int:
        """What there is in the wallet; what is staked is not."""
        return self.ledger + self.traded - self.fees - self.gas
