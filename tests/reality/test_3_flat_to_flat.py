"""Section 3: from flat to flat, the net PnL of an account equals its cash."""

import pytest

from tests.analysis.simulated import everybody, floats
from tests.worlds import world_of
from toolkit import pnl
from toolkit.rules.spot_cost import SWAPS


@pytest.fixture(scope="module")
def tables():
    return everybody(world_of("tiny"))


@pytest.fixture(scope="module")
def spot(tables):
    """Return the fills of spot and outcome coins, with the cash of each in USD, less its fee."""
    fills = floats(tables.fills[tables.fills["coin"].str.contains("^@|/|^#")])
    is_buy, is_outcome = fills["side"] == "B", fills["coin"].str.startswith("#")
    notional = (fills["px"] * fills["sz"]).where(~fills["dir"].isin(SWAPS), 0.0)
    paid = fills["fee"].where(~is_buy | is_outcome, 0.0)  # other buys pay in tokens
    return fills.assign(cash=notional.where(~is_buy, -notional) - paid)


def test_spot_net_equals_cash(spot):
    """For each account: a sale of the remaining tokens at cost would make it flat."""
    walked = pnl.positions(spot, {})
    last = walked.groupby(["user", "coin"]).tail(1).set_index(["user", "coin"])
    held = last["position"]
    costs = (held * last["entry_px"]).where(held != 0, 0.0)
    gaps = walked["gap"].ne(0) | walked["chain_break"]
    is_odd = gaps.groupby([walked["user"], walked["coin"]]).any()
    cash = spot.groupby(["user", "coin"])["cash"].sum()
    nets = pnl.attribution(spot, by=["user", "coin"]).set_index(["user", "coin"])["net"]
    assert set(SWAPS) <= set(spot["dir"])
    is_pair = ~cash.index.get_level_values("coin").str.startswith("#")
    rest = (nets - cash - costs).where(~is_odd)
    pairs = rest[is_pair].dropna()
    assert len(pairs) > 2
    assert pairs.abs().max() < 1e-6
    # Swaps move cost between outcomes, so only all outcomes of an account are flat together.
    outcomes = rest[~is_pair].groupby("user").sum(min_count=1)
    assert len(outcomes) > 2
    assert outcomes.abs().max() < 1e-6


def test_flat_spot_trip_equals_cash(spot):
    """If a trip begins and ends flat, its net equals its cash without any cost basis."""
    trips = pnl.round_trips(spot.drop(columns="cash"))
    closed = trips[
        (trips["status"] == "closed") & trips[["entry_px", "exit_px"]].notna().all(axis=1)
    ]
    assert len(closed) > 2
    traded = spot[~spot["dir"].isin(SWAPS)]
    for trip in closed.itertuples():
        mine = traded[(traded["user"] == trip.user) & (traded["coin"] == trip.coin)]
        during = mine["time"].between(trip.opened, trip.closed)
        assert trip.net == pytest.approx(mine[during]["cash"].sum(), abs=1e-6), trip
