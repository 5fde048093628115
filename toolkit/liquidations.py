"""Liquidations: price levels, margin buffers of accounts, cascades, and liquidation fills."""

from toolkit.analysis.accounts.buffers import buffers
from toolkit.analysis.accounts.cascade import Cascade, cascade
from toolkit.analysis.accounts.liquidations import fills, levels
from toolkit.public_path import publish_names

__all__ = ["Cascade", "buffers", "cascade", "fills", "levels"]

publish_names(__name__)
