"""Reads and writes an archive in a folder that is read-only, in a process of its own."""

import sys
from collections.abc import Callable
from pathlib import Path

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError

FILLS = make_fills(300)


def main(path):
    """Print what each call does: the number of rows, or the error."""
    try:
        Path(path, "file").touch()
    except OSError:
        pass
    else:
        print("permissions are not obeyed")
        return
    session, archive = fill_session(FILLS), open_archive(path)
    calls: dict[str, Callable[[], object]] = {
        "frame": lambda: len(archive.frame(tk.user_fills_by_time, USER)),
        "verify": archive.verify,
        "served": lambda: tk.local(archive=path, default=False).simulated,
        "refresh": lambda: archive.refresh(tk.user_fills_by_time, USER, START, session=session),
        "answer": lambda: archive.refresh(tk.meta, session=session),
        "freeze": archive.freeze,
        "compact": archive.compact,
    }
    for name, call in calls.items():
        try:
            print(f"{name}: {call()}")
        except ArchiveError as error:
            print(f"{name}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
