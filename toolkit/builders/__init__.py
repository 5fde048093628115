"""Builders: their revenue, their users, and the share of trading routed through them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
