"""Names, costs and limits of the live service: docs/live_service.md, section 8.

More tests are beside the code: tests/contract/test_names.py and test_gateway.py,
tests/client/test_budget.py, tests/service/test_access.py, tests/end/test_complete.py.
"""

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import MONDAY, times
from tests.analysis.test_slippage_fit import samples_of
from toolkit.contract.dexes import NATIVE_ALIASES

ALIASES = sorted(NATIVE_ALIASES)


@pytest.fixture(scope="module")
def session():
    with tk.local(seed=7, size="tiny", default=False) as result:
        yield result


@pytest.fixture(scope="module")
def user(session):
    return str(session.world["users"][0])


def test_rows_have_known_dex_names(session):
    assert set(tk.current_depth(session=session)["dex"]) == {"hyperliquid", "eqx", "pre"}
    samples = tk.slippage_history("BTC", 1_000, "1d", session=session)
    assert set(samples["dex"]) == {"hyperliquid"}
    values = tk.account_value_snapshots("USDC", session=session)
    assert set(values["collateral_token"]) == {"hyperliquid:USDC", "eqx:USDC"}
    users = session.world["users"][:1]
    states = tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=session)
    assert set(states.accounts["dex"]) == {"native", "eqx", "pre"}  # the keys of the answer


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_give_same_rows(alias, session, user):
    same = pd.testing.assert_frame_equal
    depth = tk.current_depth(session=session)
    native = depth[depth["dex"] == "hyperliquid"].reset_index(drop=True)
    same(tk.current_depth(dex=alias, session=session), native)
    same(tk.meta(dex=alias, session=session), tk.meta(session=session))
    fills = tk.user_fills_by_time(user, 0, dex=alias, session=session)
    same(fills, tk.user_fills_by_time(user, 0, dex="main_dex", session=session))
    assert len(fills) > 0
    asked = ("1d", None)
    samples = tk.slippage_history(f"{alias}:BTC", 1_000, *asked, session=session)
    same(samples, tk.slippage_history("BTC", 1_000, *asked, session=session))
    values = tk.account_value_snapshots(f"{alias}:USDC", session=session)
    assert set(values["collateral_token"]) == {"hyperliquid:USDC"}
    twaps = tk.perp_twap_snapshots(f"ALL:{alias}", session=session)
    same(twaps, tk.perp_twap_snapshots(["ALL"], session=session))
    states = tk.batch_clearinghouse_states(user, dex=alias, session=session)
    same(states.accounts, tk.batch_clearinghouse_states([user], session=session).accounts)


def depths(*rows):
    """Return depth batches from dex, minute, bps, and the depth of bids and asks."""
    names = ["dex", "minute", "bps", "bid_depth_usd", "ask_depth_usd"]
    frame = pd.DataFrame(rows, columns=names).assign(coin="XYZ")
    return frame.assign(timestamp_ms=times(MONDAY + 60_000 * frame.pop("minute")))


def test_depth_joins_aliases():
    """One market has two names of its dex, a minute apart."""
    both = ("main", 0, 10, 1e3, 2e3), ("hyperliquid", 1, 10, 3e3, 8e3)
    rows = tk.depth.profile(depths(*both, ("flx", 0, 10, 7e3, 9e3)))
    assert rows[["dex", "side", "n", "mean_usd"]].to_numpy().tolist() == [
        ["flx", "ask", 1, 9e3],
        ["flx", "bid", 1, 7e3],
        ["hyperliquid", "ask", 2, 5e3],
        ["hyperliquid", "bid", 2, 2e3],
    ]


def test_slippage_joins_by_alias():
    """Half of the depth within 25 bps costs at least 6 bps, under each name of the dex."""
    samples = samples_of([0], 2e3, 9.0, 19.0, 2.0)
    for alias in ALIASES:
        batch = depths((alias, 0, 10, 1e3, 1e3), (alias, 0, 25, 3e3, 3e3))
        frame = tk.depth.consistency(batch, samples).set_index("side")
        assert frame["consistent"].to_dict() == {"buy": True, "sell": False}
        assert frame["least_bps"].round(2).to_dict() == {"buy": 6.0, "sell": 6.0}


def test_account_values_join_by_alias():
    for alias in ALIASES:
        snapshot = pd.DataFrame(
            {
                "snapshot_id": "s",
                "user": ["0xa", "0xa", "0xb"],
                "collateral_token": [f"{alias}:USDC", "eqx:USDC", "hyperliquid:USDC"],
                "account_value": [70.0, 30.0, 5.0],
                "account_mode": [0, 0, 2],
            }
        )
        rows = tk.accounts.values(snapshot, by="dex")[["user", "dex", "value"]]
        native = "hyperliquid"
        expected = {("0xa", "eqx", 30.0), ("0xa", native, 70.0), ("0xb", native, 5.0)}
        assert set(rows.itertuples(index=False, name=None)) == expected
        assert set(tk.accounts.values(snapshot, by="token")["token"]) == {"USDC"}


def test_plan_of_states_states_actual_cost(session):
    users = session.world["users"][:3]
    plan = tk.plan(tk.batch_clearinghouse_states, users, dex="ALL_DEXES", session=session)
    assert (plan.points, plan.sure) == (18, "at most")
    assert "counted for 3 dexes" in plan.why
    before = session.counts.points
    tk.batch_clearinghouse_states(users, dex="ALL_DEXES", session=session)
    assert session.counts.points - before == 18
    twaps = tk.plan(tk.perp_twap_snapshots, "ALL", session=session)
    assert (twaps.points, "5 times in 10 minutes" in twaps.why) == (2, True)
