"""How what an account has came about: on its perps, and in its spot wallet."""

from dataclasses import dataclass

from toolkit.rules.spot_cost import FLAT, Basis, adjust

__all__ = ["Funded", "Holding", "Totals"]


@dataclass(slots=True)
class Totals:
    """What an account has earned and paid on its perps, in micro-dollars; one row of truth."""

    closed: int = 0
    funding: int = 0
    fees: int = 0
    ledger: int = 0


@dataclass(slots=True)
class Funded:
    """The funding that an account has received in one perp, in micro-dollars."""

    all_time: int = 0
    since_open: int = 0
    since_change: int = 0


@dataclass(slots=True)
class Holding:
    """How a spot balance of one token came about, in units of ``10**-WEI``.

    `basis` is what the tokens cost, as of the last fill.
    """

    ledger: int = 0
    traded: int = 0
    fees: int = 0
    gas: int = 0
    staked: int = 0
    basis: Basis = FLAT

    @property
    def balance(self) -> int:
        """What there is in the wallet; what is staked is not."""
        return self.ledger + self.traded - self.fees - self.gas

    def basis_now(self, unit: int) -> Basis:
        """Return the cost basis of the balance now, with what moved since the last fill.

        Parameters
        ----------
        unit : int
            1e-8 USD, in the units of costs.
        """
        # ASSUMED: what moved between two fills counts as one gap, in or out.
        return adjust(self.basis, self.balance, tolerance=0, unit=unit)[1]
