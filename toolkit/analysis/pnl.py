"""Profit and loss of accounts: what it is made of, and whether the exchange's figures add up."""

from toolkit.analysis.attribution import attribution
from toolkit.analysis.audit import audit

__all__ = ["attribution", "audit"]
