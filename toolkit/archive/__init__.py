"""What was fetched, kept for good: Delta tables that a kill at any instant leaves whole."""

from toolkit.archive.archive import Archive, open
from toolkit.archive.checks import Finding
from toolkit.archive.coverage import Refreshed
from toolkit.archive.serve import sources_of, world_of

__all__ = ["Archive", "Finding", "Refreshed", "open", "sources_of", "world_of"]
