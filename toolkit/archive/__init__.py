"""The archive: fetched rows in Delta tables, which stay intact if a process is killed.

The layers, from the top:

- ``archive``: the class `Archive` and `open`; ``serve``: an archive as the sources of a service,
  with its rows as records from ``content``;
- ``refresh`` with ``history_pull``, ``ingest`` and ``bulk`` with ``table_rows``: append rows;
  ``read``: frames and scans; ``verify``, ``checks``: find faults; ``compaction``;
- ``pulls``: what was pulled of each series: its runs, and the log of refreshes;
- ``freezes``: named versions; ``storage``: the Delta tables; ``schemas``: series of rows, and the
  columns of each table; ``errors``.
"""

from toolkit.archive.archive import Archive, open
from toolkit.archive.pulls import Refreshed
from toolkit.archive.serve import world_of
from toolkit.archive.verify import Finding

__all__ = ["Archive", "Finding", "Refreshed", "open", "world_of"]
