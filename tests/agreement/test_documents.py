"""The generated documents are fresh, and the public surface is documented."""

import importlib
import inspect
import pkgutil
import re
import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import toolkit
from tests.scale import case as cases
from toolkit.contract import reference
from toolkit.contract.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")
MODULES = sorted(
    one.name for one in pkgutil.walk_packages(toolkit.__path__, "toolkit.") if one.name
)
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"]
PAGES += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def documents() -> dict[str, str]:
    made: dict[str, str] = GENERATE["documents"]()
    return made


def test_documents_are_fresh(documents: dict[str, str]) -> None:
    stale = [
        path
        for path, text in documents.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    ]
    assert stale == [], "run: python docs/generate.py"


def test_no_document_of_a_topic_that_is_gone(documents: dict[str, str]) -> None:
    there = {f"docs/reference/{path.name}" for path in (ROOT / "docs/reference").iterdir()}
    assert there == {path for path in documents if path.startswith("docs/reference/")}


def test_readme_has_the_table_of_operations() -> None:
    assert GENERATE["readme"]() == (ROOT / "README.md").read_text()
    table = reference.operations_table("docs/reference/")
    for operation in OPERATIONS.values():
        assert f"(docs/reference/{operation.topic}.md#{operation.function})" in table


def test_every_operation_has_its_place_in_the_reference(documents: dict[str, str]) -> None:
    for operation in OPERATIONS.values():
        page = documents[f"docs/reference/{operation.topic}.md"]
        assert page.count(f"\n## {operation.function}\n") == 1
        for one in operation.parameters:
            assert f"| `{one.python}` | `{one.name}` |" in page


def test_links_lead_somewhere(documents: dict[str, str]) -> None:
    assert "docs/assumptions.md" in documents
    assert "(../assumptions.md)" in documents["docs/reference/index.md"]
    for topic in reference.topics():
        assert f"docs/reference/{topic}.md" in documents


def test_every_helper_stands_in_the_table_of_engines(documents: dict[str, str]) -> None:
    page = documents["docs/analysis.md"]
    for topic in cases.topics():
        module = getattr(toolkit, topic)
        assert f"\n## `tk.{topic}`\n" in page
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                assert f"\n| `{name}` |" in page


def test_assumptions_are_gathered_from_comments_and_docstrings() -> None:
    source = '''
def f():
    """Do it.

    ASSUMED: a sentence in
    a docstring.

    More.
    """
    # ASSUMED: a comment over
    # two lines.
    return 1  # ASSUMED: a comment behind code.
'''
    assert list(GENERATE["assumed_in"](source)) == [
        "a sentence in a docstring.",
        "a comment over two lines.",
        "a comment behind code.",
    ]


def test_every_assumption_of_the_code_is_listed(documents: dict[str, str]) -> None:
    listed = documents["docs/assumptions.md"].count("\n- ")
    marked = sum(path.read_text().count("ASSUMED:") for path in (ROOT / "toolkit").rglob("*.py"))
    assert listed == marked


def test_insert_refuses_a_text_without_markers() -> None:
    with pytest.raises(ValueError, match="operations:begin"):
        reference.insert("no markers", "operations", "table")


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_there_and_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    exported = getattr(module, "__all__", [])
    assert list(exported) == sorted(set(exported), key=list(exported).index)
    for one in exported:
        value: Any = getattr(module, one)
        if (inspect.isfunction(value) or inspect.isclass(value)) and not _is_alias(value):
            assert (inspect.getdoc(value) or "").strip(), f"{name}.{one} has no docstring"


def _is_alias(value: Any) -> bool:
    return not str(getattr(value, "__module__", "")).startswith("toolkit")


def test_public_surface() -> None:
    assert dir(toolkit) == toolkit.__all__
    for one in toolkit.__all__:
        assert getattr(toolkit, one) is not None
    assert toolkit.__version__ == version("exchange-toolkit")


@pytest.mark.parametrize("path", PAGES)
def test_links_between_files_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text)
    for file, heading in links:
        page = (ROOT / path).parent / file if file else ROOT / path
        assert page.exists()
        assert not heading or heading in _anchors(page.read_text())


def _anchors(text: str) -> set[str]:
    """Give the anchors of a page's headings, as GitHub writes them."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("path", PAGES)
def test_files_that_are_named_are_there(path: str) -> None:
    named = re.findall(
        r"`((?:toolkit|tests|docs|notebooks|data)/[\w./-]+)`", (ROOT / path).read_text()
    )
    made = ("data/archive", "data/cache", "notebooks/NN_topic.py")
    assert [one for one in named if not (ROOT / one).exists() and one not in made] == []


@pytest.mark.parametrize("path", PAGES)
def test_every_row_of_a_table_has_the_cells_of_its_head(path: str) -> None:
    prose = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", prose, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_the_sample_is_read_as_its_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "data/README.md").read_text(), re.M | re.S
    )
    names: dict[str, Any] = {}
    exec(compile(block, "data/README.md", "exec"), names)
    assert names["sample"]["request"]["type"] == "userFillsByTime"


def test_the_picture_of_the_example_is_the_same_each_time():
    code = (
        "import toolkit as tk\n"
        "session = tk.local(seed=7, size='tiny', default=False)\n"
        "fills = tk.user_fills(session.world['users'][0], session=session)\n"
        "tk.plots.waterfall(tk.pnl.attribution(fills)).savefig('waterfall.svg')\n"
        "print('drawn')\n"
    )
    output, picture = GENERATE["run"](code)
    assert output == "drawn"
    assert picture == GENERATE["run"](code)[1]
    assert "<dc:date>" not in picture
    assert "clipPath" in picture
