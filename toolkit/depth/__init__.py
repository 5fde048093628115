"""Order book depth: profiles by distance, imbalance, and recovery after a drop."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
