"""The pages of all reports load nothing, and name their data."""

import base64
import re

import pytest

from tests.reports.page_content import PageContent
from tests.reports.pages import PARAMETERS, report_page

FIGURES = {"wallet": 8, "market": 7, "builder": 4, "market_quality": 1, "comparison": 2}
ADDRESS = re.compile(r"(?:https?:)?//\w")


@pytest.mark.parametrize("name", PARAMETERS)
def test_page_is_self_contained(name):
    made = report_page(name)
    page = PageContent(made.html)
    assert len(page.images) == FIGURES[name] == page.tags.count("source")
    for image in page.images:
        assert len(image["alt"]) > 40
        assert "Simulated data: yes." in image["alt"]
    assert all(entry.startswith("data:image/svg+xml;base64,") for entry in page.loaded)
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert not {"script", "link", "iframe", "object", "base"} & set(page.tags)
    assert not ADDRESS.search(made.html)
    assert not re.search(r"url\(|@import", made.html)
    assert len(set(page.ids)) == len(page.ids)
    assert {link[0] for link in page.links} == {"#"}
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "Warning" not in made.html
    assert all(source["digest"] in made.html for source in made.facts["sources"])
    assert made.html.endswith("</html>\n")
    for uri in page.loaded:
        svg = base64.b64decode(uri.partition(",")[2]).decode()
        assert "<script" not in svg
        assert not re.search(r"(?:href|src)=\"(?!#|data:image/png)", svg)
        assert not re.search(r"url\((?!#)", svg)
        assert not re.search(r"20\d\d-\d\d-\d\dT", svg)


def test_parameters_name_example_account(user):
    assert PARAMETERS["wallet"] == {"user": user}
