"""Ledger updates: deposits, withdrawals and transfers, in USD and in tokens."""

from toolkit.analysis.pnl.ledger import flows, sums, unknown
from toolkit.public_path import set_public_path

__all__ = ["flows", "sums", "unknown"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
