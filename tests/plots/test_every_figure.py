"""What holds for every figure: both themes, nothing, one row, given axes; and what it says."""

import pandas as pd
import pytest
from matplotlib.figure import Figure

import toolkit as tk
from tests.plots.figures import drawn, png, texts
from toolkit.plots import alt

FIGURES = sorted(set(tk.plots.__all__) - {"alt"})
ESTIMATES = (
    "fill_times",
    "lifetime_value",
    "markout",
    "resilience",
    "slippage_fit",
    "spreads",
    "validator_ranks",
)
"""Those that draw what a helper estimated, which has its numbers in `params`."""

EVERY = pytest.mark.parametrize("name", FIGURES)
OF_A_FRAME = pytest.mark.parametrize("name", [name for name in FIGURES if name not in ESTIMATES])
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])


@THEMES
@EVERY
def test_draws_in_both_themes_and_is_marked_as_simulated(name, theme, results):
    figure = drawn(name, results[name], theme=theme)
    assert png(figure)[:4] == b"\x89PNG"
    assert "simulated" in texts(figure)
    assert alt(figure).endswith("Simulated data: yes.")
    assert len(alt(figure)) > 60


@OF_A_FRAME
def test_marks_simulated_data_only(name, results):
    real = results[name].copy()
    real.attrs = {}
    figure = drawn(name, real)
    assert "simulated" not in texts(figure)
    assert alt(figure).endswith("Simulated data: no.")


@THEMES
@EVERY
def test_draws_nothing(name, theme, nothing):
    figure = drawn(name, nothing[name], theme=theme)
    assert png(figure)
    assert "no data" in texts(figure)
    assert "no data" in alt(figure)


@OF_A_FRAME
def test_draws_a_frame_without_columns(name):
    figure = drawn(name, pd.DataFrame())
    assert png(figure)
    assert "no data" in texts(figure)
    assert "no data" in alt(figure)


@OF_A_FRAME
def test_draws_one_row(name, results):
    assert png(drawn(name, results[name].iloc[:1]))


@EVERY
def test_draws_on_given_axes(name, results):
    figure = Figure()
    ax = figure.add_subplot()
    assert drawn(name, results[name], ax=ax) is figure
    assert figure.axes == [ax]
    assert alt(figure)


@EVERY
def test_refuses_an_unknown_theme(name, results):
    with pytest.raises(ValueError, match="theme"):
        drawn(name, results[name], theme="pink")


@EVERY
def test_background_may_be_left_out(name, results):
    assert drawn(name, results[name], transparent=True).get_facecolor()[3] == 0
    assert drawn(name, results[name]).get_facecolor()[3] == 1


@EVERY
def test_leaves_its_input_alone(name, results):
    frame = results[name].params if name in ESTIMATES else results[name]
    before = frame.copy(deep=True)
    drawn(name, results[name])
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("spreads", "waterfall")])
def test_says_what_lies_along_x(name, results):
    """Where bars stand instead, each says what it is."""
    assert any(ax.get_xlabel() for ax in drawn(name, results[name]).axes)


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_draw_themselves(name, results):
    assert alt(results[name].plot()) == alt(drawn(name, results[name]))
    assert results[name].plot(theme="dark").get_facecolor()[0] < 0.5
