"""HTML of views: escaped text in accessible tables."""

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.plots import formats
from toolkit.plots.tables import Column
from toolkit.widgets import view_html

NASTY = '<img src=x onerror="alert(1)">&\'"'


def test_every_text_is_escaped():
    columns = [Column("coin", NASTY, meaning=NASTY, number=False)]
    frame = pd.DataFrame({"coin": [NASTY]})
    shown = [
        view_html.table(NASTY, frame, columns),
        view_html.table(NASTY, frame[:0], columns, empty=NASTY),
        view_html.note(NASTY),
        view_html.problem(NASTY),
        view_html.folded_code(NASTY),
    ]
    assert [html for html in shown if "<img" in html or 'onerror="' in html] == []


@given(st.text())
@settings(max_examples=20)
def test_cell_text_cannot_add_tags(words):
    frame = pd.DataFrame({"coin": [words]}, dtype=object)
    html = view_html.table("t", frame, [Column("coin", "coin", number=False)])
    plain = view_html.table("t", pd.DataFrame({"coin": ["x"]}), [Column("coin", "c", number=False)])
    assert html.count("<") == plain.count("<")


def test_missing_value_is_dash():
    frame = pd.DataFrame({"net": [0.0, None]})
    html = view_html.table("t", frame, [Column("net", "net", view_html.signed_usd)])
    assert ">0.00<" in html
    assert f">{formats.MISSING}<" in html


def test_table_is_accessible():
    frame = pd.DataFrame({"coin": ["BTC", "ETH"], "net": [1.0, 2.0]})
    columns = [
        Column("coin", "coin", number=False),
        Column("net", "net", view_html.signed_usd, "USD"),
    ]
    html = view_html.table("By coin", frame, columns, marked=[False, True])
    assert 'role="region" aria-label="By coin" tabindex="0"' in html
    assert '<th scope="row">ETH</th>' in html
    assert html.count("aria-current") == 1
    assert 'title="USD"' in html
