"""Ledger updates: deposits, withdrawals and transfers, in USD and in tokens."""

from toolkit.analysis.pnl.ledger import flows, sums, unknown
from toolkit.public_names import publish_names

__all__ = ["flows", "sums", "unknown"]

publish_names(__name__)
