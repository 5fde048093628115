"""Reports of notebooks: parameters, prose, outputs, errors, and self-contained pages."""

import json
from types import SimpleNamespace

import nbformat.v4 as nb
import psutil
import pytest

import toolkit as tk
from tests.reports.page_content import PageContent
from toolkit.local_service import application_of, simulated_store
from toolkit.reports import notebook_runner
from toolkit.reports.build import (
    NAMES,
    build,
    page_digest,
    session_source,
    template,
    write_page,
    write_reports,
)
from toolkit.reports.page import make_page
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import run_server

CANARY = "canary-7f3a9c-never-shown"
OWN = """# %% [markdown]
# # How many fills has an account? *2 < 3*
#
# <script>alert(1)</script>

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=1, size="demo")

# %% tags=["parameters"]
user = None
most = 3
words = "plain"

# %% [markdown]
# ## The fills
#
# | a | b |
# |---|---|
# | 1 | 2 |

# %%
fills = tk.user_fills_by_time(user, 0).head(most)
fills[["coin", "px"]]

# %%
import sys
import warnings

print(words, "<b>")
print("to nobody", file=sys.stderr)
warnings.warn("mind the gap", stacklevel=1)

# %% [markdown]
# ## The fills

# %%
from toolkit import plots

plots.waterfall(tk.pnl.attribution(fills))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "mine.py"
    path.write_text(OWN)
    return path


def children():
    return {child.pid: child.name() for child in psutil.Process().children(recursive=True)}


@pytest.fixture(scope="module")
def served():
    """The address of a service with one key, and its store."""
    store = simulated_store(7, "tiny")
    with run_server(application_of(store, KeyQuotas([AcceptedKey("me", CANARY)]))) as address:
        yield address, store


@pytest.fixture(scope="module")
def made(own, served, user):
    """The page of a service with a key; its kernel has ended."""
    address, store = served
    before, told = children(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLKIT_API_KEY", CANARY)
        with tk.connect(address, default=False) as session:
            source = session_source(session)
            asked = {"user": user, "words": 'it\'s "quoted"'}
            page = build(own, source, asked, code=True, on_cell=lambda *cell: told.append(cell))
    assert told[-1][0] == told[-1][1] == len(notebook_runner.read_notebook(own).cells) + 4
    assert told == sorted(told)
    assert CANARY not in source + page.html
    assert page.facts["source"] == store.about["label"]  # a served exchange says what it is
    assert page.facts["simulated"]
    assert children().keys() <= before.keys()
    return page


def test_notebook_gets_parameters_and_source(made, user):
    assert f"user = {user}" in made.html
    assert "it&#x27;s &quot;quoted&quot; &lt;b&gt;" in made.html
    assert "seed 7, size tiny" in made.html  # not the seed of its own cell
    assert "<td>3</td>" not in made.html  # three rows: 0, 1, 2
    (source,) = made.facts["sources"]
    assert [source[name] for name in ("name", "operation", "rows")] == [
        "fills", "userFillsByTime", 3,
    ]  # fmt: skip
    assert source["digest"] in made.html


def test_markdown_headings_become_sections(made):
    page = PageContent(made.html)
    assert made.title == "How many fills has an account? *2 < 3*"
    assert page.links == ["#the-fills", "#the-fills-2", "#provenance"]
    assert made.html.index("<h1>") < made.html.index("<nav") < made.html.index("<main>")
    assert '<span class="badge">simulated exchange</span>' in made.html
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "<script" not in made.html
    assert "&lt;script&gt;" in made.html
    assert "<td>1</td>" in made.html


def test_page_shows_warnings_code_and_figure(made):
    assert "UserWarning: mind the gap" in made.html
    assert "to nobody" not in made.html.replace("&quot;to nobody&quot;", "")
    assert "ipykernel" not in made.html
    assert made.html.count("<details>") == 4
    assert "_report" not in made.html
    images = PageContent(made.html).images
    assert [image["class"] for image in images] == ["tk-light", "tk-dark"]
    assert all("Simulated data: yes." in image["alt"] for image in images)
    # The page shows the one of its theme; the rule is stronger than the one in the figure.
    assert "body .tk-plot .tk-dark" in made.html


def page_of(*outputs):
    return make_page(nb.new_notebook(cells=[nb.new_code_cell("fetch()", outputs=[*outputs])])).html


def test_progress_bars_leave_no_trace():
    """A bar appears only if a fetch takes long, and the same data gives the same page."""
    text = nb.new_output("display_data", {"text/plain": "4 fills"})
    bar = nb.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}})
    assert page_of(text) == page_of(bar, bar, text, bar)
    assert "4 fills" in page_of(text)


def test_page_loads_nothing_from_outside():
    for html in ('<img src="https://example.org/a.png">', "<script>1</script>"):
        with pytest.raises(tk.ReportFailed, match="outside"):
            page_of(nb.new_output("display_data", {"text/html": html}))


def test_wrong_notebooks_are_refused(own, tmp_path):
    (tmp_path / "bad.ipynb").write_text("{")
    for path, parameters, named in (
        (own, {"usr": "0x0"}, "usr; .* user, most, words"),
        (tmp_path / "none.py", {}, "none.py"),
        (tmp_path / "bad.ipynb", {}, "bad.ipynb"),
    ):
        with pytest.raises(tk.ReportFailed, match=named):
            build(path, "None", parameters)
    with pytest.raises(tk.ReportFailed, match="several"):
        list(write_reports(own, [{"user": "a"}] * 2, "None", tmp_path))


def test_write_replaces_page(tmp_path):
    out = tmp_path / "report.html"
    write_page("old", out)
    write_page("new", out)
    assert out.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


WRONG = """# %% tags=["parameters"]
address = None

# %%
import toolkit as tk

if address:
    session = tk.connect(address)
    try:
        tk.meta(session=session)
    except tk.ToolkitError as error:
        raise SystemError(f'\\x1b[31m{error} {session!r}\\x1b[0m')
"""


def test_failed_report_leaves_others_written(served, tmp_path, monkeypatch):
    """A cell that raises stops its report; its error has no colours, and not the refused key."""
    refused = CANARY[::-1]
    monkeypatch.setenv("TOOLKIT_API_KEY", refused)
    (tmp_path / "mine.py").write_text(WRONG)
    asked = [{"address": ""}, {"address": served[0]}]
    with pytest.warns(UserWarning, match="tag source"):
        first, second = write_reports(tmp_path / "mine.py", asked, "None", tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert (first.path, first.digest) == (tmp_path / "report.html", page_digest(page))
    assert "the notebook itself: it opened no session" in page
    assert second.path is None
    assert "SystemError: " in second.error
    assert "401" in second.error
    assert refused not in second.error


def test_error_text_has_no_colours():
    for name, text in (("ReportFailed", "no data"), ("KeyError", "KeyError: no data")):
        error = SimpleNamespace(ename=name, evalue="\x1b[31mno data\x1b[0m")
        assert notebook_runner._error_text(error, None) == text


def test_error_names_cell_of_old_notebook(tmp_path):
    """The format is that of 2014, and the error is one of the user's own code."""
    cells = [
        {"cell_type": "code", "input": [line], "language": "python", "metadata": {}, "outputs": []}
        for line in ("rows = []", "mean = 7 / len(rows)")
    ]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    with pytest.raises(tk.ReportFailed, match=r"cell 2 .*ZeroDivisionError"):
        build(tmp_path / "old.ipynb", None)


def test_templates_have_source_and_parameters():
    for name in NAMES:
        notebook = notebook_runner.read_notebook(template(name))
        tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
        assert tags.count("source") == tags.count("parameters") == 1
        assert notebook_runner.read_parameters(notebook)


def test_missing_key_is_named():
    with (
        tk.connect("http://127.0.0.1:1", CANARY, default=False) as session,
        pytest.raises(tk.ReportFailed, match="Set TOOLKIT_API_KEY") as failed,
    ):
        session_source(session)
    assert CANARY not in str(failed.value)


def test_interrupt_ends_kernel(tmp_path):
    (tmp_path / "long.py").write_text(
        '# %% tags=["source"]\n\n# %%\n'
        "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    before = children()
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "long.py", "None")
    assert children().keys() <= before.keys()


def test_provenance_lists_fetched_frames(session, user):
    fills = tk.user_fills(user, session=session)
    helped = tk.pnl.attribution(fills)
    names = {"session": session, "fills": fills, "_hidden": fills, "helped": helped, "user": user}
    made = notebook_runner.report_provenance(names, ["user"])
    assert [source["name"] for source in made.facts["sources"]] == ["fills"]
    assert f"user = {user}" in made.html
    assert (made.facts["source"], made.facts["simulated"]) == (session.label, True)
    made = notebook_runner.report_provenance(names | {"sources": {"mine": fills}}, [])
    assert [source["name"] for source in made.facts["sources"]] == ["mine"]
