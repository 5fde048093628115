"""What was fetched, kept for good: Delta tables that a kill at any instant leaves whole."""

from toolkit.archive.archive import Archive, open
from toolkit.archive.refreshing import Refreshed
from toolkit.archive.serving import sources_of, world_of
from toolkit.archive.verifying import Finding

__all__ = ["Archive", "Finding", "Refreshed", "open", "sources_of", "world_of"]
