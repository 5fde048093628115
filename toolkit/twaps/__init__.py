"""TWAP orders: execution quality, adherence to the schedule, and remaining volume."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
