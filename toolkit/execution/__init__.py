"""Execution quality: fills against prices, spreads, quotes, impact, and both sides of trades."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
