"""An exported notebook shows the views of its widgets."""

import re

import nbformat.v4 as nb
import pytest
from nbconvert import HTMLExporter

import toolkit as tk
from toolkit.widgets import live_monitor, slippage_explorer, wallet_explorer

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def bundles(exchange):
    user = tk.reports.example_account(exchange)
    parts = [
        slippage_explorer("BTC", period="1d", session=exchange),
        wallet_explorer(user, period="7d", session=exchange),
        live_monitor("BTC", session=exchange).look(),
    ]
    shown = [row._repr_mimebundle_() for row in parts]
    for item in parts:
        item.close()
    return shown


def test_mimebundle_has_widget_and_html(bundles):
    for bundle in bundles:
        assert VIEW in bundle
        assert bundle["text/plain"].startswith("tk.widgets.")


# nbconvert warns of cells without ids and of its own templates' languages; not ours to mend.
@pytest.mark.filterwarnings("ignore")
def test_exported_notebook_shows_views(bundles):
    cells = [
        nb.new_code_cell("explorer", outputs=[nb.new_output("display_data", data=bundle)])
        for bundle in bundles
    ]
    page, _ = HTMLExporter().from_notebook_node(nb.new_notebook(cells=cells))
    drawn = re.findall(r'<svg (?=[^>]*role="img")[^>]*aria-label="(\w+)', page)
    assert drawn == ["BTC", "Waterfall", "Cumulative", "Equity"]
    for words in ("BTC, by size", "By coin", "By day", "Positions now", "Depth of BTC"):
        assert f"<caption><span>{words}" in page
    assert page.count("Code of this view") == 3
    assert VIEW not in page


def test_exported_html_has_no_links(bundles):
    for bundle in bundles:
        html = re.sub(r'xmlns(:xlink)?="[^"]*"', "", bundle["text/html"])
        assert re.findall(r'(?:src|href)="(?!#|data:)|@import|<script|http', html) == []
