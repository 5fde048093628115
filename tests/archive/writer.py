"""Refreshes an archive as one of two writers, in a process of its own."""

import sys

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.world import fill_session
from toolkit import archive


def main(path: str, order: int) -> None:
    """Refresh all users in one of two orders, and print the number of rows."""
    kept, session = archive.open(path), fill_session(FILLS, users=USERS)
    refresh_all(kept, session, users=USERS[::order], from_start=order < 0, rows_per_commit=500)
    print(kept.status()["rows"].sum())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
