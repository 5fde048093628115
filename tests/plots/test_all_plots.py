"""Every plot: both themes, no data, one row, given axes, and its alternative text."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from tests.plots.figures import HOSTILE_NAME, draw_figure, list_texts, render_png
from toolkit import plots
from toolkit.plots import alt
from toolkit.plots.notebook import NotebookAxes, NotebookFigure

PLOTS = sorted(set(tk.plots.__all__) - {"alt", "use"})
PLOTS_WITH_PANELS = (
    "basis",
    "positioning",
    "cascade",
    "equity_curve",
    "growth_curve",
    "impact",
    "slippage_curve",
    "slippage_fit",
)
PLOTS_OF_ESTIMATES = (
    "basis",
    "cascade",
    "fill_times",
    "impact",
    "lifetime_value",
    "markout",
    "resilience",
    "shortfall",
    "skill",
    "slippage_fit",
    "spreads",
    "validator_ranks",
)
"""Plots of results that have their numbers in `params`."""
PLOTS_OF_FRAMES = [name for name in PLOTS if name not in PLOTS_OF_ESTIMATES]

EVERY_PLOT = pytest.mark.parametrize("name", PLOTS)
EVERY_FRAME_PLOT = pytest.mark.parametrize("name", PLOTS_OF_FRAMES)
BOTH_THEMES = pytest.mark.parametrize("theme", ["light", "dark"])


def test_dir_lists_public_names():
    assert dir(plots) == sorted(plots.__all__)


@BOTH_THEMES
@EVERY_PLOT
def test_plot_marks_simulated_data(name, theme, results):
    figure = draw_figure(name, results[name], theme=theme)
    assert render_png(figure)[:4] == b"\x89PNG"
    assert "simulated" in list_texts(figure)
    assert alt(figure).endswith("Simulated data: yes.")
    assert len(alt(figure)) > 60


@EVERY_FRAME_PLOT
def test_plot_of_real_data_is_unmarked(name, results):
    real = results[name].copy()
    real.attrs = {}
    figure = draw_figure(name, real)
    assert "simulated" not in list_texts(figure)
    assert alt(figure).endswith("Simulated data: no.")


@BOTH_THEMES
@EVERY_PLOT
def test_empty_result_says_no_data(name, theme, empty_results):
    figure = draw_figure(name, empty_results[name], theme=theme)
    assert render_png(figure)
    assert "no data" in list_texts(figure)
    assert "no data" in alt(figure)


@EVERY_FRAME_PLOT
def test_empty_frame_says_no_data(name):
    figure = draw_figure(name, pd.DataFrame())
    assert render_png(figure)
    assert "no data" in list_texts(figure)
    assert "no data" in alt(figure)


@EVERY_FRAME_PLOT
def test_single_row_is_drawn(name, results):
    assert render_png(draw_figure(name, results[name].iloc[:1]))


@EVERY_PLOT
def test_plot_returns_given_axes(name, results):
    figure = Figure()
    ax = figure.add_subplot()
    drawn = getattr(tk.plots, name)(results[name], ax=ax)
    assert drawn is ax
    assert figure.axes == [ax]
    assert alt(drawn) == alt(figure)
    assert alt(drawn)


@EVERY_PLOT
def test_plot_returns_axes_or_figure(name, results, empty_results):
    """The type does not depend on the data, and pyplot does not keep the figure open."""
    expected = NotebookFigure if name in PLOTS_WITH_PANELS else NotebookAxes
    for result in (results[name], empty_results[name]):
        drawn = getattr(tk.plots, name)(result)
        assert isinstance(drawn, expected)
        assert alt(drawn)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", ["waterfall", "slippage_curve"])
def test_notebook_shows_plot(name, results):
    html = getattr(tk.plots, name)(results[name])._repr_html_()
    assert html.count("<img") == 2  # one for each theme of the notebook
    assert "Simulated data: yes." in html


def test_own_axes_have_no_html(results):
    figure = Figure()
    drawn = tk.plots.waterfall(results["waterfall"], ax=figure.add_subplot())
    assert not hasattr(drawn, "_repr_html_")


def test_html_escapes_alternative_text(profit):
    ax = tk.plots.funding_by_coin(profit["funding_by_coin"].assign(coin="<script>"))
    html = ax._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@EVERY_PLOT
def test_unknown_theme_is_refused(name, results):
    with pytest.raises(ValueError, match="theme"):
        draw_figure(name, results[name], theme="pink")


@EVERY_PLOT
def test_background_can_be_transparent(name, results):
    assert draw_figure(name, results[name], transparent=True).get_facecolor()[3] == 0
    assert draw_figure(name, results[name]).get_facecolor()[3] == 1


@EVERY_PLOT
def test_plot_does_not_change_input(name, results):
    frame = results[name].params if name in PLOTS_OF_ESTIMATES else results[name]
    before = frame.copy(deep=True)
    draw_figure(name, results[name])
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("name", [name for name in PLOTS if name not in ("spreads", "waterfall")])
def test_x_axis_has_label(name, results):
    """In the other two plots each bar has a label."""
    assert any(ax.get_xlabel() for ax in draw_figure(name, results[name]).axes)


def test_account_plots_have_axis_labels(accounts):
    for name, result in accounts.items():
        figure = draw_figure(name, result)
        assert all(ax.get_ylabel() for ax in figure.axes)
        assert figure.axes[-1].get_xlabel()


@pytest.mark.parametrize("name", PLOTS_OF_ESTIMATES)
def test_plot_method_equals_plot_function(name, results):
    assert alt(results[name].plot()) == alt(draw_figure(name, results[name]))
    dark = results[name].plot(theme="dark")
    figure = dark if isinstance(dark, Figure) else dark.figure
    assert figure.get_facecolor()[0] < 0.5
    ax = Figure().add_subplot()
    assert results[name].plot(ax) is ax


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("builder_routing", "user"),
        ("depth_profile", "coin"),
        ("funding_accrual", "coin"),
        ("funding_by_coin", "coin"),
        ("order_mix", "status"),
        ("slippage_curve", "coin"),
        ("slippage_heatmap", "coin"),
        ("twap_pressure", "market"),
        ("validator_yields", "validator"),
    ],
)
def test_markup_in_names_is_shown_as_text(name, column, results):
    rows = results[name]
    if name in ("order_mix", "twap_pressure", "validator_yields", "builder_routing"):
        rows = rows.iloc[:1]
    figure = draw_figure(name, rows.assign(**{column: HOSTILE_NAME}))
    assert render_png(figure)
    assert any(HOSTILE_NAME in text for text in list_texts(figure))


@pytest.mark.parametrize("name", ["positions_over_time", "liquidation_map"])
def test_alternative_text_has_plain_names(name, accounts):
    figure = draw_figure(name, accounts[name].assign(coin=HOSTILE_NAME))
    assert render_png(figure)
    assert HOSTILE_NAME in alt(figure)
