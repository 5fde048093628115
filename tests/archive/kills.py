"""Kills refreshes and compactions at random times, in a process of its own.

Delta's runtime does not survive a fork, so this process never starts it. Each round forks a
worker, kills it, and forks another process that verifies the archive.
"""

import importlib
import mmap
import os
import random
import select
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import toolkit as tk
from tests.archive.world import START, fill_session, make_fills
from toolkit.archive import Archive
from toolkit.archive import open as open_archive
from toolkit.client import Session

USERS = ["0x" + digit * 40 for digit in "abcd"]
FILLS = make_fills(2_500)
MIDDLE = FILLS[1_500].time
REFRESHING, COMPACTING = b"r", b"c"


def refresh_all(
    archive,
    session,
    *,
    users=USERS,
    end=None,
    from_start=False,
    together=False,
    rows_per_commit=250,
):
    """Refresh all users from the middle on and then from the start, or from the start at once.

    They are refreshed one after the other, or in common commits.
    """
    for start in (START,) if from_start else (MIDDLE, START):
        options = {"end": end, "page_size": min(rows_per_commit, 100), "session": session}
        options["rows_per_commit"] = rows_per_commit
        if together:
            archive.refresh_many(tk.user_fills_by_time, users, start, **options)
            continue
        for user in users:
            archive.refresh(tk.user_fills_by_time, user, start, **options)


@dataclass(frozen=True)
class _Round:
    """The work of a process until it is killed."""

    archive: Archive
    session: Session
    users: Sequence[str]
    end: int
    compacts_first: bool
    together: bool
    doing: mmap.mmap
    begun: int

    def work(self):
        """Refresh up to the end of this round and compact, repeatedly."""
        self.archive.status()  # starts the runtime of deltalake
        self.doing[0:1] = COMPACTING if self.compacts_first else REFRESHING
        os.write(self.begun, b"begun")
        if self.compacts_first:
            self.archive.compact()
        while True:
            self.doing[0:1] = REFRESHING
            refresh_all(
                self.archive,
                self.session,
                users=self.users,
                end=self.end,
                together=self.together,
                rows_per_commit=20,
            )
            self.doing[0:1] = COMPACTING
            self.archive.compact()


def _count_errors(archive):
    errors = [finding for finding in archive.verify() if finding.severity == "error"]
    print(*errors, sep="\n", end="", flush=True)
    return len(errors)


def _fork_process(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def main(path, rounds, longest):
    """Kill `rounds` workers; print what they were doing, and how often damage was found."""
    # Otherwise a worker would spend its first moments on this import.
    importlib.import_module("deltalake")
    draw = random.Random(11)
    session, doing = fill_session(FILLS, users=USERS), mmap.mmap(-1, 1)
    killed_in: Counter[bytes] = Counter()
    damaged = 0
    reading, begun = os.pipe()
    for number in range(rounds):
        # The history grows each round, so that there is something to fetch.
        end = FILLS[len(FILLS) * (number + 1) // rounds - 1].time
        users, compacts = [*USERS[number % 4 :], *USERS[: number % 4]], number % 2 == 1
        together = number % 4 in (1, 2)
        round_ = _Round(open_archive(path), session, users, end, compacts, together, doing, begun)
        worker = _fork_process(round_.work)
        os.read(reading, 8)
        # A compaction takes less time than a refresh, and has to be killed as often.
        select.select([], [], [], draw.random() * longest / (4 if compacts else 1))
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        if os.WIFSIGNALED(status):
            killed_in[doing[0:1]] += 1
        verifier = _fork_process(partial(_count_errors, open_archive(path)))
        damaged += os.waitpid(verifier, 0)[1] != 0
    print(
        f"refreshing {killed_in[REFRESHING]} compacting {killed_in[COMPACTING]} damaged {damaged}"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
