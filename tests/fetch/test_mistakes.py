"""Common mistakes of a call: the message says what is wrong, where, and what to do."""

import re

import numpy as np
import pytest

import toolkit as tk
from toolkit.times import DAY

USER = "0x" + "1" * 40

FILLS, TIME = tk.user_fills_by_time, 1_757_000_000_000_000
MISTAKES = [
    # named value, call; most messages also say what to do
    ("'by month'", lambda: FILLS(USER, "by month")),
    (f"start: {TIME} .*microseconds", lambda: FILLS(USER, TIME)),
    ("end: 1757000000 .* seconds", lambda: FILLS(USER, 0, np.int64(1_757_000_000))),
    ("start: '99999999d'", lambda: FILLS(USER, "99999999d")),
    (f"^{TIME} .*microseconds", lambda: tk.many(FILLS, [USER], TIME)),
    ("9999999999999999", lambda: FILLS(USER, cursor="9999999999999999_3")),
    ("coin .* 10000", lambda: tk.slippage_history(10000, "BTC", "1d")),
    ("session .*'tiny'", lambda: tk.user_fills(USER, session="tiny")),
    ("needs start", lambda: tk.many(FILLS, [USER])),
    ("one of its columns", lambda: tk.many(FILLS, tk.frame("userFills", []), "7d")),
    ("user_fills_by_time: .*'begin'", lambda: tk.many(FILLS, [USER], "7d", begin=0)),
    ("^attribution ", lambda: tk.plan(tk.pnl.attribution)),
    ("user .* DataFrame", lambda: tk.reports.wallet(tk.frame("userFills", []))),
    ("Name the file", lambda: tk.reports.wallet(out=".")),
    ("user_fills: .*'user'", lambda: tk.plan(tk.user_fills)),
    ("DataFrame", lambda: tk.frame("delegations", tk.frame("delegations", []))),
    (r"frames\[0\] is an int", lambda: tk.concat([5])),
    ("api_key", lambda: tk.connect("https://x.test", 5)),
    ("tk.concat", lambda: tk.pnl.attribution(USER)),
    ("by .*not 5", lambda: tk.pnl.attribution(tk.frame("userFills", []), by=5)),
    ("Did you mean user_fills", lambda: tk.user_fill),
    ("user_funding", lambda: tk.user_fundings),
]


def test_mistakes_have_clear_messages(tmp_path):
    session = tk.local(seed=7, size="tiny")
    tk.archive.open(tmp_path).refresh(tk.meta, session=session)
    wrong = []
    for named, call in (
        *MISTAKES,
        ("'badid'", lambda: tk.archive.open(f"{tmp_path}@badid")),
        ("ingest .*frame", lambda: tk.archive.open(tmp_path).ingest(None)),
    ):
        try:
            wrong.append((named, call()))
        except (tk.ToolkitError, TypeError, ValueError, AttributeError) as error:
            if not re.search(named, str(error)):
                wrong.append((named, error))
    assert wrong == []


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
