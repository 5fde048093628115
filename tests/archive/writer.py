"""Refreshes an archive as one of two writers, in a process of its own."""

import os
import sys

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.world import fill_session
from toolkit.archive import open as open_archive


def main(path, order):
    """Refresh all users in one of two orders, and print the number of rows."""
    archive, session = open_archive(path), fill_session(FILLS, users=USERS)
    is_second = order < 0
    refresh_all(
        archive,
        session,
        users=USERS[::order],
        from_start=is_second,
        together=is_second,
        rows_per_commit=500,
    )
    print(archive.status()["rows"].sum(), flush=True)
    os._exit(0)  # threads of the object store's library may abort the end of the interpreter


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
