"""Answers with missing, unreadable and unknown fields: no row is lost."""

import json

import httpx
import pytest

import toolkit as tk
from tests.fetch.wire import fill, rows_of_request, session_over
from toolkit.contract.field_deviations import forget_deviations
from toolkit.errors import MissingField, UnknownField

NOW = 1_757_000_000_000


def connect_to(rows):
    """Return a session whose service has these fills."""

    def respond(request):
        asked = json.loads(request.content)
        return httpx.Response(200, json=rows_of_request(rows, asked)[: asked.get("limit", 2_000)])

    return session_over(respond)


def test_every_frame_names_missing_fields():
    """The warning comes once; the provenance of each frame has the columns."""
    rows = [fill(NOW + n, 0, n) for n in range(5)]
    for row in rows:
        row["closedPnl"] = None
    del rows[0]["fee"]
    session, user = connect_to(rows), "0x" + "a" * 40
    forget_deviations()
    with pytest.warns(MissingField) as warned:
        tk.user_fills_by_time(user, 0, session=session)
    assert len(warned) == 2
    frame = tk.user_fills_by_time(user, 0, session=session)
    assert tk.provenance(frame)["missing_fields"] == {"closed_pnl": 5, "fee": 1}
    assert "'missing_fields': {'closed_pnl': 5, 'fee': 1}" in repr(tk.provenance(frame))
    users = [user, "0x" + "b" * 40]
    both = tk.many(tk.user_fills_by_time, users, 0, session=session)
    assert tk.provenance(both)["missing_fields"] == {"closed_pnl": 10, "fee": 2}
    parts = [
        tk.user_fills_by_time(user, *times, session=session)
        for times in ((NOW, NOW + 2), (NOW + 3,))
    ]
    assert "missing_fields" in tk.provenance(tk.concat(parts))
    whole = [fill(NOW + n, 0, n) for n in range(5)]
    frame = tk.user_fills_by_time(user, 0, session=connect_to(whole))
    assert "missing_fields" not in tk.provenance(frame)


def test_unreadable_number_as_text_loses_no_row():
    """With numbers='text' the frame has the text as it came."""
    rows = [fill(NOW + n, 0, n) | {"coin": "@1"} for n in range(60)]
    rows[50]["fee"] = ""
    session, user = connect_to(rows), "0x" + "a" * 40
    frame = tk.user_fills_by_time(user, 0, page_size=20, numbers="text", session=session)
    assert len(frame) == 60
    assert frame["fee"].tolist()[49:52] == ["0.0", "", "0.0"]


def test_unexpected_error_has_rows():
    """A warning that a filter turns into an error, for example."""
    rows = [fill(NOW + n, 0, n) for n in range(60)]
    rows[50]["new"] = 1
    session, user = connect_to(rows), "0x" + "a" * 40
    forget_deviations()
    with pytest.raises(UnknownField) as caught:
        tk.user_fills_by_time(user, 0, page_size=20, session=session)
    so_far = caught.value.rows
    assert so_far["tid"].tolist() == list(range(37))
    assert tk.provenance(so_far)["why"].startswith("UnknownField: ")
    assert "error.rows has the 37 rows" in caught.value.__notes__[0]
