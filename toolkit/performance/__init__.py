"""Performance of accounts: returns, the figures of a performance sheet, and rankings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
