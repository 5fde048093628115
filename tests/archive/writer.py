"""Refreshes an archive as one of two writers; run as a process of its own."""

import sys

import toolkit as tk
from tests.archive.kills import FILLS, USERS
from tests.archive.world import START, session_of
from toolkit import archive


def main(path: str) -> None:
    """Refresh everybody, and say how many rows were new."""
    session, kept = session_of(FILLS, users=USERS), archive.open(path)
    rows = 0
    for user in USERS:
        done = kept.refresh(
            tk.user_fills_by_time,
            user,
            START,
            page_size=100,
            rows_per_commit=100,
            session=session,
        )
        rows += done.rows
    print(rows)


if __name__ == "__main__":
    main(sys.argv[1])
