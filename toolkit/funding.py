"""Funding payments and rates. An amount is positive if the account received it."""

from toolkit.analysis.funding.payments import (
    accrual,
    annualised,
    carry,
    implied_oracle,
    oracle_check,
    sums,
)
from toolkit.public_path import set_public_path

__all__ = ["accrual", "annualised", "carry", "implied_oracle", "oracle_check", "sums"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
