"""A service on a frozen archive returns the same frames as the exchange."""

import pandas as pd
import pytest

import toolkit as tk
from tests.archive.offline import as_frames, offline_session
from tests.archive.world import error_kinds
from toolkit.archive import open as open_archive


def notebook_calls(world):
    """Return calls of a notebook: histories with their start, then states."""
    users, builders = world["users"], world["builders"]
    return [
        *[(tk.user_fills_by_time, (user, 0)) for user in users[:8]],
        *[(tk.user_non_funding_ledger_updates, (user, 0)) for user in users[:4]],
        *[(tk.builder_approved_fills_by_time, (builder, 0)) for builder in builders[:3]],
        *[(tk.builder_approved_funding_by_time, (builder, 0)) for builder in builders[:3]],
        *[(tk.builder_orders_by_time, (builder, 0)) for builder in builders[:2]],
        (tk.slippage_history, ("BTC", 1_000, 0)),
        (tk.meta, ()),
        (tk.meta_and_asset_ctxs, ()),
        (tk.current_depth, ()),
        (tk.perp_dex_limits, (world["dexes"][-1],)),
        (tk.user_fills, (users[1],)),
        (tk.user_fills, (users[12],)),
        (tk.historical_orders, (users[0],)),
        (tk.batch_clearinghouse_states, (users[:20],)),
        (tk.borrow_lend_user_state, (users[0],)),
        (tk.delegations, (users[0],)),
    ]


def test_served_freeze_matches_exchange(tmp_path, tiny):
    archive = open_archive(tmp_path)
    for fetch, arguments in notebook_calls(tiny.world):
        archive.refresh(fetch, *arguments, session=tiny)
    assert error_kinds(archive) == set()
    assert archive.status()["gaps"].sum() == 0
    again = offline_session(f"{tmp_path}@{archive.freeze()}")
    assert again.now_ms() == tiny.now_ms()
    assert again.simulated
    for fetch, arguments in notebook_calls(tiny.world):
        here = as_frames(fetch(*arguments, numbers="exact", session=again))
        there = as_frames(fetch(*arguments, numbers="exact", session=tiny))
        for served, expected in zip(here, there, strict=True):
            assert tk.provenance(served)["complete"] in ("yes", "latest")
            pd.testing.assert_frame_equal(served, expected)


def test_empty_archive_is_incomplete(tmp_path):
    session = offline_session(tmp_path)
    with pytest.raises(tk.Incomplete, match="no rows") as caught:
        tk.user_fills_by_time("0x" + "a" * 40, 0, session=session)
    assert len(caught.value.rows) == 0
    with pytest.raises(tk.ArchiveError, match="none"):
        offline_session(tmp_path / "none")
    with pytest.raises(ValueError, match="two sources"):
        offline_session(tmp_path, recordings=tmp_path)
