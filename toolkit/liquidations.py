"""Liquidations: price levels, margin buffers of accounts, cascades, and liquidation fills."""

from toolkit.analysis.accounts.cascade import Cascade, cascade
from toolkit.analysis.accounts.liquidations import fills, history, levels
from toolkit.analysis.accounts.margin_buffers import buffers
from toolkit.public_names import publish_names

__all__ = ["Cascade", "buffers", "cascade", "fills", "history", "levels"]

publish_names(__name__)
