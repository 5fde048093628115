"""The site links public names, shows examples of operations, and has a place for every page."""

import runpy
from inspect import ismodule
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import toolkit as tk

ROOT = Path(__file__).parents[2]
HOOKS = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"), run_name="site_hooks")


def page(path):
    return SimpleNamespace(file=SimpleNamespace(src_uri=path))


def test_code_spans_of_public_names_become_links():
    html = (
        "<code>tk.concat([a])</code> <a><code>tk.meta</code></a> <code>tk.RateLimited</code>"
        "<pre><code>tk.meta</code></pre>"
    )
    assert HOOKS["on_page_content"](html) == (
        '<autoref identifier="toolkit.concat" optional><code>tk.concat([a])</code></autoref> '
        '<a><code>tk.meta</code></a> <autoref identifier="toolkit.errors.RateLimited" optional>'
        "<code>tk.RateLimited</code></autoref><pre><code>tk.meta</code></pre>"
    )


def test_operations_have_anchor_and_example():
    path = "docs/reference/fills.md"
    text = HOOKS["on_page_markdown"]((ROOT / path).read_text(), page(path))
    assert "[](){#toolkit.user_fills_by_time}\n## user_fills_by_time\n" in text
    section = text.split("### Example of user_fills_by_time\n")[1]
    assert section.startswith("\n::: toolkit.user_fills_by_time\n")


def test_links_of_notebooks_lead_to_their_pages():
    text = "[a](../notebooks/01_quickstart.py) [b](x.py)"
    linked = "[a](../notebooks/01_quickstart.md) [b](x.py)"
    assert HOOKS["on_page_markdown"](text, page("docs/how_to.md")) == linked


def test_missing_section_is_an_error():
    def get_item_url(name):
        if name == "toolkit.pnl.attribution":
            raise KeyError(name)

    plugins = {"autorefs": SimpleNamespace(get_item_url=get_item_url)}
    with pytest.raises(SystemExit, match=r"no section for pnl\.attribution$"):
        HOOKS["on_env"](None, SimpleNamespace(plugins=plugins))


def test_navigation_has_every_page():
    text = (ROOT / "docs/mkdocs.yml").read_text()
    navigation = str(yaml.safe_load(text[text.index("\nnav:") :]))
    pages = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    pages += [f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.py")]
    pages += [f"docs/reference/tk_{name}.md" for name in tk.__all__ if ismodule(getattr(tk, name))]
    pages.remove("docs/reference/tk_plots.md")  # its page is figures.md
    assert [path for path in pages if path not in navigation] == []


def test_docstrings_become_markdown():
    text = "Title.\n\n>>> 1 + 1\n2\n\nstart, end : Time\n    The range.\n"
    item = SimpleNamespace(docstring=SimpleNamespace(value=text), is_module=True)
    HOOKS["Docstrings"]().on_object(obj=item)
    assert item.docstring.value == (
        "Title.\n\n```pycon\n>>> 1 + 1\n2\n\n```\n"
        "start : Time\n    The range.\nend : Time\n    The range.\n"
    )
