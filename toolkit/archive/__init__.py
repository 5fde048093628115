"""The archive: fetched rows in Delta tables, which stay intact if a process is killed.

The layers, from the top:

- ``archive``: the class `Archive` and `open`; ``serve``: an archive as the sources of a service;
- ``refresh``, ``ingest``: append rows; ``read``: frames and scans; ``verify``, ``checks``: find
  faults; ``freezes``: freezes and compaction; ``content``: rows as records for a service;
- ``runs``: the pieces in which a history was pulled; ``coverage``: which ranges are complete;
- ``storage``: the Delta tables; ``schemas``: their columns; ``series``: one operation and subject;
  ``errors``.
"""

from toolkit.archive.archive import Archive, open
from toolkit.archive.checks import Finding
from toolkit.archive.coverage import Refreshed
from toolkit.archive.serve import sources_of, world_of

__all__ = ["Archive", "Finding", "Refreshed", "open", "sources_of", "world_of"]
