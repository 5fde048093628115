"""Example accounts: each is in every world, and the served rows confirm its story."""

import inspect
import subprocess
import sys

import pandas as pd
import pytest

import toolkit as tk
from toolkit.client import current_session, forget, open_session, use
from toolkit.contract.source_tables import Sources
from toolkit.local_service import InProcessTransport, application_of
from toolkit.service import AcceptedKey, KeyQuotas, build_store
from toolkit.simulation.output.examples import STORY_TEXTS


@pytest.fixture(scope="module", params=[1, 2])
def session(request):
    """Return a session on a world; it is the default session, as in a notebook."""
    with tk.local(request.param, "tiny") as session:
        yield session


@pytest.fixture(scope="module")
def first_deposits(session):
    """Return the first deposit of every account."""
    first = {}
    for user in session.world["users"]:
        rows = tk.user_non_funding_ledger_updates(user)
        first[user] = rows["usdc"].iloc[0] if len(rows) else 0.0
    return pd.Series(first)


@pytest.fixture(scope="module")
def account_values(session):
    return tk.account_value_snapshots(["USDC"])


def fills_of(user):
    return tk.user_fills_by_time(user, 0)


def test_every_example_has_story_and_address(session):
    stories = tk.example.stories()
    assert stories["name"].tolist() == list(STORY_TEXTS)
    assert stories["story"].tolist() == list(STORY_TEXTS.values())
    assert stories["address"].tolist() == [getattr(tk.example, name) for name in STORY_TEXTS]
    assert stories["address"].str.fullmatch("0x[0-9a-f]{40}").all()
    assert set(dir(tk.example)) == {*STORY_TEXTS, "stories"}
    world = session.world
    assert set(stories["address"]) <= {*world["users"], *world["builders"], *world["validators"]}


def test_whale_deposits_most(first_deposits):
    """Only takers count: makers, story accounts and spot traders get other funds."""
    told = tk.example.stories().set_index("name")["address"]
    others = [user for user in first_deposits.index if user not in set(told.drop(["WHALE"]))]
    latest = {user: tk.user_fills(user, max_rows=50)["crossed"] for user in others}
    takers = [user for user, crossed in latest.items() if len(crossed) and crossed.mean() > 0.5]
    assert first_deposits[tk.example.WHALE] >= first_deposits[takers].quantile(0.95)


def test_market_maker_receives_rebates(session):
    fills = fills_of(tk.example.MARKET_MAKER)
    assert (~fills["crossed"]).mean() > 0.9
    assert (fills.loc[~fills["crossed"], "fee"] <= 0).mean() > 0.5
    perps = set(session.world["perp_coins"])
    assert len(perps & set(fills["coin"])) > 0.8 * len(perps)
    states = tk.batch_clearinghouse_states([tk.example.MARKET_MAKER], dex="ALL_DEXES")
    assert len(states.positions) > 3


def test_twap_user_has_running_twap(session):
    fills = fills_of(tk.example.TWAP_USER)
    running = tk.perp_twap_snapshots(["ALL:ALL_DEXES"])
    mine = running[running["address"] == tk.example.TWAP_USER]
    assert len(mine)
    assert fills["twap_id"].notna().any()


def test_account_modes_of_examples(account_values):
    mine = account_values[account_values["user"] == tk.example.PORTFOLIO_MARGIN].iloc[0]
    assert mine["account_mode"] == 3
    assert mine["pm_ratio"] >= 0
    assert len(mine["pm_avail_by_branch"]) == 2
    assert pd.notna(mine["pm_total_account_value"])
    mine = account_values[account_values["user"] == tk.example.UNIFIED]
    assert len(mine)
    assert mine["is_unified"].all()
    assert (mine["account_mode"] == 2).all()


def test_spot_trader_pays_in_tokens(session):
    fills = fills_of(tk.example.SPOT_TRADER)
    spot = fills["coin"].str.contains("[/@]")
    assert spot.any()
    assert fills["coin"].str.startswith("#").any()
    assert set(fills.loc[spot & (fills["side"] == "B"), "fee_token"]) - {"USDC"}


def test_main_account_funds_sub_account(session):
    rows = tk.user_non_funding_ledger_updates(tk.example.SUB_ACCOUNT)
    assert rows["type"].iloc[0] == "subAccountTransfer"
    assert rows["destination"].iloc[0] == tk.example.SUB_ACCOUNT


def test_staker_delegates_most(session):
    staked = {user: tk.delegations(user)["amount"].sum() for user in session.world["users"]}
    assert staked[tk.example.STAKER] == max(staked.values()) > 0


def test_borrower_is_at_risk(session):
    state = tk.borrow_lend_user_state(tk.example.BORROWER)
    assert state.account["health"].tolist() == ["atRisk"]
    assert 1 < state.account["health_factor"].iloc[0] < 1.1
    assert state.tokens["borrow_value"].sum() > 0


def test_vault_trades_followers_money(session):
    rows = tk.user_non_funding_ledger_updates(tk.example.VAULT)
    came = rows[rows["type"].isin(["vaultCreate", "vaultDeposit"])]
    assert (came["vault"] == tk.example.VAULT).all()
    assert len(came) > 1
    assert len(fills_of(tk.example.VAULT))


def test_gamblers_are_liquidated(session):
    for name, direction in {
        "LIQUIDATED": "Liquidated Cross",
        "ISOLATED": "Liquidated Isolated",
        "DELEVERAGED": "Auto-Deleveraging",
    }.items():
        fills = fills_of(getattr(tk.example, name))
        assert fills["dir"].iloc[0].startswith("Open")
        ended = fills[fills["dir"].str.startswith(direction)]
        assert len(ended)
        assert ended["closed_pnl"].sum() < 0


def test_market_liquidation_closes_position(session):
    """The fills say Close, like those of any order; the columns name the liquidated account."""
    for name in ("SOLD", "TRIMMED"):
        user = getattr(tk.example, name)
        fills = fills_of(user)
        ended = fills[fills["liquidated_user"] == user]
        assert len(ended)
        assert ended["dir"].str.fullmatch("Close (Long|Short)").all()
        assert set(ended["liquidation_method"]) == {"market"}
        assert ended["closed_pnl"].sum() < 0
        left = tk.batch_clearinghouse_states([user]).positions
        assert len(left) == (name == "TRIMMED")


def test_large_account_exceeds_first_tier(session):
    """Its margin is more than half of what the largest leverage requires."""
    states = tk.batch_clearinghouse_states([tk.example.LARGE])
    held, account = states.positions, states.accounts.iloc[0]
    plain = (held["position_value"] / (2 * held["max_leverage"])).sum()
    assert account["cross_maintenance_margin_used"] > 1.3 * plain


def test_builder_is_approved_and_used(session):
    fees = {}
    for builder in session.world["builders"]:
        fills = tk.builder_approved_fills_by_time(builder, 0, max_rows=20_000)
        routed = fills[fills["builder"] == builder]
        notional = (routed["px"] * routed["sz"]).sum()
        fees[builder] = routed["builder_fee"].sum() / notional
    assert fees[tk.example.BUILDER] == min(fees.values()) > 0
    assert len(tk.builder_orders_by_time(tk.example.BUILDER, 0, max_rows=10))
    assert len(tk.builder_approved_funding_by_time(tk.example.BUILDER, 0, max_rows=10))


def test_validator_keeps_four_percent(session):
    weeks = tk.validator_apr_history(tk.example.VALIDATOR)
    assert len(weeks) > 3
    assert (1 - weeks["net_apr"] / weeks["gross_apr"]).to_numpy() == pytest.approx(0.04, abs=1e-6)


def test_examples_follow_default_session(session):
    here = tk.example.WHALE
    with tk.local(7, "tiny", default=False) as other:
        assert here == tk.example.WHALE
        assert set(tk.example.stories(other)["address"]) != set(tk.example.stories()["address"])
        use(other)
        assert tk.example.WHALE == other.world["examples"]["WHALE"] != here
        use(session)


# --- errors ---


@pytest.fixture
def no_default_session():
    """Remove the default session during a test."""
    try:
        before = current_session()
    except tk.NotConnected:
        before = None
    forget()
    yield
    forget() if before is None else use(before)


@pytest.mark.usefixtures("no_default_session")
def test_example_without_session_raises():
    for call in (lambda: tk.example.WHALE, tk.example.stories):
        with pytest.raises(tk.NotConnected, match=r"tk\.local\(\)"):
            call()
    assert dir(tk.example) == ["stories"]
    assert not hasattr(tk.example, "WHALE")
    assert inspect.getmembers(tk.example) == [("stories", tk.example.stories)]


@pytest.mark.usefixtures("no_default_session")
def test_example_needs_simulated_session():
    store = build_store(Sources(start_ms=0, now_ms=0, label="", simulated=False))
    transport = InProcessTransport(application_of(store, KeyQuotas([AcceptedKey("all", "s3cret")])))
    open_session(
        "http://local", "s3cret", transport=transport, label="the desk's recordings", default=True
    )
    with pytest.raises(tk.NotConnected, match="the desk's recordings"):
        _ = tk.example.WHALE
    transport.close()


@pytest.mark.usefixtures("no_default_session")
def test_misspelt_name_lists_names():
    with tk.local(7, "tiny"), pytest.raises(AttributeError, match="BORROWER"):
        _ = tk.example.WHALES  # type: ignore[attr-defined]


def test_annotations_list_every_example():
    assert set(inspect.get_annotations(tk.example)) == set(STORY_TEXTS)


def test_examples_import_no_simulation():
    """The world comes from the cache, so that a notebook does not wait for NumPy's generators."""
    tk.local(7, "tiny", default=False).close()
    program = (
        "import sys, toolkit as tk\n"
        "tk.local(7, 'tiny'); tk.example.WHALE\n"
        "assert 'toolkit.simulation' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
