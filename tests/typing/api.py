"""The public interface as users type it. Nothing runs here: mypy checks it, strictly."""

import datetime as dt
import warnings
from typing import assert_type

import pandas as pd
import polars as pl

import toolkit as tk
from toolkit.fetch.accounts import AccountStates, BorrowLendState
from toolkit.fetch.market import DexLimits

USER = "0x" + "0" * 40


def sessions() -> None:
    session = tk.local(seed=7, size="tiny")
    assert_type(session, tk.Session)
    assert_type(tk.connect("https://example.org", "key"), tk.Session)


def examples(session: tk.Session) -> None:
    assert_type(tk.example.WHALE, str)
    tk.user_fills(tk.example.TWAP_USER)
    assert_type(tk.example.stories(), pd.DataFrame)
    assert_type(tk.example.stories(session), pd.DataFrame)
    tk.local(seed=7, size="tiny", clock="live")


def results(session: tk.Session, archive: tk.archive.Archive, frame: pd.DataFrame) -> None:
    # What a call returns has a public name, so that users can annotate it.
    assert_type(tk.plan(tk.user_fills, USER), tk.Plan)
    assert_type(tk.provenance(frame), tk.Provenance)
    assert_type(archive.ingest(frame), tk.archive.IngestResult)
    assert_type(archive.refresh(tk.user_fills_by_time, USER, start="7d"), tk.archive.RefreshResult)
    assert_type(tk.raw(tk.meta, dex="flx"), object)
    if session.world is not None:
        assert_type(session.world["users"], list[str])
    tk.plots.spreads(frame)  # type: ignore[arg-type]
    warnings.simplefilter("ignore", tk.errors.MissingFees)


def fetching(session: tk.Session) -> None:
    # Times, however written; every keyword by its name.
    fills = tk.user_fills_by_time(USER, "2025-09-01", "2025-09-08")
    assert_type(fills, pd.DataFrame)
    tk.user_fills_by_time(USER, 1_756_684_800_000, dt.datetime.now(dt.UTC))
    tk.user_fills_by_time(USER, dt.date(2025, 9, 1), pd.Timestamp("2025-09-08"))
    tk.user_fills_by_time(
        USER, "7d", builder=None, aggregate_by_time=True, dex="main_dex", venue="AB"
    )
    tk.user_fills_by_time(USER, cursor="1756684800000_3", page_size=500, max_rows=10_000)
    tk.user_fills_by_time(USER, "7d", on_incomplete="warn", numbers="exact", session=session)
    assert_type(tk.user_fills(USER, max_rows=100), pd.DataFrame)
    assert_type(tk.concat([fills, fills]), pd.DataFrame)
    assert_type(tk.concat(item for item in (fills,)), pd.DataFrame)
    assert_type(tk.builder_approved_fills_by_time(USER, "7d"), pd.DataFrame)
    assert_type(tk.builder_approved_funding_by_time(USER, "7d"), pd.DataFrame)
    assert_type(tk.builder_orders_by_time(USER, "7d", max_rows=10), pd.DataFrame)
    assert_type(tk.historical_orders(USER), pd.DataFrame)
    assert_type(tk.user_non_funding_ledger_updates(USER), pd.DataFrame)
    assert_type(tk.slippage_history("BTC", 10_000, "1d", page_size=2_000), pd.DataFrame)
    assert_type(tk.meta(dex="flx"), pd.DataFrame)
    assert_type(tk.meta_and_asset_ctxs(), pd.DataFrame)
    assert_type(tk.current_depth(dex="flx"), pd.DataFrame)
    assert_type(tk.spot_pair_deploy_auction_status(), pd.DataFrame)
    assert_type(tk.perp_deploy_auction_status(numbers="text"), pd.DataFrame)
    assert_type(tk.account_value_snapshot_timestamp(), pd.DataFrame)
    assert_type(tk.account_value_snapshots(["USDC", "flx:USDE"]), pd.DataFrame)
    assert_type(tk.perp_twap_snapshot_timestamp(), pd.DataFrame)
    assert_type(tk.perp_twap_snapshots(("ALL:ALL_DEXES",)), pd.DataFrame)
    assert_type(tk.delegations(USER), pd.DataFrame)
    assert_type(tk.validator_apr_history(USER, page_size=100), pd.DataFrame)


def several_frames() -> None:
    # An answer with several kinds of rows is a named tuple of frames.
    assert_type(tk.batch_clearinghouse_states([USER], dex="ALL_DEXES"), AccountStates)
    assert_type(tk.batch_clearinghouse_states([USER]).positions, pd.DataFrame)
    assert_type(tk.perp_dex_limits("flx"), DexLimits)
    assert_type(tk.borrow_lend_user_state(USER), BorrowLendState)
    accounts, positions, failed = tk.batch_clearinghouse_states([USER])
    for frame in (accounts, positions, failed):
        assert_type(frame, pd.DataFrame)


def refused() -> None:
    # What type checkers must refuse; an ignore that is not needed is an error.
    tk.user_fills()  # type: ignore[call-arg]
    tk.user_fills(USER, 100)  # type: ignore[call-arg, arg-type]
    tk.user_fills(USER, limit=100)  # type: ignore[call-arg]
    tk.user_fills(USER, numbers="decimal")  # type: ignore[arg-type]
    tk.user_fills_by_time(USER, "7d", on_incomplete="ignore")  # type: ignore[arg-type]
    tk.slippage_history("BTC", "10000", "1d")  # type: ignore[arg-type]
    tk.no_such_function(USER)  # type: ignore[attr-defined]
    tk.user_fills(tk.example.WHALES)  # type: ignore[attr-defined]
    tk.local(clock="stopped")  # type: ignore[arg-type]


def errors() -> None:
    try:
        tk.historical_orders(USER)
    except tk.RateLimited as limited:
        assert_type(limited.retry_after, float | None)
    except tk.ServiceError as failure:
        assert_type(failure.status, int | None)  # None: nothing was sent
    except tk.Incomplete as incomplete:
        assert_type(incomplete.cursor, str | None)


def trading(frame: pd.DataFrame) -> None:
    # Results are pandas frames or result objects.
    times = tk.orders.time_to_fill(frame, since="2025-09-01", horizons=(1, 60), level=0.9)
    assert_type(times, tk.orders.FillTimes)
    assert_type(times["filled within 60 s"], float)
    assert_type(times.curves, pd.DataFrame)
    tk.orders.mix(tk.orders.transitions(frame, by=["coin", "week"]), level=0.99)
    value = tk.builders.lifetime_value(frame, USER, weeks=8)
    assert_type(value, tk.builders.LifetimeValue)
    assert_type(tk.builders.attach_rate(frame, USER, by="user", weight="fills"), pd.DataFrame)
    assert_type(tk.staking.rank_stability(frame), tk.staking.RankStability)
    assert_type(tk.staking.apy(frame, now="2025-10-01"), pd.DataFrame)
    assert_type(tk.auctions.decay(frame, gas=100.0, at=1_756_684_800_000), pd.DataFrame)
    assert_type(tk.twaps.quality(frame, tape=frame, max_age_secs=60), pd.DataFrame)
    tk.orders.time_to_fill(frame, level="high")  # type: ignore[arg-type]


def engines(frame: pd.DataFrame, lazy: pl.LazyFrame) -> None:
    # Results are pandas frames, whatever library the frames are of; other types are refused.
    assert_type(tk.pnl.attribution(frame, frame, by="coin", start_time="7d"), pd.DataFrame)
    assert_type(tk.pnl.attribution(lazy, prices={"USDH": 0.998}), pd.DataFrame)
    assert_type(tk.pnl.compare_with_service(frame, None, frame, frame), pd.DataFrame)
    assert_type(tk.pnl.audit(frame, {"BTC": 5}), pd.DataFrame)
    assert_type(tk.pnl.positions(lazy, frame), pd.DataFrame)
    assert_type(tk.pnl.drawdown(tk.pnl.equity(frame, by="day")), pd.DataFrame)
    assert_type(tk.pnl.reconcile(None, (frame, frame), frame, None, None), pd.DataFrame)
    state = tk.batch_clearinghouse_states([USER])
    assert_type(tk.pnl.reconcile(state, state, frame, lazy, None), pd.DataFrame)
    assert_type(tk.pnl.unrealised(frame, {"BTC": 90.0}, {"BTC": 5}, at=0), pd.DataFrame)
    assert_type(tk.ledger.sums(lazy, by=None), pd.DataFrame)
    tk.pnl.attribution(USER)  # type: ignore[arg-type]
    tk.pnl.attribution(frame, start_time=5.5)  # type: ignore[arg-type]
    tk.user_fills_by_time(USER, 5.5)  # type: ignore[arg-type]
