"""What was fetched, kept for good: Delta tables that a kill at any instant leaves whole."""

from toolkit.archive.archive import Archive
from toolkit.archive.opening import open
from toolkit.archive.pulls import Refreshed
from toolkit.archive.serving import sources_of, world_of
from toolkit.archive.verifying import Finding

__all__ = ["Archive", "Finding", "Refreshed", "open", "sources_of", "world_of"]
