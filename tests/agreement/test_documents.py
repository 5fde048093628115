"""The generated documents are up to date, and what pages name exists."""

import doctest
import re
import runpy
from importlib.metadata import version
from inspect import isfunction, ismodule
from pathlib import Path

import pytest

import toolkit
from toolkit.client import forget

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"]
PAGES += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
TEXTS = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
CODE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def test_documents_are_fresh():
    documents = GENERATE["documents"]()
    stale = [path for path, text in documents.items() if (ROOT / path).read_text() != text]
    assert stale == [], "run: python docs/generate.py"
    folder = {page for page in PAGES if page.startswith("docs/reference/")}
    assert folder == {path for path in documents if path.startswith("docs/reference/")}


def test_blocks_are_replaced_between_markers():
    result = doctest.testmod(__import__("reference_pages"))
    assert (result.attempted, result.failed) == (1, 0)
    with pytest.raises(ValueError, match="operations:begin"):
        GENERATE["replace_block"]("no markers", "operations", "table")


def test_analysis_page_lists_every_helper():
    topics = {
        name: module
        for name in toolkit.__all__
        if ismodule(module := getattr(toolkit, name)) and f"\n## `tk.{name}`\n" in analysis()
    }
    helpers = [
        f"tk.{topic}.{name}"
        for topic, module in topics.items()
        for name in module.__all__
        if isfunction(getattr(module, name))
    ]
    assert [name for name in helpers if f"\n| `{name}` |" not in analysis()] == []
    assert f"{len(helpers)} analysis helpers" in TEXTS["README.md"]
    assert f"**{len(helpers)} helpers**" in TEXTS["docs/comparison.md"]
    plots = set(toolkit.plots.__all__) - {"alt", "use"}
    assert f"{len(plots)} plots" in TEXTS["README.md"]


def analysis():
    return TEXTS["docs/analysis.md"]


def test_assumptions_are_found_in_comments():
    source = """
    # ASSUMED: a comment over
    # two lines.
    return 1  # ASSUMED: a comment behind code.
"""
    found = GENERATE["assumed_in"](source)
    assert found == ["a comment over two lines.", "a comment behind code."]
    marked = sum(path.read_text().count("ASSUMED:") for path in (ROOT / "toolkit").rglob("*.py"))
    assert TEXTS["docs/assumptions.md"].count("\n- ") == marked


def test_dir_of_toolkit_lists_public_names():
    assert dir(toolkit) == toolkit.__all__
    assert all(getattr(toolkit, name) is not None for name in toolkit.__all__)
    assert toolkit.__version__ == version("exchange-toolkit")


def test_links_between_files_exist():
    broken = []
    for page, text in TEXTS.items():
        for file, heading in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
            target = (ROOT / page).parent / file if file else ROOT / page
            if not target.exists() or (heading and heading not in anchors(target.read_text())):
                broken.append((page, file, heading))
    assert broken == []


def anchors(text):
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_named_files_exist():
    generated = ("data/archive", "data/cache", "notebooks/NN_topic.py")
    missing = [
        (page, file)
        for page, text in TEXTS.items()
        for file in re.findall(r"`((?:toolkit|tests|docs|notebooks|data)/[\w./-]+)`", text)
        if not (ROOT / file).exists() and file not in generated
    ]
    assert missing == []


def test_tables_and_lists_have_markdown_of_site():
    """Rows have the cells of their head; a list has an empty line before it."""
    wrong = []
    for page, text in TEXTS.items():
        prose = without_code(text)
        for table in re.findall(r"(?:^\|.*\n)+", prose, re.MULTILINE):
            if len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) > 1:
                wrong.append((page, table))
        wrong += [(page, line) for line in re.findall(r"^(?![-\s]|\d+\. ).+\n(- .*)", prose, re.M)]
    assert wrong == []


def test_code_of_pages_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {}
    try:
        for page in ("docs/analysis.md", "data/README.md"):
            (block,) = CODE.findall(TEXTS[page])
            exec(compile(block, page, "exec"), names)
    finally:
        forget()
    earned = names["value"]["value"].iloc[-1] - names["value"]["flows"].sum()
    assert names["returns"]["gain"].sum() == pytest.approx(earned)
    returned = names["sheet"].set_index("figure").loc["total_return", "value"]
    assert (1 + names["series"]).prod() - 1 == pytest.approx(returned)
    assert names["sample"]["request"]["type"] == "userFillsByTime"
