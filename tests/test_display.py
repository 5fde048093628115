"""The display in notebooks: complete, escaped, and without the key."""

import json
import pickle

import pandas as pd
import pytest
from IPython.core.formatters import HTMLFormatter

import toolkit as tk
from toolkit.display import facts_table
from toolkit.frames.notebook_view import register_view

NASTY = "<script>alert(1)</script>"
SECRET = "a-secret-that-nobody-may-see"


def test_texts_are_escaped():
    shown = facts_table(NASTY, {NASTY: NASTY, "nested": {NASTY: NASTY}})
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 5


def test_facts_are_readable():
    values = facts_table("t", {"rows": 12345, "sure": True, "end": None, "retries": {}})
    for words in ("12,345", "yes", "unknown", "none"):
        assert f">{words}</td>" in values
    facts = {"start": 1756684800000, "first": "1756684800250_11", "pages": 1756684800000}
    times = facts_table("t", {"asked_at": "2025-10-01T00:00:00.000Z", "parameters": facts})
    assert ">2025-10-01 00:00:00 UTC<" in times
    assert "start = 2025-09-01 00:00:00 UTC," in times
    assert "first = 2025-09-01 00:00:00.250 UTC (1756684800250_11)" in times
    assert "1,756,684,800,000" in times


def test_notebook_shows_short_frames(fills):
    formatter = HTMLFormatter()
    register_view(formatter)
    shown = formatter(fills.assign(mine=NASTY))
    row = fills.iloc[0]
    assert f"<td>{row['hash'][:8]}\N{HORIZONTAL ELLIPSIS}{row['hash'][-4:]}</td>" in shown
    assert f"<td>{row['time']:%Y-%m-%d %H:%M:%S}" in shown
    assert "<script>" not in shown
    assert f"{len(fills)} rows" in shown
    assert shown.count("<tr") < 20  # only the first and the last rows
    plain = pd.DataFrame(fills)
    plain.attrs = {}
    assert formatter(plain) == plain._repr_html_()


def test_own_formatter_of_frames_is_kept():
    formatter = HTMLFormatter()
    formatter.for_type(pd.DataFrame, lambda frame: "mine")
    register_view(formatter)
    assert formatter(pd.DataFrame()) == "mine"


def test_session_table_hides_key():
    with tk.connect("http://127.0.0.1:9", SECRET, default=False) as session:
        shown = session._repr_html_()
    assert "http://127.0.0.1:9" in shown
    assert "given, never shown" in shown
    assert SECRET not in shown


def test_provenance_is_dict_and_table():
    facts = tk.provenance(tk.frame("delegations", []))
    assert facts == {
        "operation": "delegations",
        "source": "rows",
        "numbers": "float",
        "rows": 0,
        "toolkit_version": tk.__version__,
    }
    assert json.loads(json.dumps(facts)) == facts
    assert pickle.loads(pickle.dumps(facts)) == facts
    assert ">delegations</td>" in facts._repr_html_()


def test_named_frames_show_each_table():
    with tk.local(seed=7, size="tiny", default=False) as session:
        states = tk.batch_clearinghouse_states(session.world["users"][:2], session=session)
    shown = states._repr_html_()
    assert [f"<b>{name}</b>" in shown for name in states._fields] == [True, True, True]
    assert shown.count("<table") == 3


@pytest.fixture(scope="module")
def fills():
    with tk.local(seed=7, size="tiny", default=False) as session:
        user = session.world["users"][0]
        return tk.user_fills_by_time(user, 0, numbers="exact", session=session)


def test_describe_explains_frame_columns(fills):
    described = tk.describe(fills.assign(mine=1))
    assert list(described) == ["column", "dtype", "unit", "meaning"]
    assert described["column"].tolist() == [*fills.columns, "mine"]
    row = described.set_index("column").loc["px"]
    assert (row["unit"], row["meaning"]) == ("USD per unit", "fill price")
    assert row["dtype"] == str(fills["px"].dtype)
    assert (described["meaning"] != "").sum() == len(fills.columns)


def test_describe_explains_result_columns(fills):
    rows = fills.assign(usdc=fills["fee"]).drop_duplicates(["coin", "time", "usdc"])
    for result in (
        tk.pnl.attribution(rows, by=["coin", "day"]),
        tk.funding.sums(rows, by=["coin"]),
    ):
        described = tk.describe(result).set_index("column")["meaning"]
        assert described.index.tolist() == list(result.columns)
        assert described.ne("").all()
        assert described["coin"] == "coin of the group"


def test_meanings_are_not_cut(fills):
    described = tk.describe(fills)
    longest = max(described["meaning"], key=len)
    assert len(longest) > 50
    assert longest in described._repr_html_().replace("&lt;", "<").replace("&gt;", ">")
