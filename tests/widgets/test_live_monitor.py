"""The live monitor keeps its last view after an error, and does not block the kernel."""

import threading

import pandas as pd
import pytest

import toolkit as tk
from tests.widgets.fetchers import CannedFetcher
from toolkit.errors import NotReady, Unreachable
from toolkit.widgets.live_monitor import (
    LiveMonitor,
    MonitorRequest,
    MonitorView,
    ViewPart,
    limit_calls,
    list_problems,
    live_monitor,
    monitor_html,
    monitor_view,
)

USER = "0x" + "ab" * 20
NOON = 43_200_000  # 1970-01-01 12:00 UTC


def depth(bids=3e6):
    places = [("main", "BTC"), ("hyperliquid", "ETH"), ("eqx", "TSLA"), ("eqx", "BTC")]
    return pd.DataFrame(
        [
            (pd.Timestamp(0, tz="UTC"), coin, dex, bps, bids * bps, 1e6 * bps)
            for dex, coin in places
            for bps in (10, 25)
        ],
        columns=["timestamp_ms", "coin", "dex", "bps", "bid_depth_usd", "ask_depth_usd"],
    )


def twaps(done=25.0):
    row = {
        "address": USER,
        "twap_id": 7,
        "is_buy": True,
        "total_sz": 8.0,
        "executed_sz": 2.0,
        "executed_ntl": 200.0,
        "progress_pct": done,
        "start_time_ms": pd.Timestamp(0, tz="UTC"),
        "next_slice_time": pd.Timestamp(1_000, unit="ms", tz="UTC"),
        "waiting": False,
    }
    return pd.DataFrame([row])


@pytest.fixture
def canned():
    return CannedFetcher(
        {
            "current_depth": depth(),
            "perp_twap_snapshot_timestamp": pd.DataFrame({"snapshot_id": ["one"]}),
            "perp_twap_snapshots": twaps(),
        }
    )


@pytest.fixture
def monitor(canned):
    request = MonitorRequest("BTC")
    with LiveMonitor(request, ["BTC", "ETH"], "60s", canned, lambda: NOON) as result:
        yield result


def test_depth_is_of_market_on_dex(canned):
    for coin in ("BTC", "ETH", "eqx:TSLA", "eqx:BTC"):
        view = monitor_view(MonitorRequest(coin), canned, NOON)
        dex, _, symbol = coin.rpartition(":")
        assert view.depth.rows["coin"].tolist() == [symbol, symbol]
        assert set(view.depth.rows["dex"]) <= ({dex} if dex else {"main", "hyperliquid"})
        assert view.depth.good_at == view.good_at == NOON


def test_html_shows_depth_and_progress(canned):
    html = monitor_html(monitor_view(MonitorRequest("BTC"), canned, NOON))
    # Bids 3, asks 1: balance is (3 - 1) / (3 + 1) = 50 %.
    assert html.count("+50.0 %") == 2
    assert 'aria-valuenow="25.0" aria-label="TWAP 7 of 0xababab\N{HORIZONTAL ELLIPSIS}abab"' in html
    assert ">100<" in html  # average price: 200 USD over 2
    assert "1 running, 0 waiting" in html


def test_bar_lengths_are_logarithmic(canned):
    canned.answers["current_depth"] = depth(4e6)
    html = monitor_html(monitor_view(MonitorRequest("BTC"), canned, NOON))
    # Bids 40 and 100, asks 10 and 25 million: the largest is 100; 25 is two halvings less.
    assert "width:100%" in html
    assert "width:80%" in html


def test_only_new_snapshots_are_fetched(canned):
    first = monitor_view(MonitorRequest("BTC"), canned, NOON)
    canned.answers["perp_twap_snapshots"] = twaps(50.0)
    second = monitor_view(MonitorRequest("BTC"), canned, NOON + 1, first)
    assert second.twaps.rows["progress_pct"].tolist() == [25.0]
    assert second.twaps.good_at == NOON + 1
    canned.answers["perp_twap_snapshot_timestamp"] = pd.DataFrame({"snapshot_id": ["two"]})
    third = monitor_view(MonitorRequest("BTC"), canned, NOON + 2, second)
    assert third.twaps.rows["progress_pct"].tolist() == [50.0]
    assert canned.names().count("perp_twap_snapshots") == 2


def test_market_without_twaps_says_so(canned):
    canned.answers["perp_twap_snapshots"] = NotReady("No snapshots are available yet")
    view = monitor_view(MonitorRequest("BTC"), canned, NOON)
    assert view.twaps.problem == ""
    assert "no TWAP runs or waits" in monitor_html(view)
    assert "tk.perp_twap_snapshots would raise" in view.code


def test_failed_part_keeps_old_rows(canned):
    good = monitor_view(MonitorRequest("BTC"), canned, NOON)
    canned.answers["current_depth"] = Unreachable("no answer from <host>")
    bad = monitor_view(MonitorRequest("BTC"), canned, NOON + 5_000, good)
    worse = monitor_view(MonitorRequest("BTC"), canned, NOON + 10_000, bad)
    pd.testing.assert_frame_equal(worse.depth.rows, good.depth.rows)
    assert (worse.depth.good_at, worse.depth.since) == (NOON, NOON + 5_000)
    assert worse.good_at == NOON + 10_000  # the TWAPs still come
    assert list_problems(worse) == (
        "No depth since 12:00:05 UTC: no answer from <host>.\nThe view below is older."
    )
    canned.answers["current_depth"] = depth()
    well = monitor_view(MonitorRequest("BTC"), canned, NOON + 15_000, worse)
    assert list_problems(well) == ""
    assert well.depth.good_at == NOON + 15_000
    canned.answers["current_depth"] = Unreachable("no answer")
    assert monitor_view(MonitorRequest("ETH"), canned, NOON, good).depth.rows is None
    empty = MonitorView(MonitorRequest("BTC"), depth=ViewPart(problem="no answer", since=NOON))
    assert monitor_html(empty) == ""
    assert empty.good_at is None


def test_status_shows_errors(monitor, canned):
    state = monitor._state
    assert "Stopped; last good answer: never." in state.value
    monitor.look()
    assert "Stopped; last good answer: 12:00:00 UTC." in state.value
    canned.answers["current_depth"] = Unreachable("no answer from <host>")
    monitor.look()
    assert "no answer from &lt;host&gt;" in state.value
    assert 'role="alert"' in state.value
    canned.answers["current_depth"] = depth()
    monitor.look()
    assert 'role="alert"' not in state.value


def test_new_market_ends_pause(monitor, canned):
    shown = threading.Event()
    monitor._shown.observe(lambda change: "ETH" in change["new"] and shown.set(), "value")
    monitor.start()
    monitor._coin.value = "ETH"  # the pause is a minute
    assert shown.wait(20)
    assert monitor.view.request.coin == "ETH"


def test_close_stops_monitor(canned):
    looked = threading.Event()
    canned.answers["current_depth"] = lambda **_: looked.set() or depth()
    request = MonitorRequest("BTC")
    with LiveMonitor(request, ["BTC"], "60s", canned, lambda: NOON).start() as monitor:
        assert looked.wait(20)
    assert not monitor.running
    assert monitor.widget.comm is None


def test_code_reproduces_view(default):
    with pytest.raises(ValueError, match="1s, 2s, 5s, 15s, 60s"):
        live_monitor(every="3s")
    with live_monitor("eqx:TSLA") as monitor:
        view = monitor.look().view
        cell: dict[str, pd.DataFrame] = {}
        exec(monitor.code, cell)
        pd.testing.assert_frame_equal(cell["depth"], view.depth.rows)
        if len(view.twaps.rows):
            pd.testing.assert_frame_equal(cell["twaps"], view.twaps.rows)


def test_snapshot_limit_raises_message():
    """Five in ten minutes; the widget goes on without waiting. docs/live_service.md, section 8."""
    now = [0.0]
    fetch = limit_calls(lambda function, *arguments, **named: function.__name__, lambda: now[0])
    for _ in range(5):
        assert fetch(tk.perp_twap_snapshots, ["BTC"]) == "perp_twap_snapshots"
        now[0] += 60.0
    with pytest.raises(
        tk.ToolkitError, match="5 times in 10 minutes; the next call is possible in 300 s"
    ):
        fetch(tk.perp_twap_snapshots, ["BTC"])
    assert fetch(tk.current_depth) == "current_depth"
    now[0] = 600.0
    assert fetch(tk.perp_twap_snapshots, ["ETH"]) == "perp_twap_snapshots"
