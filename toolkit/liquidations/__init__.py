"""Liquidations: price levels, margin buffers of accounts, cascades, and liquidation fills."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
