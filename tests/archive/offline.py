"""An archive with two ranges and a gap between, and requests to a service on it."""

import pandas as pd

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.errors import ArchiveError
from toolkit.times import DAY

OTHER = "0x" + "b" * 40
FILLS = make_fills(300)
NOW = FILLS[-1].time + 1_000
A, B, C = START + 1_000, FILLS[100].time, FILLS[200].time
FAR = NOW + DAY


def offline_session(path, **options):
    return tk.local(archive=path, default=False, **options)


def archive_two_ranges(path):
    """Archive the range from A to B, and the range from C to the present."""
    archive, session = open_archive(path), fill_session(FILLS)
    archive.refresh(tk.user_fills_by_time, USER, C, session=session)
    archive.refresh(tk.user_fills_by_time, USER, A, B, session=session)
    return archive


def fetch_served(fetch, *arguments, **named):
    """Return whether an answer is complete, and its rows."""
    try:
        result = fetch(*arguments, **named)
        state = "yes"
    except tk.Incomplete as error:
        result, state = error.rows, "no"
    frames = result if isinstance(result, tuple) else (result,)
    stated = {tk.provenance(frame)["complete"] for frame in frames}
    assert stated <= ({"yes", "latest"} if state == "yes" else {"no"})
    return state, result


def archived_state(archive, fetch, *arguments, **named):
    try:
        return str(tk.provenance(archive.frame(fetch, *arguments, **named))["complete"])
    except ArchiveError:  # nothing is archived
        return "no"


def as_frames(result):
    return (result,) if isinstance(result, pd.DataFrame) else tuple(result)
