"""Deploy auctions: how the price falls, and what the winner paid."""

from toolkit.analysis.auctions import decay
from toolkit.public_names import publish_names

__all__ = ["decay"]

publish_names(__name__)
