"""Kills refreshes and compactions at random instants; run as a process of its own.

Delta's runtime does not survive a fork, so this process never starts it: each round forks a
worker, kills it, and forks another process to look at what it left.
"""

import os
import random
import resource
import select
import signal
import sys
from collections.abc import Callable
from functools import partial

import toolkit as tk
from tests.archive.world import START, fills_of, session_of
from toolkit import archive
from toolkit.client import Session
from toolkit.errors import ArchiveError

USERS = ["0x" + digit * 40 for digit in "abcd"]
FILLS = fills_of(1_500)
MIDDLE = FILLS[900].time


def refresh_all(kept: archive.Archive, session: Session, *, compact: bool = False) -> None:
    """Refresh everybody from the middle, then the beginnings; compact in between."""
    for start in (MIDDLE, START):
        for user in USERS:
            kept.refresh(
                tk.user_fills_by_time,
                user,
                start,
                page_size=100,
                rows_per_commit=100,
                session=session,
            )
            if compact:
                kept.compact()


def _work(kept: archive.Archive, session: Session, compact: bool) -> int:
    while True:
        refresh_all(kept, session, compact=compact)


def _look(kept: archive.Archive) -> int:
    errors = [one for one in kept.verify() if one.severity == "error"]
    print(*errors, sep="\n", end="", flush=True)
    return len(errors)


def _fill_disk(kept: archive.Archive, session: Session) -> int:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))
    try:
        refresh_all(kept, session)
    except ArchiveError as error:
        print(error)
        return 0
    return 1


def _forked(work: Callable[[], int]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return child


def main(path: str, rounds: int, seed: int) -> None:
    """Kill `rounds` workers; say how often the archive was found damaged."""
    draw = random.Random(seed)
    session = session_of(FILLS, users=USERS)
    killed = damaged = 0
    for number in range(rounds):
        compact = number % 2 == 1
        worker = _forked(partial(_work, archive.open(path), session, compact))
        select.select([], [], [], 0.02 + draw.random() * 0.3)
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        killed += os.WIFSIGNALED(status)
        looker = _forked(partial(_look, archive.open(path)))
        damaged += os.waitpid(looker, 0)[1] != 0
    looker = _forked(partial(_fill_disk, archive.open(path + "-full"), session))
    full = os.waitpid(looker, 0)[1]
    print(f"killed {killed} damaged {damaged} full {full}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
