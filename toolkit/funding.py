"""Funding payments and rates, and the basis. An amount is positive if the account received it."""

from toolkit.analysis.funding.basis import PerpBasis, basis
from toolkit.analysis.funding.carry import carry, hedged_carry
from toolkit.analysis.funding.oracle import implied_oracle, oracle_check
from toolkit.analysis.funding.payments import accrual, sums
from toolkit.analysis.funding.rates import annualised
from toolkit.public_names import publish_names

__all__ = [
    "PerpBasis",
    "accrual",
    "annualised",
    "basis",
    "carry",
    "hedged_carry",
    "implied_oracle",
    "oracle_check",
    "sums",
]

publish_names(__name__)
