"""Headers: what one side writes, the other side reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.completeness.headers import (
    Completeness,
    SourceStatement,
    read_completeness,
    read_source,
    write_completeness,
    write_source,
)
from toolkit.errors import Incomplete

TIMES = st.integers(0, 10**13 - 1)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=60)


@given(WORDS, st.none() | st.tuples(TIMES, TIMES))
def test_completeness_survives_headers(reason, covered):
    stated = Completeness(reason, covered)
    headers = write_completeness(stated)
    assert all(value.isascii() and value.isprintable() for value in headers.values())
    assert read_completeness(headers) == stated


@given(TIMES, st.booleans(), WORDS, st.booleans(), WORDS)
def test_source_survives_headers(now_ms, is_live, label, simulated, history):
    stated = SourceStatement(now_ms, is_live, label, simulated, history)
    headers = write_source(stated)
    assert all(value.isascii() and value.isprintable() for value in headers.values())
    assert read_source(headers) == stated


def test_headers_are_read_in_any_form():
    assert write_completeness(Completeness()) == {}
    assert read_completeness({}) == Completeness()
    for covered in ("", "1", "1,2,3", "a,b", "1,99999999999999", "\u0661,2"):
        assert read_completeness({"x-toolkit-covered": covered}).covered is None
    reason = read_completeness({"x-toolkit-incomplete": "a%0Ab" + "c" * 5_000}).missing_reason
    assert (reason[:3], len(reason)) == ("a b", 1_000)


def test_stated_gap_raises_incomplete():
    Completeness().check_complete()
    with pytest.raises(Incomplete, match="rows are missing"):
        Completeness("rows are missing").check_complete()
