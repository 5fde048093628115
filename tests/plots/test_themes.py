"""Settings of all figures, and figures in the theme of the notebook."""

import base64
import io
import re

import pytest
from matplotlib.image import imread

import toolkit as tk
from tests.plots.figures import draw_figure, list_texts
from toolkit.plots.figures import root_figure


@pytest.fixture(autouse=True)
def _default_settings():
    yield
    tk.plots.use()


def pictures(html):
    return [
        imread(io.BytesIO(base64.b64decode(data))) for data in re.findall(r"base64,([^\"]+)", html)
    ]


def test_own_colours_and_shades_stay(results):
    ax = tk.plots.waterfall(results["waterfall"])
    (line,) = ax.plot([0, 1], [0, 1], color="#e69f00")
    points = ax.scatter([0, 1], [0, 1], c=[1.0, 2.0])
    ax._repr_html_()
    assert line.get_color() == "#e69f00"
    assert points.get_cmap().name == "viridis"


def test_notebook_has_both_themes(results):
    html = tk.plots.waterfall(results["waterfall"])._repr_html_()
    light, dark = pictures(html)
    assert light.shape == dark.shape
    # Where the theme is not known, the light picture is readable by itself.
    assert light[..., 3].min() == 1
    assert dark[..., 3].min() == 0
    seen = (dark[..., 3] == 1) & (light[..., :3].mean(axis=-1) < 0.9)
    assert dark[..., :3][seen].mean() > light[..., :3][seen].mean()
    assert "[data-jp-theme-light='false']" in html
    (named,) = pictures(tk.plots.waterfall(results["waterfall"], theme="dark")._repr_html_())
    assert named[..., 3].min() == 1


def test_use_sets_theme_titles_and_dpi(results):
    rows = results["return_calendar"]
    plain = draw_figure("return_calendar", rows)
    assert "return of a day, %" in list_texts(plain)
    tk.plots.use(theme="dark", titles=False, dpi=96)
    drawn = tk.plots.return_calendar(rows)
    assert "return of a day, %" not in list_texts(root_figure(drawn))
    (picture,) = pictures(drawn._repr_html_())
    assert picture.shape[1] == int(96 * 7.2)
    for options, named in (({"theme": "blue"}, "'light' or 'dark'"), ({"dpi": 5}, "50 to 1200")):
        with pytest.raises(ValueError, match=named):
            tk.plots.use(**options)
