"""Every call on a served archive shows what is not proved complete."""

import pytest

import toolkit as tk
from tests.archive.offline import FILLS, OTHER, A, B, C, archive_two_ranges, offline_session
from tests.archive.world import START, USER, fill_session
from toolkit.archive import open as open_archive
from toolkit.errors import IncompleteWarning


def test_many_names_incomplete_subject(tmp_path):
    archive, live = open_archive(tmp_path), fill_session(FILLS, users=(USER, OTHER))
    archive.refresh(tk.user_fills_by_time, USER, START, session=live)
    archive.refresh(tk.user_fills_by_time, OTHER, START, B, session=live)
    session = offline_session(tmp_path)
    with pytest.raises(tk.Incomplete, match=OTHER) as caught:
        tk.many(tk.user_fills_by_time, [USER, OTHER], START, C, session=session)
    assert set(caught.value.rows["user"]) == {USER}
    assert "refresh the archive with this operation" in str(caught.value.failed[OTHER])
    both = tk.many(tk.user_fills_by_time, [USER, OTHER], START, session=session)
    covered = tk.provenance(archive.frame(tk.user_fills_by_time, OTHER))["covered"]
    assert tk.provenance(both)["complete"] == "yes"
    assert tk.provenance(both)["covered"][0] == covered[0]


def test_each_call_reports_incomplete_rows(tmp_path):
    archive_two_ranges(tmp_path)
    session, call = offline_session(tmp_path), (tk.user_fills_by_time, USER, A)
    with pytest.warns(IncompleteWarning, match="is not proved complete"):
        rows = tk.user_fills_by_time(USER, A, on_incomplete="warn", session=session)
    facts = tk.provenance(rows)
    assert facts["complete"] == "no"
    assert len(rows) == sum(A <= f.time <= B or f.time >= C for f in FILLS)
    assert facts["why"].startswith(f"userFillsByTime {USER} from")
    with pytest.raises(tk.Incomplete) as caught:
        next(tk.pages(*call, page_size=10, session=session))
    assert len(caught.value.rows) > 0
    with pytest.warns(IncompleteWarning) as warnings:
        pages = list(tk.pages(*call, page_size=50, on_incomplete="warn", session=session))
    assert len(warnings) == 1
    assert {tk.provenance(page)["complete"] for page in pages} == {"no"}
    with pytest.warns(IncompleteWarning):
        tk.raw(*call, session=session)
    with pytest.warns(IncompleteWarning):
        tk.info({"type": "userFillsByTime", "user": USER, "startTime": A}, session=session)
    plan = tk.plan(*call, probe=True, session=session)
    assert (plan.rows, plan.sure) == (None, "at least")
    assert "not proved complete" in plan.why
    with pytest.raises(tk.Incomplete):
        next(tk.poll(tk.perp_twap_snapshot_timestamp, tk.meta, session=session))
