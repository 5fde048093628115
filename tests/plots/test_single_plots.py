"""What single plots draw: bars, lines, labels and notes, with results by hand."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import DAY, HOUR, MONDAY, times
from tests.plots.figures import draw_figure, list_texts, render_png
from toolkit import builders, plots, pnl
from toolkit.plots import alt


def test_equal_lines_have_own_legend():
    stamps = pd.to_datetime(["2025-09-30", "2025-10-01"], utc=True)
    rows = pd.DataFrame(
        {"start": stamps[0], "end": stamps[1], "start_gas": 600.0, "floor_gas": 500.0}
        | {"gas": [575.0, 550.0], "elapsed": [0.25, 1.0], "over": [False, True]}
    )
    ax = tk.plots.auction_line(rows)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["running: from 600.00, now 575.00", "over: from 600.00, paid 550.00"]
    widths = [line.get_linewidth() for line in ax.lines if line.get_linestyle() == "-"]
    assert widths[0] > widths[1]
    named = tk.plots.auction_line(rows.assign(auction=["perp", "spot"]))
    assert named.get_legend().get_texts()[1].get_text().startswith("spot: ")


BUILDER = "0x" + "b" * 40


def fills_of(users, stamps, builder_fee):
    return pd.DataFrame(
        {"user": users, "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "fee": 1.0}
        | {"time": times(stamps), "builder": BUILDER, "builder_fee": builder_fee}
    )


def test_wide_interval_does_not_flatten_curve():
    """One of two users paid 1 USD and one nothing: the interval reaches thousands of USD."""
    fills = fills_of(["u", "v"], [MONDAY, MONDAY], [1.0, 0.0])
    value = builders.lifetime_value(fills, BUILDER, weeks=1, until="2025-10-20")
    assert value.params["high"].item() > 1000
    assert plots.lifetime_value(value).get_ylim() == (0, 3 * 0.5)


def test_unfinished_week_is_hatched():
    fills = fills_of(["a", "b"], [MONDAY, MONDAY + 7 * DAY], 0.1)
    cohorts = tk.builders.cohorts(fills, BUILDER, until=MONDAY + 8 * DAY)
    ax = tk.plots.builder_cohorts(cohorts)
    render_png(ax.figure)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == (~cohorts["complete"]).sum() == 2
    shades = np.ma.getmaskarray(ax.images[0].get_array())
    assert shades.sum() == 3  # two weeks that are not over, and one that has not begun
    assert "100%" in list_texts(ax.figure)
    assert "0%" not in list_texts(ax.figure)


def test_activity_hides_shares_of_many_days():
    days = pd.date_range("2025-09-01", periods=30, tz="UTC")
    counts = {"builder": "0xb", "new": 1, "returning": 2, "retention": 0.5, "volume_share": 0.5}
    rows = pd.DataFrame({"time": days, **counts, "complete": True})
    ax = tk.plots.builder_activity(rows)
    assert (ax.get_ylabel(), len(ax.texts)) == ("active users", 0)
    assert "share" in tk.plots.builder_activity(rows.head(5)).get_ylabel()


def test_resilience_label_has_half_life(results):
    found = results["resilience"]
    assert found["half_life"] == pytest.approx(30, rel=0.1)
    label = f"half-life {found['half_life']:.1f} s"
    assert any(text.startswith(label) for text in list_texts(found.plot().figure))


def test_smallest_positions_are_left_out():
    """A row for each of 12 coins, each to its own scale; the first coin is the largest."""
    rows = pd.DataFrame(
        {"coin": [f"C{number}" for number in range(13)], "px": 1.0, "chain_break": False}
        | {"position": [float(13 - number) for number in range(13)], "time": times([MONDAY] * 13)}
    )
    ax = tk.plots.positions_over_time(rows)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        f"C{number}" for number in range(11, -1, -1)
    ]
    assert "1 smaller ones not drawn" in ax.get_xlabel()


def test_unknown_equity_says_what_to_pass():
    rows = pd.DataFrame(
        {"time": times([MONDAY]), "realised": [1.0], "pnl": np.nan, "equity": np.nan}
    )
    figure = draw_figure("equity_curve", rows, of="equity")
    assert "equity is not known: pass marks to tk.pnl.equity" in list_texts(figure)


def test_missing_pnl_breaks_line():
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(3)), "realised": [1.0, 2.0, 3.0]}
        | {"pnl": [1.0, np.nan, 5.0]}
    )
    figure = draw_figure("equity_curve", tk.pnl.drawdown(rows))
    pnl = figure.axes[0].lines[0].get_ydata()
    assert np.isnan(pnl[1])
    assert "ends at +5.00" in alt(figure)
    assert len(figure.axes) == 2


def test_drawdown_of_realised_without_pnl():
    """PnL is not known: the drawdown is 3 below the height of 4, then 2; PnL began at 0."""
    rows = pd.DataFrame(
        {"time": times(MONDAY + n * HOUR for n in range(4)), "realised": [-1.0, 4.0, 1.0, 2.0]}
        | {"pnl": np.nan}
    )
    for curve in (rows, tk.pnl.drawdown(rows), tk.pnl.drawdown(rows, of="realised")):
        figure = draw_figure("equity_curve", curve)
        lower = figure.axes[1]
        assert lower.get_ylabel() == "drawdown of\nrealised, USD"
        assert lower.lines[0].get_ydata().tolist() == [-1, 0, -3, -2]
        assert lower.lines[0].get_drawstyle() == "steps-post"
        assert "the deepest drawdown of realised PnL is \N{MINUS SIGN}3.00" in alt(figure)
    with_pnl = draw_figure("equity_curve", rows.assign(pnl=[1.0, 5.0, np.nan, 3.0]))
    assert with_pnl.axes[1].get_ylabel() == "drawdown, USD"
    drawdown = with_pnl.axes[1].lines[0].get_ydata()
    assert np.isnan(drawdown[2])
    assert drawdown[[0, 1, 3]].tolist() == [0, 0, -2]


def test_smallest_coins_share_one_bar(results):
    row = results["funding_by_coin"].iloc[:1]
    many = pd.concat([row.assign(coin=f"C{n}", net=n - 20.0) for n in range(40)])
    ax = tk.plots.funding_by_coin(many)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 16
    assert "25 others" in names


def test_basis_of_one_snapshot_has_no_half_life():
    snapshot = pd.DataFrame(
        {"name": ["BTC", "ETH"], "mark_px": [100.1, 50.0], "oracle_px": [100.0, 50.0],
         "funding": 1e-5, "open_interest": 5.0, "time": pd.Timestamp("2025-09-01", tz="UTC")}
    )  # fmt: skip
    figure = tk.plots.basis(tk.funding.basis(snapshot))
    half_lives, means, _ = figure.axes
    assert "half-life not known" in half_lives.texts[0].get_text()
    assert [label.get_text() for label in means.get_yticklabels()] == ["BTC", "ETH"]
    assert "half-life not known" in tk.plots.alt(figure)


def test_bars_sum_to_notional(results):
    levels = results["liquidation_map"]
    figure = draw_figure("liquidation_map", levels)
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == pytest.approx(
        levels["notional"].sum()
    )
    assert "of open interest" not in alt(figure)
    assert "covers" in alt(figure)


def test_lines_step_at_bin_ends():
    """Bins of 5 %: longs from 0 to -5 and from -20 to -25, shorts from 10 to 15."""
    rows = pd.DataFrame(
        {"coin": "X", "side": ["long", "long", "short"], "distance": [0.0, -0.2, 0.1]}
        | {"low": [95.0, 75.0, 110.0], "high": [100.0, 80.0, 115.0], "unplaced": 0.0}
        | {"notional": [1e3, 2e3, 5e3], "cumulative": [1e3, 3e3, 5e3], "covered": 1.0}
    )
    longs, shorts = draw_figure("liquidation_map", rows).axes[0].lines[:2]
    assert np.column_stack(longs.get_data()) == pytest.approx(
        np.array([[0, 0], [-5, 1e3], [-25, 3e3]])
    )
    assert [line.get_label() for line in (longs, shorts)] == [
        "longs up to here",
        "shorts up to here",
    ]
    assert np.column_stack(shorts.get_data()) == pytest.approx(np.array([[0, 0], [15, 5e3]]))


def test_rows_without_side_or_cohort_are_not_drawn(results):
    history = results["liquidation_history"].iloc[:1].assign(side=None)
    bars = tk.plots.liquidation_history(history).patches
    assert not any(bar.get_height() for bar in bars)
    cohorts = results["builder_cohorts"].assign(cohort=pd.NaT)
    assert "no data" in alt(tk.plots.builder_cohorts(cohorts))


def test_trip_returns_mark_liquidations():
    trips = pd.DataFrame(
        {"side": ["long", "short"], "status": ["closed", "liquidated"], "forced": [False, True]}
        | {"duration_hours": [2.0, 5.0], "return_": [0.01, -0.3], "net": [5.0, -90.0]}
    )
    figure = draw_figure("trip_returns", trips)
    forced = figure.axes[0].lines[2]
    assert forced.get_label() == "closed by the exchange (1)"
    assert np.column_stack(forced.get_data()) == pytest.approx(np.array([[5, -30]]))
    assert "The exchange closed 1 of them." in alt(figure)
    plain = draw_figure("trip_returns", trips.drop(columns="forced"))
    assert "exchange" not in alt(plain)


def test_rare_statuses_share_a_column():
    names = ["filled", "canceled", "open", "oracleRejected", "badAloPxRejected"]
    names += ["marginCanceled", "siblingFilledCanceled", "delistedCanceled", "selfTradeCanceled"]
    names += ["minTradeNtlRejected", "perpMarginRejected"]
    orders = list(range(20, 20 - len(names), -1))
    rows = pd.DataFrame({"before": "(placed)", "after": names, "orders": orders})
    ax = tk.plots.order_transitions(rows.assign(share=rows["orders"] / rows["orders"].sum()))
    columns = [text.get_text() for text in ax.get_xticklabels()]
    assert columns[-1] == "no change"
    assert {"2 other canceled", "2 other rejected"} <= set(columns)
    cells = {text.get_text() for text in ax.texts}
    assert {str(orders[7] + orders[8]), str(orders[9] + orders[10])} <= cells


def test_waterfall_labels_do_not_overlap(results):
    ax = tk.plots.waterfall(results["waterfall"])
    render_png(ax.figure)
    boxes = [text.get_window_extent() for text in ax.texts]
    boxes += [label.get_window_extent() for label in ax.get_xticklabels()]
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
    assert not any(a.overlaps(b) for a, b in pairs)


def test_waterfall_says_funding_not_covered(fills):
    ax = tk.plots.waterfall(pnl.attribution(fills))
    assert "not\ncovered" in list_texts(ax.figure)
    assert "net, without\nfunding" in list_texts(ax.figure)
    assert "funding not covered" in alt(ax)


def test_cumulative_pnl_has_line_per_account():
    """Each account has one line, which ends at its net, fees and funding included."""
    times = pd.to_datetime([0, 3600, 7200], unit="s", utc=True)
    rows = pd.DataFrame(
        {
            "user": ["0x" + "a" * 40, "0x" + "b" * 40, "0x" + "a" * 40],
            "hour": times[[0, 1, 2]],
            "closed_pnl": [10.0, -7.0, 4.0],
            "funding": [1.0, None, -0.5],
            "trading_fee": [-2.0, -1.0, 0.0],
            "builder_fee": [0.0, 0.0, -0.25],
            "deployer_fee": 0.0,
            "rebate": 0.0,
        }
    )
    ax = tk.plots.cumulative_pnl(rows)
    labels = [line.get_label() for line in ax.lines[:2]]
    assert labels == ["0xaaaaaa…aaaa +12.25", "0xbbbbbb…bbbb \N{MINUS SIGN}8.00"]
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[0, 9, 12.25], [0, -8]]
    assert "lie between \N{MINUS SIGN}8.00 and 12.25" in alt(ax)


def test_curve_shows_thin_books(results):
    curve = results["slippage_curve"]
    assert (curve["missing_share"] == 1).any()
    figure = tk.plots.slippage_curve(curve)
    bars = [patch.get_height() for patch in figure.axes[1].patches]
    assert bars == curve.sort_values(["side", "amount_usd"])["missing_share"].tolist()
    assert "too thin in at most 100%" in alt(figure)


def test_fit_line_is_power_law(results):
    fit = results["slippage_fit"]
    half, a, k, _ = fit.params.loc[fit.params["side"] == "buy", "estimate"]
    lines = fit.plot().axes[0].get_lines()
    law = next(line for line in lines if str(line.get_label()).startswith("buy: exponent"))
    usd, bps = law.get_xdata(), law.get_ydata()
    np.testing.assert_allclose(bps, half + a * (np.asarray(usd) / 1e5) ** k)
    # The largest sizes have no median since the books were too thin; triangles mark them.
    without_median = fit.samples[(fit.samples["side"] == "buy") & fit.samples["q50"].isna()]
    triangles = [line for line in lines if line.get_marker() == "^"]
    assert len(triangles[0].get_xdata()) == len(without_median) > 0


def test_six_validators_have_six_colours(results):
    ranks = results["validator_ranks"]
    lines = draw_figure("validator_ranks", ranks).axes[0].lines
    assert ranks.ranks["validator"].nunique() == 6
    assert len({line.get_color() for line in lines if len(line.get_xdata()) > 2}) == 6


def test_adherence_points_show_progress(results):
    rows = results["twap_adherence"].dropna(subset="elapsed")
    lines = tk.plots.twap_adherence(results["twap_adherence"]).lines[1:]
    points = sorted(point for line in lines for point in line.get_xydata().tolist())
    assert points == sorted(rows[["elapsed", "progress"]].to_numpy().tolist())


def test_pressure_label_names_unpriced_markets(trading_frames):
    unpriced = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"].iloc[:0])
    assert "no data" in alt(tk.plots.twap_pressure(unpriced))
    priced = tk.twaps.pressure(trading_frames["twaps"], trading_frames["marks"])
    market = priced.loc[priced["orders"] > 0, "market"].iloc[0]
    marks = trading_frames["marks"][trading_frames["marks"]["name"] != market]
    ax = tk.plots.twap_pressure(tk.twaps.pressure(trading_frames["twaps"], marks))
    assert f"without a price: {market}" in ax.get_xlabel()
    assert "1 without a price" in alt(ax)


def test_names_of_orders_do_not_collide():
    rows = pd.DataFrame({"market": list("ABCDEF"), "is_buy": True, "elapsed": 0.5, "progress": 0.4})
    texts = tk.plots.twap_adherence(rows).texts
    heights = sorted(text.get_position()[1] for text in texts if text.get_text() in "ABCDEF")
    assert len(heights) == 6
    assert min(upper - lower for lower, upper in pairwise(heights)) > 0.04


def test_names_of_orders_stay_in_the_figure():
    """An order ahead of its schedule has its name at the left, except near the axis."""
    rows = pd.DataFrame(
        {"market": ["eqx:GOLD", "BTC"], "is_buy": True, "elapsed": [0.03, 0.6],
         "progress": [0.04, 0.7]}
    )  # fmt: skip
    places = {
        text.get_text(): text.get_position()[0] for text in tk.plots.twap_adherence(rows).texts
    }
    assert places["eqx:GOLD"] > 0.03
    assert places["BTC"] < 0.6


def test_rounded_zero_has_no_sign():
    names = ("vs_vwap_bps", "vs_twap_bps", "vs_arrival_bps")
    rows = pd.DataFrame({name: [-0.01] for name in names})
    texts = [text.get_text() for text in tk.plots.twap_quality(rows).texts]
    assert texts == ["0.0"] * 3
