"""What was fetched, kept for good: Delta tables that a kill at any instant leaves whole."""

from toolkit.archive.archive import Archive, open
from toolkit.archive.refreshing import Refreshed

__all__ = ["Archive", "Refreshed", "open"]
