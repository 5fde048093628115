"""The generated documents are up to date, and the public surface has docstrings."""

import doctest
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
from toolkit.client import forget
from toolkit.contract.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")
REFERENCE_PAGES = GENERATE["reference_pages"]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(toolkit.__path__, "toolkit.") if module.name
)
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"]
PAGES += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.fixture(scope="module")
def documents():
    texts: dict[str, str] = GENERATE["documents"]()
    return texts


def test_reference_pages_doctests_pass():
    result = doctest.testmod(REFERENCE_PAGES)
    assert result.attempted
    assert not result.failed


def test_documents_are_fresh(documents):
    stale = [
        path
        for path, text in documents.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text() != text
    ]
    assert stale == [], "run: python docs/generate.py"


def test_reference_folder_has_only_generated_pages(documents):
    files = {f"docs/reference/{path.name}" for path in (ROOT / "docs/reference").iterdir()}
    assert files == {path for path in documents if path.startswith("docs/reference/")}


def test_index_has_operations_table(documents):
    for operation in OPERATIONS.values():
        link = f"({operation.topic}.md#{operation.function})"
        assert link in documents["docs/reference/index.md"]


def test_reference_lists_every_operation(documents):
    for operation in OPERATIONS.values():
        page = documents[f"docs/reference/{operation.topic}.md"]
        assert page.count(f"\n## {operation.function}\n") == 1
        for parameter in operation.parameters:
            assert f"| `{parameter.python}` | `{parameter.name}` |" in page


def test_topic_links_have_targets(documents):
    assert "docs/assumptions.md" in documents
    assert "(../assumptions.md)" in documents["docs/reference/index.md"]
    for topic in REFERENCE_PAGES.topic_names():
        assert f"docs/reference/{topic}.md" in documents


def test_engine_table_lists_every_helper(documents):
    page = documents["docs/analysis.md"]
    for topic in cases.topics():
        module = getattr(toolkit, topic)
        assert f"\n## `tk.{topic}`\n" in page
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                assert f"\n| `{name}` |" in page


def test_documents_state_number_of_helpers():
    modules = [getattr(toolkit, topic) for topic in cases.topics()]
    helpers = [
        name
        for module in modules
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    ]
    plots = set(toolkit.plots.__all__) - {"alt", "use"}
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"{len(helpers)} analysis helpers" in readme
    assert f"{len(plots)} plots" in readme
    assert f"**{len(helpers)} helpers**" in (ROOT / "docs/comparison.md").read_text("utf-8")


def test_assumptions_are_found_in_comments_and_docstrings():
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


def test_assumptions_page_is_complete(documents):
    listed = documents["docs/assumptions.md"].count("\n- ")
    marked = sum(path.read_text().count("ASSUMED:") for path in (ROOT / "toolkit").rglob("*.py"))
    assert listed == marked


def test_block_without_markers_is_refused():
    with pytest.raises(ValueError, match="operations:begin"):
        REFERENCE_PAGES.replace_block("no markers", "operations", "table")


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    exported = getattr(module, "__all__", None) or _own_names(module)
    assert list(exported) == sorted(set(exported), key=list(exported).index)
    for public_name in exported:
        value: Any = getattr(module, public_name)
        if (inspect.isfunction(value) or inspect.isclass(value)) and not _is_alias(value):
            assert (inspect.getdoc(value) or "").strip(), f"{name}.{public_name} has no docstring"


def _own_names(module):
    own = {key: value for key, value in vars(module).items() if key[:1] != "_"}
    return [
        key for key, value in own.items() if getattr(value, "__module__", "") == module.__name__
    ]


def _is_alias(value):
    return not str(getattr(value, "__module__", "")).startswith("toolkit")


def test_dir_of_toolkit_lists_public_names():
    assert dir(toolkit) == toolkit.__all__
    for name in toolkit.__all__:
        assert getattr(toolkit, name) is not None
    assert toolkit.__version__ == version("exchange-toolkit")


@pytest.mark.parametrize("path", PAGES)
def test_links_between_files_exist(path):
    text = (ROOT / path).read_text()
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text)
    for file, heading in links:
        page = (ROOT / path).parent / file if file else ROOT / path
        assert page.exists()
        assert not heading or heading in _anchors(page.read_text())


def _anchors(text):
    """Return the anchors that GitHub makes of a page's headings."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES)
def test_named_files_exist(path):
    paths = re.findall(
        r"`((?:toolkit|tests|docs|notebooks|data)/[\w./-]+)`", (ROOT / path).read_text()
    )
    generated = ("data/archive", "data/cache", "notebooks/NN_topic.py")
    assert [file for file in paths if not (ROOT / file).exists() and file not in generated] == []


@pytest.mark.parametrize("path", PAGES)
def test_table_rows_match_their_head(path):
    prose = re.sub(r"^```.*?^```", "", (ROOT / path).read_text(), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", prose, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1


def test_analysis_example_runs(documents):
    blocks = re.findall(r"^```python\n(.*?)^```", documents["docs/analysis.md"], re.M | re.S)
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    try:
        exec(compile(blocks[0], "docs/analysis.md", "exec"), names)
    finally:
        forget()
    closed = names["curve"]["realised"].iloc[-1]
    assert names["returns"]["gain"].sum() == pytest.approx(closed)


def test_sample_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (block,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "data/README.md").read_text(), re.M | re.S
    )
    names: dict[str, Any] = {}
    exec(compile(block, "data/README.md", "exec"), names)
    assert names["sample"]["request"]["type"] == "userFillsByTime"


def test_example_picture_is_deterministic():
    code = (
        "import toolkit as tk\n"
        "session = tk.local(seed=7, size='tiny', default=False)\n"
        "fills = tk.user_fills(session.world['users'][0], session=session)\n"
        "tk.plots.waterfall(tk.pnl.attribution(fills)).figure.savefig('waterfall.svg')\n"
        "print('drawn')\n"
    )
    output, picture = GENERATE["run_code"](code)
    assert output == "drawn"
    assert picture == GENERATE["run_code"](code)[1]
    assert "<dc:date>" not in picture
    assert "clipPath" in picture
