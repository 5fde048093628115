"""Orders: examples by hand, identities, lifelines, and the simulated exchange."""

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import lifelines
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats

import toolkit as tk
from toolkit import orders
from toolkit.errors import MissingColumns

from .examples import MONDAY, times

SECOND = 1000


def events(*rows, placed=0.0):
    """Return events (oid, status, second) of orders of 10 at 2 USD, placed at one time."""
    frame = pd.DataFrame(list(rows), columns=["oid", "status", "second"])
    frame["status"] = frame["status"].astype("str")
    frame["status_timestamp"] = times((MONDAY + SECOND * frame.pop("second")).astype("int64"))
    frame["timestamp"] = times([MONDAY + int(SECOND * placed)] * len(frame))
    return frame.assign(coin="BTC", limit_px=2.0, sz=10.0, orig_sz=10.0)


LIVES = (
    (1, "open", 0.0),
    (1, "filled", 4.0),
    (2, "open", 0.0),
    (2, "scheduledCancel", 1.0),
    (2, "canceled", 6.0),
    (3, "oracleRejected", 0.0),
    (4, "open", 0.0),
)


def test_transitions_by_hand():
    transitions = orders.transitions(events(*LIVES))
    ways = {(row.before, row.after): (row.orders, row.share) for row in transitions.itertuples()}
    assert ways == {
        ("(placed)", "open"): (3, 0.75),
        ("(placed)", "oracleRejected"): (1, 0.25),
        ("open", "filled"): (1, 1 / 3),
        ("open", "scheduledCancel"): (1, 1 / 3),
        ("open", "(last)"): (1, 1 / 3),
        ("scheduledCancel", "canceled"): (1, 1.0),
        ("filled", "(last)"): (1, 1.0),
        ("canceled", "(last)"): (1, 1.0),
        ("oracleRejected", "(last)"): (1, 1.0),
    }


def test_simultaneous_events_follow_life_of_order():
    """The events are newest first, as from the service, and all in the same transaction."""
    rows = events((1, "filled", 0), (1, "triggered", 0), (1, "open", 0)).assign(tx_index=4)
    transitions = orders.transitions(rows)
    steps = [("(placed)", "open"), ("filled", "(last)"), ("open", "triggered")]
    assert list(zip(transitions["before"], transitions["after"], strict=True)) == [
        *steps, ("triggered", "filled"),
    ]  # fmt: skip


STATUSES = st.sampled_from(["open", "triggered", "scheduledCancel", "filled", "canceled", "new!"])


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 4), STATUSES, st.integers(0, 3)), max_size=20))
@pytest.mark.filterwarnings("ignore::toolkit.errors.RepeatedRows")
def test_transitions_balance_each_status(rows):
    transitions = orders.transitions(events(*rows))
    into = transitions.groupby("after")["orders"].sum().to_dict()
    out = transitions.groupby("before")["orders"].sum().to_dict()
    count = len({oid for oid, *_ in rows})
    assert into.pop("(last)", 0) == out.pop("(placed)", 0) == count
    assert into == out
    assert sum(out.values()) == len(set(rows))  # repeated events count once
    assert transitions.groupby("before")["share"].sum().to_numpy() == pytest.approx(1.0)


def test_mix_by_hand():
    frame = orders.mix(events(*LIVES, (5, "neverHeardOf", 0.0))).set_index("status")
    assert frame["n"].eq(5).all()
    assert frame["group"].to_dict() == {
        "filled": "filled",
        "canceled": "canceled",
        "oracleRejected": "rejected",
        "open": "active",
        "neverHeardOf": "unknown",
    }
    wilson = stats.binomtest(1, 5).proportion_ci(method="wilson")
    assert frame.loc["filled", ["low", "high"]].tolist() == pytest.approx([wilson.low, wilson.high])


def test_fill_ratio_by_hand():
    """Orders of 20 USD: filled, 6 of 10 filled, open; the rejected order does not count."""
    rows = events(*LIVES)
    rows["sz"] = [10.0, 0.0, 10.0, 10.0, 4.0, 10.0, 10.0]
    row = orders.fill_ratio(rows).iloc[0]
    assert (row["orders"], row["filled"], row["canceled"], row["rejected"]) == (4, 1, 1, 1)
    assert (row["active"], row["unknown"], row["partly"], row["unsized"]) == (1, 0, 1, 0)
    assert (row["asked_usd"], row["filled_usd"]) == (60.0, 32.0)
    assert row["ratio"] == pytest.approx(32 / 60)
    none = orders.fill_ratio(rows[rows["oid"] == 3]).iloc[0]
    assert pd.isna(none["ratio"])
    whole = orders.fill_ratio(rows.assign(orig_sz=0.0)).iloc[0]
    assert whole["unsized"] == 4


def test_time_to_fill_by_hand():
    """Four orders: filled at 1 s, canceled at 2, filled at 3, open until 4.

    S falls 1, 3/4, 1/2, 1/4; filled: 1/4, then 1/2 * 1/2 = 1/4 more; canceled: 3/4 * 1/3 = 1/4.
    """
    rows = events((1, "filled", 1), (2, "canceled", 2), (3, "filled", 3), (4, "open", 0))
    until = MONDAY + 4 * SECOND
    result = orders.time_to_fill(rows, until=until, since=MONDAY, horizons=(0.5, 1, 2, 3, 9))
    assert result["filled within 0.5 s"] == 0.0
    assert result["filled within 1 s"] == pytest.approx(0.25)
    assert result["filled within 3 s"] == pytest.approx(0.5)
    assert result["canceled within 3 s"] == pytest.approx(0.25)
    assert result["rejected within 3 s"] == 0.0
    assert np.isnan(result["filled within 9 s"])  # no order was observed for so long
    assert (result.n, result.open, result.left_out) == (4, 1, 0)
    assert result.ended == {"filled": 2, "canceled": 1, "rejected": 0}
    inside = result.params.dropna()
    assert (inside["low"] <= inside["estimate"]).all()
    assert (inside["estimate"] <= inside["high"]).all()


def clopper(k, n):
    """Return the exact interval of a share, from scipy."""
    found = stats.binomtest(k, n).proportion_ci(method="exact")
    return [found.low, found.high]


def test_interval_at_boundary_is_clopper_pearson():
    """None, then all of ten orders are filled; one order is censored at 3 s."""
    filled = events(*((k, "filled", 5.0) for k in range(9)))
    lost = events((9, "open", 0.0), (9, "neverHeardOf", 3.0))
    frame = orders.time_to_fill(
        pd.concat([filled, lost]), since=MONDAY, horizons=(1, 3, 4, 5)
    ).params.set_index("name")
    ends = ["low", "high"]
    assert frame.loc["filled within 1 s", ends].tolist() == pytest.approx(clopper(0, 10))
    assert frame.loc["filled within 3 s", ends].tolist() == pytest.approx(clopper(0, 10))
    assert frame.loc["filled within 4 s", ends].tolist() == pytest.approx(clopper(0, 9))
    assert frame.loc["filled within 5 s", "estimate"] == 1.0
    assert frame.loc["filled within 5 s", ends].tolist() == pytest.approx(clopper(9, 9))
    assert frame.loc["rejected within 5 s", ends].tolist() == pytest.approx(clopper(0, 9))


@given(st.lists(st.tuples(st.sampled_from(["open", "filled", "canceled"]), st.integers(0, 3)),
                min_size=1, max_size=8))  # fmt: skip
@settings(max_examples=20)
def test_intervals_contain_estimates(lives):
    rows = [(k, status, float(second)) for k, (status, second) in enumerate(lives)]
    result = orders.time_to_fill(events(*rows), since=MONDAY, horizons=(0, 1, 2))
    known = result.params.dropna()
    assert (known["low"] < known["high"]).all()
    assert (known["low"] <= known["estimate"]).all()
    assert (known["estimate"] <= known["high"]).all()
    assert (result.curves["low"] < result.curves["high"]).all()


def test_window_begins_at_first_order():
    """A frame of ends has no placing: all three orders count, not only the last one."""
    ends = events((1, "filled", 30), (2, "canceled", 40), (3, "filled", 50))
    result = orders.time_to_fill(ends, horizons=(35,))
    assert (result.n, result.left_out) == (3, 0)
    assert result["filled within 35 s"] == pytest.approx(1 / 3)


def test_window_begins_with_events_of_account():
    """The events of b begin a minute later: its earlier order is left out, that of a is not."""
    mine = events((1, "open", 0), (1, "filled", 90)).assign(user="a")
    old = events((2, "filled", 70), placed=10).assign(user="b")
    other = events((3, "open", 60), (3, "filled", 65), placed=60).assign(user="b")
    result = orders.time_to_fill(pd.concat([mine, old, other]))
    assert (result.n, result.left_out) == (2, 1)


def test_market_orders_are_separate():
    """Two limit orders (one filled), three market orders (filled at once), and a stop order."""
    rows = events(
        *((k, "open", 0) for k in (1, 2, 6)),
        (1, "filled", 8),
        (6, "filled", 9),
        *((k, "filled", 0.5) for k in (3, 4, 5)),
    )
    rows["order_type"] = rows["oid"].map(
        {1: "Limit", 2: "Limit", 3: "Market", 4: "Market", 5: "Limit", 6: "Market"}
    )
    rows["tif"] = rows["oid"].map({5: "LiquidationMarket"}).fillna("Gtc").astype("str")
    rows["is_trigger"] = pd.array(rows["oid"] == 6, dtype="boolean")
    result = orders.time_to_fill(rows, horizons=(1,))
    assert (result.n, result.open) == (2, 1)
    assert (result.triggers.n, result.triggers.ended["filled"]) == (1, 1)
    assert result["filled within 1 s"] == 0.0
    assert result.market.n == 3
    assert result.market["filled within 1 s"] == 1.0
    assert result.market.params["low"].iloc[0] == pytest.approx(clopper(3, 3)[0])
    assert orders.time_to_fill(rows[rows["oid"] < 3]).market is None


@pytest.mark.parametrize("since", [None, 1_759_023_812_522])
def test_times_are_whole_milliseconds(since):
    """The order is placed at the start of the window, and filled after 5 s: 5.0, not 4.9998."""
    begin = 1_759_023_812_522
    rows = events((1, "open", 0), (1, "filled", 5))
    rows["status_timestamp"] = times([begin, begin + 5 * SECOND])
    rows["timestamp"] = times([begin] * 2)
    result = orders.time_to_fill(rows, since=since, horizons=(5, 6))
    assert (result.n, result.left_out) == (1, 0)
    assert result["filled within 5 s"] == 1.0
    assert result.curves["seconds"].tolist() == [5.0] * 3


def test_fill_times_are_grouped_by_columns():
    """The orders are of 20 and 1,000 USD, buys and sells, of two types."""
    rows = events(*((k, "open", 0) for k in range(4)), *((k, "filled", k + 1) for k in range(4)))
    rows = rows.assign(
        orig_sz=np.where(rows["oid"] < 3, 10.0, 500.0),
        side=np.where(rows["oid"] == 0, "B", "A"),
        tif=np.where(rows["oid"] == 1, "Alo", "Gtc"),
        order_type=np.where(rows["oid"] == 2, "Stop Limit", "Limit"),
    )
    wanted = {
        "side": {"A": 1 / 3, "B": 1.0},
        "tif": {"Alo": 1.0, "Gtc": 1 / 3},
        "type": {"Limit": 2 / 3, "Stop Limit": 0.0},
        "size": {10.0: 2 / 3, 1000.0: 0.0},
    }
    for key, shares in wanted.items():
        result = orders.time_to_fill(rows, horizons=(2,), by=key)
        first = result.params[result.params["name"] == "filled within 2 s"]
        assert first.set_index(key)["estimate"].to_dict() == pytest.approx(shares)
        assert result.n == 4
        assert len(result.plot().lines) == 2
    both = orders.time_to_fill(rows, by=["side", "tif"]).params
    assert both.columns[:3].tolist() == ["side", "tif", "name"]


def test_curves_stay_constant_after_last_end():
    rows = events((1, "filled", 1), (2, "canceled", 2))
    result = orders.time_to_fill(rows, since=MONDAY, horizons=(1, 86_400))
    assert result["filled within 86400 s"] == pytest.approx(0.5)
    assert result["canceled within 1 s"] == 0.0


def drawn(seed, n=400):
    """Draw exponential times without ties: filled at rate 1/20, canceled at 1/40, observed 60 s."""
    rng = np.random.default_rng(seed)
    fill, cancel = rng.exponential(20, n), rng.exponential(40, n)
    age = np.round(np.minimum(fill, cancel), 3)
    fill, cancel, age = (each[np.unique(age, return_index=True)[1]] for each in (fill, cancel, age))
    cause = np.where(age > 60, 0, np.where(fill < cancel, 1, 2))
    seen = np.minimum(age, 60.0)
    names = np.array(["open", "filled", "canceled"])[cause]
    rows = [(k, names[k], 0.0 if cause[k] == 0 else float(seen[k])) for k in range(len(age))]
    return events(*rows), seen, cause


def test_incidence_against_lifelines():
    """lifelines gives the same curve and, to a few per cent, the same interval."""
    rows, seen, cause = drawn(3)
    result = orders.time_to_fill(
        rows, since=MONDAY, until=MONDAY + 60 * SECOND, horizons=(5, 20, 50)
    )
    for code, name in ((1, "filled"), (2, "canceled")):
        other = lifelines.AalenJohansenFitter(seed=0).fit(seen, cause, event_of_interest=code)
        for horizon in (5, 20, 50):
            label = f"{name} within {horizon} s"
            column = other.cumulative_density_.columns[0]
            wanted = other.cumulative_density_.loc[:horizon, column].iloc[-1]
            assert result[label] == pytest.approx(wanted, abs=1e-4)
            variance = other.variance_.loc[:horizon].iloc[-1].item()
            row = result.params.set_index("name").loc[label]
            wide = 2 * stats.norm.ppf(0.975) * np.sqrt(variance)
            assert row["high"] - row["low"] == pytest.approx(wide, rel=0.05)


def test_trigger_delay_by_hand():
    """Orders placed at 0 are triggered at 10, 20, 30; two are filled 1 and 3 s later."""
    rows = events(
        *((k, "open", 0) for k in range(1, 5)),
        (1, "triggered", 10),
        (1, "filled", 11),
        (2, "triggered", 20),
        (2, "filled", 23),
        (3, "triggered", 30),
    ).assign(is_trigger=True, order_type="Stop Market")
    row = orders.trigger_delay(rows).iloc[0]
    assert (row["orders"], row["triggered"], row["filled"]) == (4, 3, 2)
    assert row["wait_q50_secs"] == 20.0
    assert row["delay_q10_secs"] == 1.0
    assert row["delay_q50_secs"] == 3.0
    assert pd.isna(row["delay_q90_secs"])  # the third order is not filled
    assert pd.isna(row[["low", "high"]]).all()  # three values have no interval at 95 %
    plain = orders.trigger_delay(rows.assign(is_trigger=False))
    assert plain.empty


@settings(max_examples=20)
@given(st.integers(6, 40), st.integers(0, 10**6))
def test_median_interval_has_stated_probability(n, seed):
    """The median is between ranks k and n + 1 - k with probability 1 - 2 P(Bin(n, 1/2) < k)."""
    delays = np.sort(np.random.default_rng(seed).permutation(1000)[:n]) + 1
    rows = [(k, s, t) for k, d in enumerate(delays) for s, t in (("triggered", 0), ("filled", d))]
    result = orders.trigger_delay(events(*rows).assign(is_trigger=True), by=None).iloc[0]
    rank = int(np.searchsorted(delays, result["low"])) + 1
    assert result["high"] == delays[n - rank]
    assert 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5) >= 0.95
    assert 1 - 2 * stats.binom.cdf(rank, n, 0.5) < 0.95  # the next rank would be too narrow


@pytest.fixture(scope="module")
def simulated():
    session = tk.local(seed=7, size="tiny", default=False)
    return tk.many(tk.historical_orders, session.world["users"], session=session)


def test_simulated_counts_against_exchange(world, simulated):
    """The journal of orders gives the same counts, without frames."""
    lives = {}
    for _, event in world.sources.orders:
        lives.setdefault(event.order.oid, []).append(event.status)
    whole = simulated.groupby("user").filter(lambda rows: len(rows) < 2000)["oid"].unique()
    steps = Counter()
    for oid in whole:
        steps.update(pairwise(["(placed)", *lives[oid], "(last)"]))
    transitions = orders.transitions(simulated[simulated["oid"].isin(whole)])
    found = {(row.before, row.after): row.orders for row in transitions.itertuples()}
    assert found == dict(steps)
    mixed = orders.mix(simulated[simulated["oid"].isin(whole)]).set_index("status")["orders"]
    assert mixed.to_dict() == dict(Counter(lives[oid][-1] for oid in whole))


def test_simulated_trigger_delays_are_short(simulated):
    result = orders.trigger_delay(simulated)
    fired = simulated.loc[simulated["is_trigger"] & (simulated["status"] == "triggered"), "oid"]
    assert result["triggered"].sum() == fired.nunique() > 10
    assert (result["delay_q90_secs"].dropna() < 1).all()


def test_wrong_arguments_of_orders_are_named():
    lives = events(*LIVES)
    for error, named, call in (
        (ValueError, "^level", lambda: orders.mix(lives, level=0)),
        (ValueError, "'status'", lambda: orders.transitions(lives, by="status")),
        (MissingColumns, "tif", lambda: orders.time_to_fill(lives, by="tif")),
    ):
        with pytest.raises(error, match=named):
            call()


def test_fill_probability_by_distance():
    """The mid is 100: a buy at 99.9 and a sell at 100.1 wait 10 bps away, a buy at 100.2 crosses.

    Trigger and market orders are apart, and an order without a mid has no distance.
    """
    rows = events(
        *((k, "open", 0) for k in range(1, 8)), (1, "filled", 4), (3, "filled", 1),
        (5, "filled", 1), (6, "filled", 1),
    )  # fmt: skip
    of = {1: ("B", 99.9), 2: ("A", 100.1), 3: ("B", 100.2), 4: ("A", 103), 7: ("B", 9)}
    rows["side"] = [of.get(oid, ("B", 0))[0] for oid in rows["oid"]]
    rows["limit_px"] = [float(of.get(oid, ("B", 98.0))[1]) for oid in rows["oid"]]
    rows["coin"] = np.where(rows["oid"] == 7, "NEW", "XYZ")
    rows["tif"] = np.where(rows["oid"] == 6, "Ioc", "Gtc")
    rows["is_trigger"] = rows["oid"] == 5
    begin = rows["timestamp"].min() - pd.Timedelta("1s")
    mids = pd.DataFrame({"coin": "XYZ", "time": [begin], "mid_px": [100.0]})
    found = orders.fill_probability(rows, mids, (0, 10, 50), horizons=(4,))
    filled = found.params[found.params["name"] == "filled within 4 s"]
    assert filled["distance_bps"].tolist()[:3] == [-np.inf, 10, 50]
    assert filled["distance_bps"].isna().tolist() == [False] * 3 + [True]
    assert filled["estimate"].tolist()[:3] == [1.0, 0.5, 0.0]
    assert (found.n, found.market.n, found.triggers.n) == (5, 1, 1)
    assert found.params.attrs["toolkit"]["helper"] == "orders.fill_probability"
    with pytest.raises(ValueError, match="edges"):
        orders.fill_probability(rows, mids, (5, 5))
