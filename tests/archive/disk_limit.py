"""Refreshes an archive with a limit on the size of files, in a process of its own."""

import resource
import sys

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.world import fill_session
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError


def main(path, longest):
    """Refresh until a file would exceed the limit, and print the error."""
    session = fill_session(FILLS, users=USERS)
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest, longest))
    archive, early = open_archive(path), FILLS[200].time
    refresh_all(archive, session, users=USERS[:1], end=early, from_start=True, rows_per_commit=10)
    try:
        refresh_all(archive, session)
    except ArchiveError as error:
        print(error)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
