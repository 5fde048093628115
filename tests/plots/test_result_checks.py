"""A figure that gets something else than its result names the helper that makes the result."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit import MissingColumns, plots

FIGURES = sorted(set(plots.__all__) - {"alt", "use"})


def test_figure_names_its_helper():
    for name in FIGURES:
        with pytest.raises(TypeError, match=rf"^{name} draws the result of tk\.\w+\.\w+"):
            getattr(plots, name)(None)
    with pytest.raises(TypeError, match="Axes"):
        plots.order_mix(pd.DataFrame(), ax=5)
    with pytest.raises(TypeError, match=r"order_mix\(\) .*'colour'"):
        plots.order_mix(pd.DataFrame(), colour="red")


def test_plot_of_wrong_frame_names_helper():
    rows = pd.DataFrame({"coin": ["BTC"]})
    fills = pd.DataFrame({"coin": ["BTC"] * 2, "side": "B", "closed_pnl": 0.0})
    for draw, frame, named in (
        (plots.toxicity, rows, r"tk\.execution\.toxicity"),
        (plots.slippage_fit, rows, r"tk\.slippage\.fit; .* groups"),
        (plots.slippage_heatmap, fills, r"tk\.slippage\.heatmap; .* 'bps'"),
        (plots.waterfall, fills, r"tk\.pnl\.attribution"),
        (plots.equity_curve, fills, r"tk\.pnl\.equity; .*'realised', 'pnl'"),
    ):
        with pytest.raises(MissingColumns, match=named):
            draw(frame)


def twice(frame, **values):
    """Return the rows of a frame for each of several accounts, coins or markets."""
    (column, names), *_ = values.items()
    return pd.concat([frame.assign(**{column: name}) for name in names])


def test_plot_of_several_groups_is_refused(results, market_frames, trading_frames):
    samples, orders = market_frames["samples"], trading_frames["orders"]
    curve, levels = results["slippage_curve"], results["liquidation_map"]
    attributed = results["cumulative_pnl"]
    coins = [f"C{number}" for number in range(5)]
    markout = tk.execution.markout(market_frames["fills"], horizons=["1h"], by="coin")
    fit = tk.slippage.fit(twice(samples, coin=coins), draws=2)
    for call, named in (
        (lambda: plots.equity_curve(twice(results["equity_curve"], user="ab")), "one account"),
        (lambda: plots.positions_over_time(twice(results["positions_over_time"], user="ab")), "2"),
        (lambda: plots.depth_profile(twice(results["depth_profile"], coin="XY")), "one market"),
        (markout.plot, "6 groups"),
        (lambda: plots.liquidation_map(twice(levels, coin=["BTC", "ODD"])), "one coin"),
        (lambda: plots.order_transitions(tk.orders.transitions(orders, by="coin")), r"\['coin'\]"),
        (lambda: plots.order_mix(tk.orders.mix(orders, by="coin")), r"\['coin'\]"),
        (lambda: plots.waterfall(pd.concat([results["waterfall"]] * 2)), "one row"),
        (lambda: plots.cumulative_pnl(results["funding_by_coin"]), "by="),
        (lambda: plots.funding_over_time(results["funding_by_coin"]), "by="),
        (lambda: plots.cumulative_pnl(twice(attributed, user=[*"abcdefg"])), "6 accounts"),
        (lambda: plots.slippage_curve(twice(curve, coin=coins)), "4 coins"),
        (fit.plot, "4 coins"),
        (lambda: plots.slippage_heatmap(tk.slippage.heatmap(samples)), "one coin and amount"),
        (lambda: plots.slippage_heatmap(results["slippage_heatmap"], side="both"), "side"),
    ):
        with pytest.raises(ValueError, match=named):
            call()
