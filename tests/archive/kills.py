"""Kills refreshes and compactions at random instants; run as a process of its own.

Delta's runtime does not survive a fork, so this process never starts it: each round forks a
worker, kills it, and forks another process to look at what it left.
"""

import importlib
import mmap
import os
import random
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import toolkit as tk
from tests.archive.world import START, fills_of, session_of
from toolkit import archive
from toolkit.client import Session

USERS = ["0x" + digit * 40 for digit in "abcd"]
FILLS = fills_of(2_500)
MIDDLE = FILLS[1_500].time
REFRESHING, COMPACTING = b"r", b"c"


def refresh_all(
    kept: archive.Archive,
    session: Session,
    *,
    users: Sequence[str] = USERS,
    end: int | None = None,
    from_start: bool = False,
    rows_per_commit: int = 250,
) -> None:
    """Refresh everybody from the middle, then the beginnings; or from the start at once."""
    for start in (START,) if from_start else (MIDDLE, START):
        for user in users:
            kept.refresh(
                tk.user_fills_by_time,
                user,
                start,
                end=end,
                page_size=min(rows_per_commit, 100),
                rows_per_commit=rows_per_commit,
                session=session,
            )


@dataclass(frozen=True)
class _Round:
    """What a worker does until it is killed."""

    kept: archive.Archive
    session: Session
    users: Sequence[str]
    end: int
    compacts_first: bool
    doing: mmap.mmap
    begun: int

    def work(self) -> int:
        """Refresh as far as the history goes by now, and join files, again and again."""
        self.kept.status()  # starts what has to be started
        self.doing[0:1] = COMPACTING if self.compacts_first else REFRESHING
        os.write(self.begun, b"begun")
        if self.compacts_first:
            self.kept.compact()
        while True:
            self.doing[0:1] = REFRESHING
            refresh_all(self.kept, self.session, users=self.users, end=self.end, rows_per_commit=20)
            self.doing[0:1] = COMPACTING
            self.kept.compact()


def _look(kept: archive.Archive) -> int:
    errors = [one for one in kept.verify() if one.severity == "error"]
    print(*errors, sep="\n", end="", flush=True)
    return len(errors)


def _forked(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def main(path: str, rounds: int, longest: float) -> None:
    """Kill `rounds` workers; say what they were doing, and how often damage was found."""
    importlib.import_module("deltalake")  # or a worker's first moments would go into importing it
    draw = random.Random(11)
    session, doing = session_of(FILLS, users=USERS), mmap.mmap(-1, 1)
    struck: Counter[bytes] = Counter()
    damaged = 0
    reading, begun = os.pipe()
    for number in range(rounds):
        # The history has grown since the last round, so that there is something to fetch.
        end = FILLS[len(FILLS) * (number + 1) // rounds - 1].time
        users, compacts = [*USERS[number % 4 :], *USERS[: number % 4]], number % 2 == 1
        one = _Round(archive.open(path), session, users, end, compacts, doing, begun)
        worker = _forked(one.work)
        os.read(reading, 8)
        # Joining files takes less time than a refresh, and is to be struck as often.
        select.select([], [], [], draw.random() * longest / (4 if compacts else 1))
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        if os.WIFSIGNALED(status):
            struck[doing[0:1]] += 1
        looker = _forked(partial(_look, archive.open(path)))
        damaged += os.waitpid(looker, 0)[1] != 0
    print(f"refreshing {struck[REFRESHING]} compacting {struck[COMPACTING]} damaged {damaged}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
