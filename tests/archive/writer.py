"""Refreshes an archive as one of two writers; run as a process of its own."""

import sys

from tests.archive.kills import FILLS, USERS, refresh_all
from tests.archive.world import session_of
from toolkit import archive


def main(path: str, order: int) -> None:
    """Refresh everybody, and say how many rows there are; two orders meet in the middle."""
    kept, session = archive.open(path), session_of(FILLS, users=USERS)
    refresh_all(kept, session, users=USERS[::order], from_start=order < 0, rows_per_commit=500)
    print(kept.status()["rows"].sum())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
