"""A figure that gets something else than its result names the helper that makes the result."""

import pandas as pd
import pytest

from toolkit import MissingColumns, plots

FIGURES = sorted(set(plots.__all__) - {"alt", "use"})


@pytest.mark.parametrize("name", FIGURES)
def test_figure_names_its_helper(name):
    with pytest.raises(TypeError, match=rf"^{name} draws the result of tk\.\w+\.\w+, not None$"):
        getattr(plots, name)(None)


def test_plot_of_wrong_frame_names_helper():
    rows = pd.DataFrame({"coin": ["BTC"]})
    with pytest.raises(MissingColumns, match=r"tk\.execution\.toxicity; this DataFrame lacks"):
        plots.toxicity(rows)
    with pytest.raises(MissingColumns, match=r"tk\.slippage\.fit; this DataFrame lacks groups"):
        plots.slippage_fit(rows)  # type: ignore[arg-type]
    fills = pd.DataFrame({"coin": ["BTC"] * 2, "side": "B", "closed_pnl": 0.0})
    with pytest.raises(MissingColumns, match=r"tk\.slippage\.heatmap; this DataFrame lacks 'bps'"):
        plots.slippage_heatmap(fills)
    with pytest.raises(MissingColumns, match=r"tk\.pnl\.attribution; this DataFrame lacks"):
        plots.waterfall(fills)


def test_wrong_axes_argument_is_refused():
    with pytest.raises(TypeError, match="ax is the Axes of matplotlib to draw on, not 5"):
        plots.order_mix(pd.DataFrame(), ax=5)  # type: ignore[arg-type]
