"""The archive: fetched rows in Delta tables, which stay intact if a process is killed.

The layers, from the top:

- ``archive``: the class `Archive` and `open`; ``serve``: an archive as the sources of a service;
- ``refresh``, ``ingest``: append rows; ``verify``: find faults; ``read``: frames and scans;
- ``coverage``: what was pulled, according to the refresh log, and the commits of histories;
  ``refresh_plan``: which accounts need a refresh;
- ``storage``: the Delta tables, their freezes and compaction; ``schemas``: series of rows, and
  the columns of each table; ``errors``.
"""

from toolkit.archive.archive import Archive, open
from toolkit.archive.coverage import RefreshResult
from toolkit.archive.ingest import IngestResult
from toolkit.archive.refresh_plan import RefreshPlan
from toolkit.archive.verify import Finding
from toolkit.public_names import publish_names

__all__ = ["Archive", "Finding", "IngestResult", "RefreshPlan", "RefreshResult", "open"]

publish_names(__name__)
