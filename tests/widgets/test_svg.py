"""SVG figures have the colours of the page's theme, and an alternative text."""

import re

import pandas as pd
import pytest

from toolkit import plots
from toolkit.plots import figures
from toolkit.widgets import view_html
from toolkit.widgets.svg import draw_svg

SUMS = pd.DataFrame(
    {"coin": ["BTC", 'ETH<b>"'], "paid": [-2.0, 0.0], "received": [0.5, 1.0], "net": [-1.5, 1.0]}
)


@pytest.fixture(scope="module")
def drawn():
    return draw_svg(plots.funding_by_coin, SUMS)


def test_svg_has_alternative_text(drawn):
    assert 'role="img" aria-label="Funding by coin in USD, net' in drawn
    assert "ETH&lt;b&gt;&quot;" in drawn
    assert "<b>" not in drawn


def test_svg_has_no_fixed_colours(drawn):
    assert set(re.findall(r"#[0-9a-f]{6}", drawn)) == set()
    used = set(re.findall(r"var\((--tk-\w+)\)", drawn))
    assert used
    for theme in ("light", "dark"):
        named = {f"--tk-{name}" for name in figures.COLOUR_NAMES}
        assert used <= named
        assert f"--tk-text:{figures.get_theme(theme).text};" in view_html.STYLE


def test_svg_ids_are_unique(drawn):
    other = draw_svg(plots.funding_by_coin, SUMS.assign(net=[-1.0, 3.0]))
    ids = [set(re.findall(r' id="([^"]+)"', item)) for item in (drawn, other)]
    assert ids[0].isdisjoint(ids[1])
    for entry, known in zip((drawn, other), ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", entry)) <= known
        assert set(re.findall(r'href="#([^"]+)"', entry)) <= known


def test_svg_has_no_links(drawn):
    assert re.findall(r'(?:src|href)="(?!#)', drawn) == []
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", drawn)
