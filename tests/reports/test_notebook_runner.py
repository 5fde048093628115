"""The provenance and the errors of a notebook that a report runs."""

from types import SimpleNamespace

import pytest

import toolkit as tk
from toolkit.reports.notebook_runner import _error_text, report_provenance


def test_provenance_lists_fetched_frames(session, user):
    fills = tk.user_fills(user, session=session)
    names = {
        "session": session,
        "fills": fills,
        "_hidden": fills,
        "attribution": tk.pnl.attribution(fills),
        "user": user,
    }
    made = report_provenance(names, ["user"])
    assert [source.name for source in made.sources] == ["fills"]
    assert made.parameters == {"user": user}
    assert (made.source, made.simulated) == (session.label, True)


def test_provenance_prefers_named_sources(session, user):
    fills = tk.user_fills(user, session=session)
    made = report_provenance({"session": session, "other": fills, "sources": {"mine": fills}}, [])
    assert [source.name for source in made.sources] == ["mine"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ReportFailed", "no data"),
        ("KeyError", "KeyError: no data"),
    ],
)
def test_error_text_has_no_colours(name, text):
    error = SimpleNamespace(ename=name, evalue="\x1b[31mno data\x1b[0m")
    assert _error_text(error) == text
