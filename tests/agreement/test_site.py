"""The site has a place for every page, and a section for every public name."""

import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / "docs" / "build_site.py"), run_name="build_site")
API = SITE["api_pages"]


@pytest.fixture(scope="module")
def pages():
    """Return the pages that need no figures and no notebooks."""
    shorts = [name.removeprefix("plots.") for name in API.public_names() if "plots." in name]
    pictures = {short: "figures/none.png" for short in shorts if short not in API.NO_FIGURES}
    texts = SITE["repository_pages"]() | API.api_pages()
    texts["docs/reference/figures.md"] = API.figures_page(pictures)
    texts["docs/reference/command_line.md"] = SITE["command_pages"].command_page()
    return texts | SITE["tutorial_pages"](run=False)


def anchors(text):
    named = re.findall(r"\{ #(\S+) \}$", text, re.MULTILINE)
    return {*named, *re.findall(r"^## (\w+)$", text, re.MULTILINE)}


def test_every_public_name_has_a_section(pages):
    places = SITE["name_places"](pages)
    assert places.keys() >= API.public_names().keys()
    for name, place in places.items():
        path, _, anchor = place.partition("#")
        assert not anchor or anchor in anchors(pages[path]), name


def test_sections_have_parameters_and_example(pages):
    page = pages["docs/reference/tk_pnl.md"]
    section = page.split("## attribution { #attribution }")[1].split("\n## ")[0]
    for part in ("**Parameters**", "**Returns**", "**Example**", "```pycon", "- `net`"):
        assert part in section


def test_operation_has_an_example(pages):
    section = pages["docs/reference/fills.md"].split("### Example of user_fills_by_time\n")[1]
    assert ">>> fills = tk.user_fills_by_time(" in section.split("\n### ")[0]


def test_every_page_is_in_navigation(pages):
    def listed(entry):
        if isinstance(entry, str):
            return {entry}
        entries = entry.values() if isinstance(entry, dict) else entry
        return set().union(*map(listed, entries))

    assert listed(SITE["navigation"](pages)) == pages.keys()


def test_every_command_has_a_section(pages):
    page = pages["docs/reference/command_line.md"]
    for command in ("toolkit fetch userFillsByTime", "toolkit archive refresh", "toolkit doctor"):
        assert re.search(rf"^##+ {command}$", page, re.MULTILINE)


def test_links_of_repository_become_links_of_site(pages):
    home = SITE["link_page"]("index.md", pages["index.md"], {}, pages.keys())
    assert "](docs/fetching.md#why-a-pull-is-complete)" in home
    assert "](notebooks/01_quickstart.md)" in home
    text = "[a](../environment.yml) `tk.meta()`"
    place = {"meta": "docs/reference/market.md#meta"}
    linked = SITE["link_page"]("docs/x.md", text, place, pages.keys())
    assert linked == "a [`tk.meta()`](reference/market.md#meta)"


def test_missing_section_is_an_error():
    with pytest.raises(SystemExit, match="no section for"):
        SITE["check_public_names"]({})


def test_modules_are_not_listed_as_values():
    names = API.public_names()
    assert isinstance(names["pnl"], ModuleType)
    assert callable(names["pnl.attribution"])
