"""Every plot: both themes, no data, one row, given axes, and its alternative text."""

from functools import partial

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import toolkit as tk
from tests.plots.figures import HOSTILE_NAME, draw_figure, list_texts, render_png
from toolkit.plots import alt, figures

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
    "fill_probability",
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


UNCOLOURED = ("none", "auto", "face", "inherit")
COLOURS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def list_colours(figure):
    """Return the colours of each visible artist of a figure, and the ends of its shades."""
    covered = [ax.patch for ax in figure.findobj(Axes) if ax not in figure.axes]  # by a colour bar
    found = []
    for artist in figure.findobj(lambda artist: artist.get_visible()):
        if isinstance(artist, Axes | Figure) or artist in covered:
            continue
        getters = {name: getattr(artist, f"get_{name}", None) for name in COLOURS}
        if isinstance(artist, ScalarMappable) and artist.get_array() is not None:
            getters = {end: partial(artist.get_cmap(), end) for end in (0.0, 1.0)}
        elif isinstance(artist, Patch) and artist.get_linewidth() == 0:
            del getters["edgecolor"]
        for name, get in getters.items():
            if get is not None and not (isinstance(get(), str) and get() in UNCOLOURED):
                found.append((type(artist).__name__, name, to_rgba_array(get()).round(3).tolist()))
    return found


@pytest.mark.parametrize("name", PLOTS)
def test_plot_is_drawn(name, results):
    result = results[name]
    frame = result.params if name in PLOTS_OF_ESTIMATES else result
    before = frame.copy(deep=True)
    drawn = getattr(tk.plots, name)(result)
    assert isinstance(
        drawn, figures.NotebookFigure if name in PLOTS_WITH_PANELS else figures.NotebookAxes
    )
    assert len(alt(drawn)) > 60
    assert alt(drawn).endswith("Simulated data: yes.")
    figure = figures.root_figure(drawn)
    assert "simulated" in list_texts(figure)
    assert name in ("spreads", "waterfall") or any(ax.get_xlabel() for ax in figure.axes)
    assert figure.get_facecolor()[3] == 1
    assert draw_figure(name, result, transparent=True).get_facecolor()[3] == 0
    with pytest.raises(ValueError, match="theme"):
        draw_figure(name, result, theme="pink")
    own = Figure()
    ax = own.add_subplot()
    assert getattr(tk.plots, name)(result, ax=ax) is ax
    assert own.axes == [ax]
    assert alt(ax) == alt(own) != ""
    assert plt.get_fignums() == []  # pyplot does not keep a figure open
    assert render_png(figure)[:4] == b"\x89PNG"
    pd.testing.assert_frame_equal(frame, before)


def test_dark_plots_are_recoloured_light_plots(results):
    different = []
    for name in PLOTS:
        light, dark = (draw_figure(name, results[name], theme=theme) for theme in ("light", "dark"))
        assert dark.get_facecolor()[0] < 0.5
        figures.recolour_figure(light, figures.get_theme("light"), figures.get_theme("dark"))
        if list_colours(light) != list_colours(dark) or alt(light) != alt(dark):
            different.append(name)
    assert different == []


def no_data_is_said(name, result):
    drawn = getattr(tk.plots, name)(result)
    assert isinstance(
        drawn, figures.NotebookFigure if name in PLOTS_WITH_PANELS else figures.NotebookAxes
    )
    figure = figures.root_figure(drawn)
    is_drawn = bool(render_png(figure))
    return is_drawn and "no data" in list_texts(figure) and "no data" in alt(figure)


def test_empty_result_says_no_data(empty_results):
    given = [(name, empty_results[name]) for name in PLOTS]
    given += [(name, pd.DataFrame()) for name in PLOTS_OF_FRAMES]
    assert [name for name, result in given if not no_data_is_said(name, result)] == []


def test_single_row_of_real_data_is_drawn(results):
    marked = []
    for name in PLOTS_OF_FRAMES:
        row = results[name].iloc[:1].copy()
        row.attrs = {}
        figure = draw_figure(name, row)
        assert render_png(figure)
        if "simulated" in list_texts(figure) or not alt(figure).endswith("Simulated data: no."):
            marked.append(name)
    assert marked == []


def test_notebook_shows_plot(results):
    for name in ("waterfall", "slippage_curve"):
        html = getattr(tk.plots, name)(results[name])._repr_html_()
        assert html.count("<img") == 2  # one for each theme of the notebook
        assert "Simulated data: yes." in html
    drawn = tk.plots.waterfall(results["waterfall"], ax=Figure().add_subplot())
    assert not hasattr(drawn, "_repr_html_")  # axes of their own


def test_html_escapes_alternative_text(results):
    ax = tk.plots.funding_by_coin(results["funding_by_coin"].assign(coin="<script>"))
    html = ax._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_plot_method_equals_plot_function(results):
    for name in PLOTS_OF_ESTIMATES:
        assert alt(results[name].plot()) == alt(draw_figure(name, results[name]))
        dark = results[name].plot(theme="dark")
        figure = dark if isinstance(dark, Figure) else dark.figure
        assert figure.get_facecolor()[0] < 0.5
        ax = Figure().add_subplot()
        assert results[name].plot(ax) is ax


def test_markup_in_names_is_shown_as_text(results):
    columns = {
        "builder_routing": "user",
        "depth_profile": "coin",
        "funding_accrual": "coin",
        "funding_by_coin": "coin",
        "order_mix": "status",
        "slippage_curve": "coin",
        "slippage_heatmap": "coin",
        "twap_pressure": "market",
        "validator_yields": "validator",
    }
    for name, column in columns.items():
        rows = results[name]
        if name in ("order_mix", "twap_pressure", "validator_yields", "builder_routing"):
            rows = rows.iloc[:1]
        figure = draw_figure(name, rows.assign(**{column: HOSTILE_NAME}))
        assert render_png(figure)
        assert any(HOSTILE_NAME in text for text in list_texts(figure))
    for name in ("positions_over_time", "liquidation_map"):
        figure = draw_figure(name, results[name].assign(coin=HOSTILE_NAME))
        assert render_png(figure)
        assert HOSTILE_NAME in alt(figure)
