"""Pages of an answer as frames."""

import pandas as pd
import pytest

import toolkit as tk


def test_pages_have_every_row_once(session, users):
    whole = tk.user_fills_by_time(users[0], 0, session=session)
    parts = list(tk.pages(tk.user_fills_by_time, users[0], 0, page_size=300, session=session))
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_flags=False)
    assert all(tk.provenance(part)["simulated"] for part in parts)
    said = [tk.provenance(part)["complete"] for part in parts]
    assert said == ["one page"] * (len(parts) - 1) + ["one page, the last"]
    assert [tk.provenance(part)["pages"] for part in parts] == list(range(1, len(parts) + 1))
    assert tk.provenance(parts[-1])["ties"] == len(parts) - 1
    with pytest.raises(TypeError, match="returns several frames"):
        list(tk.pages(tk.batch_clearinghouse_states, users, session=session))
