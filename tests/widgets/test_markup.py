"""What a server says is shown as text, in tables that screen readers can read."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from toolkit.widgets import markup
from toolkit.widgets.markup import Column

NASTY = '<img src=x onerror="alert(1)">&\'"'


def test_every_text_is_escaped():
    columns = [Column("coin", NASTY, meaning=NASTY, number=False)]
    frame = pd.DataFrame({"coin": [NASTY]})
    shown = [
        markup.table(NASTY, frame, columns),
        markup.table(NASTY, frame[:0], columns, empty=NASTY),
        markup.note(NASTY),
        markup.problem(NASTY),
        markup.code_of(NASTY),
    ]
    assert [html for html in shown if "<img" in html or 'onerror="' in html] == []


@given(st.text())
def test_a_cell_never_ends_its_tag(words: str):
    frame = pd.DataFrame({"coin": [words]}, dtype=object)
    html = markup.table("t", frame, [Column("coin", "coin", number=False)])
    plain = markup.table("t", pd.DataFrame({"coin": ["x"]}), [Column("coin", "c", number=False)])
    assert html.count("<") == plain.count("<")


def test_missing_is_a_dash_and_zero_is_zero():
    frame = pd.DataFrame({"net": [0.0, None]})
    html = markup.table("t", frame, [Column("net", "net", markup.usd)])
    assert ">0.00<" in html
    assert f">{markup.MISSING}<" in html


def test_a_table_says_what_it_is_and_can_be_reached_by_keyboard():
    frame = pd.DataFrame({"coin": ["BTC", "ETH"], "net": [1.0, 2.0]})
    columns = [Column("coin", "coin", number=False), Column("net", "net", markup.usd, "USD")]
    html = markup.table("By coin", frame, columns, marked=[False, True])
    assert 'tabindex="0" role="region" aria-label="By coin"' in html
    assert '<th scope="row">ETH</th>' in html
    assert html.count("aria-current") == 1
    assert 'title="USD"' in html
