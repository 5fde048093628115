"""The results of helpers on the tiny simulated exchange, for every plot; docs/ draws them, too."""

from typing import Any

import numpy as np
import pandas as pd

import toolkit as tk
from tests.analysis.interval_coverage import impact_tape, premium_contexts

SHOCKS = [step / 50 for step in (*range(-12, 0), *range(1, 13))]
SIZES = (1e3, 1e4, 1e5, 1e6)


def compute_results(session):
    """Return the result that each plot draws, by the name of the plot."""
    builder = second_builder(session)
    return {
        **compute_profit_results(session, fetch_example_fills(session)),
        **compute_account_results(session),
        **compute_market_results(fetch_market_frames(session)),
        **compute_trading_results(fetch_trading_frames(session, builder), builder),
    }


def without_rows(frames):
    return {name: _with_provenance(frame, frame.iloc[:0]) for name, frame in frames.items()}


def _with_provenance(frame, rows):
    """Return rows with the provenance of a frame."""
    rows.attrs = frame.attrs
    return rows


# Profit, funding, the cost of sizes.


def fetch_example_fills(session):
    user = tk.reports.example_account(session)
    return tk.user_fills_by_time(user, 0, session=session)


def compute_profit_results(session, fills):
    builder = session.world["builders"][0]
    payments = tk.builder_approved_funding_by_time(builder, 0, session=session)
    own = payments[payments["user"] == payments["user"].iloc[0]]
    samples = [tk.slippage_history("HPOS", usd, "1d", session=session) for usd in (1e3, 3e4, 1e6)]
    return {
        "waterfall": tk.pnl.attribution(fills, own),
        "cumulative_pnl": tk.pnl.attribution(fills, own, by="hour"),
        "funding_by_coin": tk.funding.sums(payments),
        "funding_over_time": tk.funding.sums(payments, by="day"),
        "slippage_curve": tk.slippage.curve(_with_provenance(samples[0], pd.concat(samples))),
    }


# Accounts.


def compute_account_results(session):
    users, dexes = session.world["users"], session.world["dexes"]
    fills = tk.user_fills_by_time(users[8], 0, session=session)
    meta = tk.many(tk.meta, dexes, session=session)
    contexts = tk.many(tk.meta_and_asset_ctxs, dexes, session=session)
    snapshot = tk.account_value_snapshots(["ALL"], session=session)
    states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=session)
    perps = _with_provenance(fills, fills[fills["coin"].isin(fills["coin"].unique()[:4])])
    ledger = tk.user_non_funding_ledger_updates(users[9], 0, session=session)
    own = tk.user_fills_by_time(users[9], 0, session=session)
    known = (states.accounts, states.positions)
    value = tk.pnl.value(own, None, ledger, accounts=known, account=users[9])
    daily = tk.performance.returns(value)
    of_users = pd.concat(
        [
            daily.assign(user=user, return_=daily["return_"] + 0.001 * place)
            for place, user in enumerate(users[:5])
        ]
    )
    sheets = tk.performance.sheet(_with_provenance(daily, of_users))
    by_hour = tk.performance.returns(value, "hour")
    hourly = pd.concat(
        [
            by_hour.assign(user=user, return_=by_hour["return_"] + 0.001 * place)
            for place, user in enumerate(users[:6])
        ]
    )
    levels = tk.liquidations.levels(states.positions, contexts, reach=0.9, width=0.05)
    every = tk.many(tk.user_fills_by_time, users, 0, session=session)
    return {
        "cascade": compute_cascade(states.positions),
        "equity_curve": tk.pnl.drawdown(tk.pnl.equity(fills), of="realised"),
        "growth_curve": daily,
        "leaderboard": tk.performance.leaderboard(sheets),
        "return_calendar": daily,
        "skill": tk.performance.skill(_with_provenance(daily, hourly)),
        "liquidation_history": tk.liquidations.history(every),
        "liquidation_map": _coin_with_most_levels(levels),
        "lorenz_curve": tk.accounts.lorenz(snapshot),
        "migration_map": tk.accounts.migration(snapshot, snapshot),
        "positioning": compute_positioning(states.positions),
        "positions_over_time": tk.pnl.positions(perps, meta),
        "trip_returns": tk.pnl.round_trips(fills),
    }


def compute_cascade(held):
    """Return a cascade among 300 artificial accounts with one position each and a thin book."""
    rng = np.random.default_rng(5)
    n = len(held) and 300
    value = 1e4 * rng.lognormal(1.0, 1.0, n)
    users = pd.array([f"0x{number:040x}" for number in range(n)], dtype="str")
    rows = pd.DataFrame(
        {"user": users, "coin": "HPOS", "szi": np.where(rng.random(n) < 0.7, value, -value),
         "position_value": value, "leverage_type": "cross", "margin_used": 0.0}
    ).astype({"coin": "str", "leverage_type": "str"})  # fmt: skip
    own = pd.DataFrame({"user": users, "cross_account_value": value / rng.uniform(1.5, 9.0, n)})
    day, band = np.divmod(np.arange(24), 4)
    bps = np.array([10, 50, 200, 500])[band]
    usd = 4e5 * (bps / 100) ** 1.5 * (1 + 0.3 * np.sin(7 * day))
    depth = pd.DataFrame(
        {"coin": "HPOS", "bps": bps, "bid_depth_usd": usd, "ask_depth_usd": 1.2 * usd,
         "timestamp_ms": pd.Timestamp("2025-09-01", tz="UTC") + pd.to_timedelta(day, unit="D")}
    )  # fmt: skip
    return tk.liquidations.cascade(
        _with_provenance(held, rows), own, depth, "HPOS", SHOCKS, max_leverage={"HPOS": 10}
    )


def compute_positioning(held):
    """Return the positioning of 150 artificial accounts, whose positions change over two days."""
    rng = np.random.default_rng(6)
    value = rng.lognormal(10.5, 1.6, 150)
    entry = 100 + rng.normal(0, 1, 150)
    parts = []
    for hour in range(48):
        tilt = np.sin(hour / 9) * np.where(value > 1e5, -0.8, 0.5)
        px = 100 * (1 + 0.03 * np.sin(hour / 7))
        szi = value / 100 * np.sign(tilt + np.sin(np.arange(150) * 2.4 + hour / 25))
        parts.append(
            pd.DataFrame(
                {"user": [f"0x{n:040x}" for n in range(150)], "coin": "HPOS", "szi": szi,
                 "position_value": np.abs(szi) * px, "entry_px": entry,
                 "time": pd.Timestamp("2025-09-01", tz="UTC") + pd.Timedelta(hours=hour)}
            )
        )  # fmt: skip
    return tk.accounts.positioning(_with_provenance(held, pd.concat(parts)), edges=[2e4, 2e5])


def _coin_with_most_levels(levels):
    placed = levels.dropna(subset="distance")
    return _with_provenance(levels, placed[placed["coin"] == placed["coin"].mode()[0]])


# Markets.


def fetch_market_frames(session):
    """Return frames of a market; its depth has an artificial shock every 200 seconds."""
    depth = tk.current_depth(session=session)
    samples = [tk.slippage_history("PURR", usd, 0, session=session) for usd in SIZES]
    fills = tk.many(tk.user_fills_by_time, session.world["users"][:12], 0, session=session)
    builder = session.world["builders"][0]
    return {
        "depth": _with_provenance(depth, _add_shocks(depth[depth["coin"] == "BTC"])),
        "samples": _with_provenance(samples[0], pd.concat(samples)),
        "fills": _with_provenance(fills, fills[~fills["coin"].str.contains("^@|/|#")]),
        "funding": tk.builder_approved_funding_by_time(builder, 0, session=session),
    }


def _add_shocks(market):
    batches = []
    for second in range(0, 800, 10):
        lost = 0.6 * 2.0 ** (-(second % 200) / 30) if second >= 200 else 0.0
        batch = market.copy()
        batch["timestamp_ms"] += pd.Timedelta(seconds=second)
        batch[["bid_depth_usd", "ask_depth_usd"]] *= (1 - lost) * (1 + 0.01 * np.sin(second))
        batches.append(batch)
    return pd.concat(batches)


def compute_market_results(frames):
    samples, fills = frames["samples"], frames["fills"]
    one_size = samples[samples["amount_usd"] == 1e4]
    spans: dict[str, Any] = {"max_age": "1h", "cluster": "user"}
    return {
        "carry": tk.funding.hedged_carry(
            frames["funding"][frames["funding"]["coin"] == "PURR"],
            samples,
            1e4,
            days=30,
            fee_bps=4.5,
            spot_bps=6.0,
            spot_fee_bps=7.0,
            draws=99,
        ),
        "depth_profile": tk.depth.profile(frames["depth"]),
        "funding_accrual": tk.funding.accrual(frames["funding"]),
        "markout": tk.execution.markout(fills, horizons=["10m", "1h"], **spans),
        "basis": compute_basis(fills),
        "impact": compute_impact(fills),
        "resilience": tk.depth.resilience(frames["depth"]),
        "counterparties": tk.execution.counterparties(fills, horizon="1h", **spans),
        "slippage_fit": tk.slippage.fit(samples),
        "slippage_heatmap": tk.slippage.heatmap(one_size),
        "spreads": tk.execution.spreads(fills, **spans),
        "toxicity": tk.execution.toxicity(fills, horizon="1h", max_age="1h"),
    }


def compute_basis(fills):
    """Return the basis of three weeks of simulated prices, and of TSLA on a second dex."""
    rows = premium_contexts(seed=3, hours=500 if len(fills) else 0)
    twin = rows[rows["name"] == "eqx:TSLA"].assign(name="pre:TSLA", open_interest=3e3)
    twin["funding"] *= 1.7
    return tk.funding.basis(_with_provenance(fills, pd.concat([rows, twin])))


def compute_impact(fills):
    """Return the impact of artificial orders: size to the power of 0.65, with noise of each day."""
    rows, mids = impact_tape(np.random.default_rng(2), 40 if len(fills) else 0, exponent=0.65)
    return tk.execution.impact(_with_provenance(fills, rows), mids)


# TWAPs, orders, builders, staking, auctions.


def second_builder(session):
    address: str = session.world["builders"][1]
    return address


def fetch_trading_frames(session, builder):
    world = session.world
    return {
        "twaps": tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session),
        "fills": tk.many(tk.user_fills_by_time, world["users"][:12], 0, session=session),
        "marks": tk.many(tk.meta_and_asset_ctxs, world["dexes"], session=session),
        "orders": tk.many(tk.historical_orders, world["users"], session=session),
        "builder": tk.builder_approved_fills_by_time(builder, 0, session=session),
        "history": tk.many(tk.validator_apr_history, world["validators"], session=session),
        "auction": tk.spot_pair_deploy_auction_status(session=session),
    }


def compute_trading_results(frames, builder):
    mine, fills = frames["builder"], frames["fills"]
    activity = tk.builders.activity(mine, "day")
    own = frames["orders"][frames["orders"]["user"].isin(fills["user"].unique())]
    filled = fills[fills["oid"].isin(own["oid"]) | fills["twap_id"].notna()]
    mids = fills[["coin", "time"]].assign(mid_px=1.001 * fills["px"])
    return {
        "builder_activity": activity[activity["builder"] == builder],
        "shortfall": tk.execution.shortfall(own, filled, mids, max_age="1h"),
        "auction_line": tk.auctions.decay(frames["auction"]),
        "builder_cohorts": tk.builders.cohorts(mine, builder),
        "builder_routing": tk.builders.routing(mine, builder, by="user"),
        "fill_probability": tk.orders.fill_probability(frames["orders"], mids, max_age="1h"),
        "maker_days": tk.execution.maker_days(fills, mids, max_age="1h"),
        "fill_times": tk.orders.time_to_fill(frames["orders"]),
        "lifetime_value": tk.builders.lifetime_value(mine, builder, until="2025-10-20"),
        "order_mix": tk.orders.mix(frames["orders"]),
        "order_transitions": tk.orders.transitions(frames["orders"]),
        "twap_adherence": tk.twaps.adherence(frames["twaps"]),
        "twap_pressure": tk.twaps.pressure(frames["twaps"], frames["marks"]),
        "twap_quality": tk.twaps.quality(frames["fills"], frames["fills"]),
        "validator_ranks": tk.staking.rank_stability(frames["history"]),
        "validator_yields": tk.staking.apy(frames["history"]),
    }
