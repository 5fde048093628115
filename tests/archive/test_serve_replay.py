"""A service on a frozen archive returns the same frames as the exchange."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.archive import open as open_archive


def offline_session(path):
    return tk.local(archive=path, default=False)


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


def assert_equal_frames(first, second):
    for a, b in zip(_frames(first), _frames(second), strict=True):
        pd.testing.assert_frame_equal(a, b)


def _frames(result):
    return (result,) if isinstance(result, pd.DataFrame) else tuple(result)


@pytest.mark.parametrize("numbers", ["float", "exact"])
def test_served_freeze_matches_exchange(tmp_path, numbers):
    session = tk.local(seed=7, size="tiny", default=False)
    archive = open_archive(tmp_path)
    for fetch, arguments in notebook_calls(session.world):
        archive.refresh(fetch, *arguments, session=session)
    again = offline_session(f"{tmp_path}@{archive.freeze()}")
    assert again.now_ms() == session.now_ms()
    assert again.simulated
    for fetch, arguments in notebook_calls(session.world):
        here = fetch(*arguments, numbers=numbers, session=again)
        for frame in _frames(here):
            assert tk.provenance(frame)["complete"] in ("yes", "latest")
        assert_equal_frames(here, fetch(*arguments, numbers=numbers, session=session))


def test_empty_archive_is_incomplete(tmp_path):
    session = offline_session(str(tmp_path))
    with pytest.raises(tk.Incomplete, match="the archive has no rows of it") as caught:
        tk.user_fills_by_time("0x" + "a" * 40, 0, session=session)
    assert len(caught.value.rows) == 0
    with pytest.raises(tk.Incomplete, match=r"read it with Archive\.frame"):
        tk.account_value_snapshot_timestamp(session=session)


def test_serve_refuses_missing_archive(tmp_path):
    with pytest.raises(tk.ArchiveError, match=r"there is no archive in .*none"):
        offline_session(str(tmp_path / "none"))


def test_serve_refuses_two_sources(tmp_path):
    with pytest.raises(ValueError, match="two sources"):
        tk.local(archive=tmp_path, recordings=tmp_path, default=False)
