"""Two refreshed ranges of an exchange with a gap between, and how complete a served answer is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import toolkit as tk
from tests.archive.world import START, USER, fills_of, session_of
from toolkit import archive
from toolkit.client import Session
from toolkit.errors import ArchiveError
from toolkit.times import DAY

OTHER = "0x" + "b" * 40
FILLS = fills_of(300)
NOW = FILLS[-1].time + 1_000
A, B, C = START + 1_000, FILLS[100].time, FILLS[200].time
FAR = NOW + DAY


def offline(path: Path | str, **options: Any) -> Session:
    return tk.local(archive=path, default=False, **options)


def two_ranges(path: Path) -> archive.Archive:
    """Archive A to B, and C to the present, with a gap between."""
    kept, session = archive.open(path), session_of(FILLS)
    kept.refresh(tk.user_fills_by_time, USER, C, session=session)
    kept.refresh(tk.user_fills_by_time, USER, A, B, session=session)
    return kept


def served(fetch: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, Any]:
    """Ask, and give how complete the answer is with what came."""
    try:
        made = fetch(*arguments, **named)
        state = "yes"
    except tk.Incomplete as error:
        made, state = error.rows, "no"
    frames = made if isinstance(made, tuple) else (made,)
    said = {tk.provenance(one)["complete"] for one in frames}
    assert said <= ({"yes", "latest"} if state == "yes" else {"no"})
    return state, made


def archived(kept: archive.Archive, fetch: Any, *arguments: Any, **named: Any) -> str:
    try:
        return str(tk.provenance(kept.frame(fetch, *arguments, **named))["complete"])
    except ArchiveError:  # nothing is archived of it
        return "no"


def frames_of(made: Any) -> tuple[pd.DataFrame, ...]:
    return (made,) if isinstance(made, pd.DataFrame) else tuple(made)
