"""The fetch functions return what the simulated exchange has, to the last digit.

The expectations are taken from the simulation's own tables, past the service and its store.
"""

from collections import defaultdict
from decimal import Decimal

import msgspec
import pytest
from pandas.testing import assert_frame_equal

import toolkit as tk
from tests.worlds import world_of
from toolkit.times import DAY


@pytest.fixture(scope="module")
def sources():
    return world_of("tiny").sources


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def users(session):
    return list(session.world["users"])


def expected(type, records, *omits, **extra):
    rows = []
    for record in records:
        row = msgspec.to_builtins(record) | extra
        rows.append({name: value for name, value in row.items() if name not in omits})
    return tk.frame(type, rows, numbers="exact")


def by_user(pairs):
    grouped = defaultdict(list)
    for user, record in pairs:
        grouped[user].append(record)
    return grouped


def test_account_fills_equal_simulation(sources, session, users):
    fills = by_user(sources.fills)
    assert sum(map(len, fills.values())) > 10_000
    for user in users:
        got = tk.user_fills_by_time(user, 0, numbers="exact", session=session)
        assert_frame_equal(got, expected("userFillsByTime", fills[user], "builder"))
        latest = tk.user_fills(user, numbers="exact", session=session)
        # Newest first, and the rows of one transaction in the order of execution.
        newest = sorted(fills[user], key=_fill_key, reverse=True)[:2000]
        assert_frame_equal(latest, expected("userFills", newest, "venue"))


def test_orders_equal_simulation(sources, session, users):
    orders = by_user(sources.orders)
    for user in users:
        got = tk.historical_orders(user, numbers="exact", session=session)
        newest = sorted(orders[user], key=_status_key, reverse=True)[:2000]
        assert_frame_equal(got, expected("historicalOrders", newest))
    for builder in session.world["builders"]:
        routed = [(u, order) for u, order in sources.orders if order.builder == builder]
        rows = [msgspec.structs.replace(item, user=user) for user, item in routed]
        rows.sort(key=_status_key)
        got = tk.builder_orders_by_time(builder, 0, numbers="exact", session=session)
        assert_frame_equal(got, expected("builderOrdersByTime", rows, "builder"))


def test_ledgers_equal_simulation(sources, session, users):
    ledger = by_user(sources.ledger)
    for user in users:
        got = tk.user_non_funding_ledger_updates(user, numbers="exact", session=session)
        assert_frame_equal(got, expected("userNonFundingLedgerUpdates", ledger[user]))


def test_builder_fills_and_funding_equal_simulation(sources, session):
    for builder in session.world["builders"]:
        approved = spans(sources.approvals, builder)
        fills = [
            msgspec.structs.replace(fill, user=user)
            for user, fill in sources.fills
            if active(approved, user, fill.time)
        ]
        fills.sort(key=_fill_key)
        got = tk.builder_approved_fills_by_time(builder, 0, numbers="exact", session=session)
        want = expected("builderApprovedFillsByTime", fills, "venue")
        assert_frame_equal(got, want)
        funding = [item for item in sources.funding if active(approved, item.user, item.time)]
        got = tk.builder_approved_funding_by_time(builder, 0, numbers="exact", session=session)
        assert_frame_equal(got, expected("builderApprovedFundingByTime", funding))
        assert len(got) > 0


def test_states_of_every_dex_equal_simulation(sources, session, users):
    for dex, states in sources.states.items():
        got = tk.batch_clearinghouse_states(users, dex=dex, numbers="exact", session=session)
        served = [user for user in users if user not in sources.unavailable]
        assert got.failed["user"].tolist() == [u for u in users if u in sources.unavailable]
        assert got.accounts["user"].tolist() == served
        held = {user: state for user, state in states.items() if user in served}
        answer = {
            "successful_states": [[u, msgspec.to_builtins(held[u])] for u in served if u in held],
            "failed_wallets": [],
        }
        want = tk.frame("batchClearinghouseStates", answer, numbers="exact")
        for table, wanted in zip((got.accounts, got.positions), want, strict=False):
            mine = table[table["user"].isin(held.keys())].reset_index(drop=True)
            assert set(mine["dex"]) <= {dex or "native"}
            assert_frame_equal(
                mine.drop(columns="dex"), wanted.drop(columns="dex"), check_flags=False
            )
        assert set(got.positions["user"]) <= held.keys()


def test_stakes_and_loans_equal_simulation(sources, session, users):
    for user in users:
        got = tk.delegations(user, numbers="exact", session=session)
        assert_frame_equal(got, expected("delegations", sources.delegations.get(user, ())))
        lent = tk.borrow_lend_user_state(user, numbers="exact", session=session)
        want = sources.borrow_lend.get(user)
        assert lent.account["health"].tolist() == [want.health if want else "healthy"]
        assert len(lent.tokens) == (len(want.token_to_state) if want else 0)


def test_market_tables_equal_simulation(sources, session):
    for dex, meta in sources.metas.items():
        got = tk.meta(dex=dex, numbers="exact", session=session)
        # Values of the whole dex are on each row, so the complete answer is compared.
        whole = msgspec.json.decode(msgspec.json.encode(meta))
        assert_frame_equal(got, tk.frame("meta", whole, numbers="exact"))
        contexts = tk.meta_and_asset_ctxs(dex=dex, numbers="exact", session=session)
        assert contexts["name"].tolist() == got["name"].tolist()
        assert contexts["mark_px"].tolist() == [
            Decimal(context.mark_px) for context in sources.contexts[dex]
        ]
        limits = tk.perp_dex_limits(dex, numbers="exact", session=session)
        want = sources.limits.get(dex)
        pairs = list(limits.coins.itertuples(index=False, name=None))
        assert pairs == [(c, Decimal(cap)) for c, cap in (want.coin_to_oi_cap if want else ())]


def test_slippage_samples_equal_simulation(sources, session):
    series = defaultdict(list)
    for item in sources.slippage:
        series[item.coin, item.amount_usd].append(item)
    assert {amount for _, amount in series} == {
        float(size) for size in (1e3, 5e3, 1e4, 3e4, 5e4, 1e5, 2.5e5, 5e5, 1e6)
    }
    for (coin, amount), samples in [*series.items()][::4]:  # has all nine sizes
        got = tk.slippage_history(coin, amount, 0, numbers="exact", session=session)
        assert_frame_equal(got, expected("slippageHistory", samples))


def test_weekly_apr_follows_daily_rewards(sources, session):
    for validator in session.world["validators"]:
        weeks = defaultdict(list)
        for reward in sources.rewards:
            if reward.validator == validator:
                weeks[_monday(reward.time - 1)].append(reward)
        got = tk.validator_apr_history(validator, session=session)
        assert got["week"].is_monotonic_decreasing
        assert [int(week.timestamp() * 1000) for week in got["week"]] == sorted(weeks)[::-1]
        for row in got.itertuples():
            days = weeks[int(row.week.timestamp() * 1000)]
            staked = sum(Decimal(day.staked) for day in days)
            net = sum(Decimal(day.delegator_rewards) for day in days)
            gross = net + sum(Decimal(day.commission) for day in days)
            assert row.net_apr == pytest.approx(float(net / staked * 365), rel=1e-9)
            assert row.gross_apr == pytest.approx(float(gross / staked * 365), rel=1e-9)
            assert row.total_delegator_rewards == pytest.approx(float(net), rel=1e-12)


def test_latest_snapshots_equal_simulation(sources, session):
    latest = sources.account_snapshots[-1]
    got = tk.account_value_snapshots(["ALL"], session=session)
    want = [row for rows in latest.values.values() for row in rows]
    assert len(got) == len(want)
    assert sorted(got["account_value"]) == sorted(row.account_value for row in want)
    stamp = tk.account_value_snapshot_timestamp(session=session)
    assert stamp["snapshot_id"].tolist() == [latest.snapshot_id]
    assert got["snapshot_id"].unique().tolist() == [latest.snapshot_id]
    twaps = tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session)
    rows = [row for rows in sources.twap_snapshots[-1].twaps.values() for row in rows]
    assert sorted(twaps["twap_id"]) == sorted(row.twap_id for row in rows)


def spans(approvals, builder):
    """Return the approval spans of a builder by user, from block to revocation."""
    found = defaultdict(list)
    for approval in sorted(approvals, key=lambda item: (item.time, item.tx_index)):
        if approval.builder != builder:
            continue
        if approval.approved:
            if not found[approval.user] or found[approval.user][-1][1] < 10**15:
                found[approval.user].append((approval.time, 10**15))
        elif found[approval.user]:
            found[approval.user][-1] = (
                found[approval.user][-1][0],
                min(found[approval.user][-1][1], approval.time),
            )
    return found


def active(approved, user, time):
    return any(first <= time < until for first, until in approved.get(user, ()))


def _fill_key(fill):
    return fill.time, fill.tx_index


def _status_key(status):
    return status.status_timestamp, status.tx_index


def _monday(time):
    day = time // DAY
    return (day - (day + 3) % 7) * DAY
