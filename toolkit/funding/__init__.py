"""Funding payments and rates, and the basis. An amount is positive if the account received it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
