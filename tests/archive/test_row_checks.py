"""A refresh notices rows that contradict each other, before and after it archives them."""

import warnings

import pytest

import toolkit as tk
from tests.archive.world import START, USER, fill_session, make_fills
from toolkit.archive import open as open_archive
from toolkit.errors import IncompleteWarning

FILLS = make_fills(600)
HOLED = [*FILLS[:100], *FILLS[130:]]


def refresh(archive, session, **options):
    """Refresh the fills, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        archive.refresh(
            tk.user_fills_by_time, USER, START, page_size=31, session=session, **options
        )
    assert {warning.category for warning in caught} <= {IncompleteWarning}
    return [str(warning.message) for warning in caught]


def is_complete(archive, start, end=None):
    """Return what the frame of a range says."""
    return str(
        tk.provenance(archive.frame(tk.user_fills_by_time, USER, start=start, end=end))["complete"]
    )


@pytest.mark.parametrize("rows_per_commit", [50, 50_000])
def test_refresh_warns_of_missing_rows(tmp_path, rows_per_commit):
    archive = open_archive(tmp_path)
    (message,) = refresh(archive, fill_session(HOLED), rows_per_commit=rows_per_commit)
    assert "starts from 130, but the fill before it left 100" in message
    assert len(archive.frame(tk.user_fills_by_time, USER)) == len(HOLED)
    gap = FILLS[99].time, FILLS[130].time
    assert is_complete(archive, START) == "no"
    assert is_complete(archive, None, gap[0] - 1) == "yes"
    assert is_complete(archive, gap[1] + 1) == "yes"
    frame = archive.frame(tk.user_fills_by_time, USER, start=START)
    assert "starts from 130" in tk.provenance(frame)["why"]
    assert archive.status()["gaps"].tolist() == [1]


def test_fills_of_builder_are_checked_by_account(tmp_path, tiny):
    """Accounts have their own chains: the fills of another account in between are no gap."""
    archive, builder = open_archive(tmp_path), tiny.world["builders"][2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        archive.refresh(tk.builder_approved_fills_by_time, builder, 0, session=tiny)
    assert archive.frame(tk.builder_approved_fills_by_time, builder)["user"].nunique() > 1


def test_refresh_keeps_proved_range(tmp_path):
    archive = open_archive(tmp_path)
    assert refresh(archive, fill_session(FILLS[:100])) == []
    assert is_complete(archive, START, FILLS[80].time) == "yes"
    assert len(refresh(archive, fill_session(HOLED[:300]))) == 1
    assert is_complete(archive, START, FILLS[80].time) == "yes"
    # The gap is noted once, and stays noted.
    assert refresh(archive, fill_session(HOLED)) == []
    assert is_complete(archive, START) == "no"
    assert is_complete(archive, FILLS[131].time + 1) == "yes"


def test_dropped_row_is_requested_again(tmp_path):
    """A row that is dropped once comes with the second request; nothing is missing."""
    archive = open_archive(tmp_path)
    transports = []

    def drop_row(inner):
        transports.append(tk.testing.faulty(inner, {3: "row dropped"}))
        return transports[-1]

    assert refresh(archive, fill_session(FILLS, through=drop_row)) == []
    assert [fault.name for fault in transports[0].injected] == ["row dropped"]
    assert len(archive.frame(tk.user_fills_by_time, USER)) == len(FILLS)
    assert is_complete(archive, START) == "yes"
    assert archive.verify() == []


def test_killed_refresh_is_checked_later(tmp_path):
    """Rows that were archived, but not logged, are checked by the next refresh."""
    archive = open_archive(tmp_path)

    def fail_late(inner):
        return tk.testing.faulty(inner, dict.fromkeys(range(12, 40), "refused"))

    session = fill_session(HOLED, through=fail_late)
    with pytest.raises(tk.Unreachable):
        refresh(archive, session, rows_per_commit=10)
    assert len(refresh(archive, fill_session(HOLED))) == 1
    assert is_complete(archive, START) == "no"
