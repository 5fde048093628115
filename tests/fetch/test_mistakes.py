"""Common mistakes of a call: the message says what is wrong, where, and what to do."""

from collections.abc import Callable

import numpy as np
import pytest

import toolkit as tk
from toolkit.times import DAY

USER = "0x" + "1" * 40

MISTAKES: dict[str, Callable[[], object]] = {
    r"start: 'by month' is not a time\. Use": lambda: tk.user_fills_by_time(USER, "by month"),
    r"start: 1757000000000000 looks like microseconds": lambda: tk.user_fills_by_time(
        USER, 1_757_000_000_000_000
    ),
    r"end: 1757000000 looks like seconds": lambda: tk.user_fills_by_time(
        USER, 0, np.int64(1_757_000_000)
    ),
    r"start: '99999999d' is outside the years": lambda: tk.user_fills_by_time(USER, "99999999d"),
    r"^1757000000000000 looks like microseconds": lambda: tk.many(
        tk.user_fills_by_time, [USER], 1_757_000_000_000_000
    ),
    r"9999999999999999 ms is after the year 9999": lambda: tk.user_fills_by_time(
        USER, cursor="9999999999999999_3"
    ),
    r"coin must be a string\. It is text, not 10000": lambda: tk.slippage_history(
        10000,
        "BTC",
        "1d",  # type: ignore[arg-type]
    ),
    r"session must be a result of tk\.connect or tk\.local, not 'tiny'": lambda: tk.user_fills(
        USER,
        session="tiny",  # type: ignore[arg-type]
    ),
    r"user_fills_by_time needs start\. Pass it after the subjects": lambda: tk.many(
        tk.user_fills_by_time, [USER]
    ),
    r"not a frame\. Pass one of its columns": lambda: tk.many(
        tk.user_fills_by_time,
        tk.frame("userFills", []),
        "7d",
    ),
    r"user_fills_by_time: got an unexpected keyword argument": lambda: tk.many(
        tk.user_fills_by_time, [USER], "7d", begin=0
    ),
    r"^attribution is not a fetch function": lambda: tk.plan(tk.pnl.attribution),
    r"^the parameter user of the notebook is a DataFrame\. Pass text": lambda: tk.reports.wallet(
        tk.frame("userFills", [])  # type: ignore[arg-type]
    ),
    r"is a folder\. Name the file": lambda: tk.reports.wallet(out="."),
    r"user_fills: missing a required argument: 'user'": lambda: tk.plan(tk.user_fills),
    r"rows are JSON objects as on the wire, not a DataFrame": lambda: tk.frame(
        "delegations", tk.frame("delegations", [])
    ),
    r"concat takes fetched pandas frames, but frames\[0\] is an int": lambda: tk.concat([5]),  # type: ignore[list-item]
    r"api_key must be text": lambda: tk.connect("https://x.test", 5),  # type: ignore[arg-type]
    r"not a str\. To join frames: tk\.concat": lambda: tk.pnl.attribution(USER),
    r"by must be a column, a list of columns or None, not 5": lambda: tk.pnl.attribution(
        tk.frame("userFills", []),
        by=5,  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistake_has_clear_message(message):
    tk.local(seed=7, size="tiny")
    with pytest.raises((tk.ToolkitError, TypeError, ValueError), match=message):
        MISTAKES[message]()


@pytest.mark.filterwarnings("ignore:.*precedes the first available day")
def test_age_of_2000_years_is_read():
    session = tk.local(seed=7, size="tiny", default=False)
    for rows in (
        tk.user_fills_by_time(USER, "735000d", session=session),
        tk.many(tk.user_fills_by_time, [USER], "735000d", session=session),
    ):
        start = session.now_ms() - 735_000 * DAY
        assert tk.provenance(rows)["parameters"]["start"] == start


def test_negative_start_warns():
    session = tk.local(seed=7, size="tiny", default=False)
    with pytest.warns(tk.HistoryWarning, match="1969-12-31"):
        tk.user_fills_by_time(session.world["users"][0], -1, max_rows=1, session=session)


def test_misspelt_name_has_suggestion():
    with pytest.raises(AttributeError, match=r"no 'user_fill'\. Did you mean user_fills"):
        tk.user_fill  # noqa: B018


def test_unknown_name_lists_related_functions():
    with pytest.raises(AttributeError, match="or builder_approved_funding_by_time"):
        tk.user_funding  # noqa: B018


def test_path_with_invalid_freeze_is_refused(tmp_path):
    session = tk.local(seed=7, size="tiny", default=False)
    tk.archive.open(tmp_path).refresh(tk.meta, session=session)
    with pytest.raises(tk.ArchiveError, match="'badid' is not the id of a freeze"):
        tk.archive.open(f"{tmp_path}@badid")
    with pytest.raises(TypeError, match="ingest takes a file, a folder or a fetched pandas frame"):
        tk.archive.open(tmp_path).ingest(None)  # type: ignore[arg-type]
