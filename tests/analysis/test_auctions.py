"""Auctions: examples by hand, identities, and the answers of the service."""

import hypothesis.strategies as st
import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import toolkit as tk
from toolkit import auctions
from toolkit.contract.source_tables import Auction
from toolkit.errors import RepeatedRows
from toolkit.frames import frame
from toolkit.service.answers.market import auction_status
from toolkit.times import HOUR, SECOND

from .examples import wrong_errors

ROUND = Auction("perp", 1_759_104_000, 111_600, "534.0", "100.0")
"""From 534 to 100 in 31 hours: 14 an hour."""


def status_after(auction, seconds):
    """Return the service's answer, so many seconds after the start of the auction."""
    status = auction_status(auction, auction.start_seconds + seconds)
    name = "perpDeployAuctionStatus"
    result = frame(name, [msgspec.to_builtins(status)])
    result.attrs["toolkit"] = {"asked_at": iso_time(auction.start_seconds + seconds)}
    return result


def iso_time(seconds):
    return pd.Timestamp(seconds, unit="s").isoformat() + "Z"


def test_running_auction_has_no_sale_figures():
    status = status_after(ROUND, 3600)
    running = auctions.decay(status).iloc[0]
    assert not running["over"]
    assert pd.isna(running[["of_start", "premium", "bought_at"]]).all()
    for gas in (99.0, 535.0):
        waits = auctions.decay(status, gas=gas)
        assert waits[["gas_time", "gas_seconds"]].isna().all(axis=None)
    at_start = auctions.decay(status_after(ROUND, 0)).iloc[0]  # one point is no line
    assert pd.isna(at_start["floor_gas"])
    unsold = auctions.decay(status_after(ROUND, 40 * 3600), floor=100.0).iloc[0]
    assert unsold["premium"] == 0.0
    assert pd.isna(unsold["bought_at"])


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 111_599),
    st.integers(1, 10**6).map(lambda x: x / 100),
    st.integers(0, 10**6).map(lambda x: x / 100),
)
def test_line_equals_price_at_every_second(seconds, floor, fall):
    """The line is exact at every second, to the eighth decimal, and its inverse is that second."""
    auction = Auction("perp", 1_759_104_000, 111_600, f"{floor + fall:.2f}", f"{floor:.2f}")
    status = status_after(auction, seconds)
    line = auctions.decay(status, floor=floor, points=111_601)["line_gas"]
    assert line[seconds] == pytest.approx(status["current_gas"].item(), abs=2e-8)
    assert line.iloc[0] == pytest.approx(floor + fall)
    assert line.iloc[-1] == pytest.approx(floor)
    assert (np.diff(line) <= 1e-9).all()
    if fall >= 1:
        now = auctions.decay(status, gas=status["current_gas"].item(), floor=floor)
        assert now["gas_seconds"].item() == pytest.approx(0.0, abs=0.01)


def test_decay_matches_simulated_auctions(world):
    """The exchange's own table has the floors and the time of the purchase."""
    session = tk.local(seed=7, size="tiny", default=False)
    truth = {auction.kind: auction for auction in world.sources.auctions}  # the latest of each kind
    spot = tk.spot_pair_deploy_auction_status(session=session)
    row = auctions.decay(spot).iloc[0]
    assert not row["over"]
    assert row["floor_gas"] == pytest.approx(float(truth["spot"].floor_gas), abs=1e-6)
    assert row["start"].value == truth["spot"].start_seconds * 10**9
    sold = truth["perp"]
    perp = tk.perp_deploy_auction_status(session=session)
    paid = auctions.decay(perp, floor=float(sold.floor_gas)).iloc[0]
    assert paid["of_start"] == pytest.approx(float(sold.end_gas) / float(sold.start_gas))
    assert paid["bought_at"].value == sold.end_seconds * 10**9
    assert auctions.decay(spot).attrs["toolkit"]["simulated"]


def test_polls_of_two_times_agree():
    begin = ROUND.start_seconds * SECOND
    polls = [status_after(ROUND, h * 3600).assign(asked_at=begin + h * HOUR) for h in (1, 20)]
    result = auctions.decay(pd.concat(polls))
    assert result["gas"].tolist() == [520.0, 254.0]
    assert result["floor_gas"].tolist() == pytest.approx([100.0, 100.0])


def two_auctions():
    """Return a running auction, 1000 to 800 after 50 of 200 s, and one that was sold at 550."""
    rows = {
        "start_time_seconds": [2000, 1000],
        "duration_seconds": [200, 100],
        "start_gas": [1000.0, 600.0],
        "current_gas": [800.0, None],
        "end_gas": [None, 550.0],
    }
    return pd.DataFrame(rows, index=[7, 5])


def test_two_auctions_by_hand():
    """The floor of the running one is 1000 - 4 * 200; nothing tells that of the other."""
    result = auctions.decay(two_auctions(), at=2_050_000)
    assert result["start_gas"].tolist() == [600.0, 1000.0]
    assert result["floor_gas"].tolist() == pytest.approx([np.nan, 200.0], nan_ok=True)
    assert result["elapsed"].tolist() == [1.0, 0.25]
    assert result["per_hour"].tolist() == pytest.approx([np.nan, -14_400], nan_ok=True)
    assert result["over"].tolist() == [True, False]
    early = auctions.decay(two_auctions(), at=1_999_000)
    assert early["elapsed"].tolist() == [1.0, 0.0]
    assert early["floor_gas"].isna().all()
    first = two_auctions().assign(current_gas=[999.996, None])
    assert auctions.decay(first, at=2_000_001)["floor_gas"][1] == pytest.approx(200.0)
    with pytest.warns(RepeatedRows, match="status: 1 of 3 rows"):
        auctions.decay(pd.concat([two_auctions(), two_auctions()[:1]]), at=2_050_000)


def test_points_of_two_auctions_by_hand():
    """To 400: the sold one falls 2 a second, the running one 3."""
    result = auctions.decay(two_auctions(), at=2_050_000, floor=400.0, gas=550.0, points=3)
    begin = pd.Timestamp(0, tz="UTC")
    seconds = [(time - begin).total_seconds() for time in result["time"]]
    assert seconds == [1000, 1050, 1100, 2000, 2100, 2200]
    assert result["line_gas"].tolist() == [600, 500, 400, 1000, 700, 400]
    assert result.index.tolist() == list(range(6))
    assert "index" not in result
    assert result["gas_seconds"].tolist() == [-1025] * 3 + [100] * 3
    assert result["premium"].tolist() == pytest.approx([0.375] * 3 + [np.nan] * 3, nan_ok=True)
    assert (result["bought_at"][0] - begin).total_seconds() == 1025
    lowest = auctions.decay(two_auctions(), at=2_050_000, floor=400.0, gas=400.0)
    assert lowest["gas_seconds"].tolist() == [-950, 150]


def test_auction_without_prices_is_over():
    """After its end the service may state neither a current nor a paid price."""
    ended = two_auctions()[:1].assign(current_gas=None)
    for seconds in (2_100, 2_500):
        row = auctions.decay(ended, at=1000 * seconds).iloc[0]
        assert row["over"]
        assert row[["gas", "of_start", "premium", "bought_at"]].isna().all()
    late = auctions.decay(two_auctions()[:1], at=2_200_000)  # an answer from before the end
    assert late["over"].all()


def test_errors_of_decay():
    status = status_after(ROUND, 3600)
    bare = status.copy()
    bare.attrs = {}
    table = [
        (lambda: auctions.decay(bare), ValueError, "status: the time of the fetch"),
        (lambda: auctions.decay(status, points=1), ValueError, "points"),
    ]
    assert wrong_errors(table) == []
