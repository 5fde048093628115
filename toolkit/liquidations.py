"""Liquidations: price levels, margin buffers of accounts, cascades, and liquidation fills."""

from toolkit.analysis.accounts.buffers import buffers
from toolkit.analysis.accounts.cascade import Cascade, cascade
from toolkit.analysis.accounts.liquidations import fills, levels
from toolkit.public_path import set_public_path

__all__ = ["Cascade", "buffers", "cascade", "fills", "levels"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
