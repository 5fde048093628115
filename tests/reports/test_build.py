"""Reports of notebooks: parameters, prose, outputs, errors, and self-contained pages."""

import nbformat.v4 as nb
import psutil
import pytest

import toolkit as tk
from tests.reports.page_content import PageContent
from toolkit.local_service import application_of, simulated_store
from toolkit.reports.build import NAMES, build, page_digest, template, write_page, write_reports
from toolkit.reports.notebook_runner import read_notebook, read_parameters
from toolkit.reports.page import make_page
from toolkit.reports.source_expressions import session_source
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
def store():
    return simulated_store(7, "tiny")


@pytest.fixture(scope="module")
def user(store):
    return store.about["world"]["users"][0]


@pytest.fixture(scope="module")
def made(own, store, user):
    """The page of a service with a key; its kernel has ended."""
    keys = KeyQuotas([AcceptedKey("me", CANARY)])
    before, told = children(), []
    with pytest.MonkeyPatch.context() as patch, run_server(application_of(store, keys)) as address:
        patch.setenv("TOOLKIT_API_KEY", CANARY)
        with tk.connect(address, default=False) as session:
            source = session_source(session)
            asked = {"user": user, "words": 'it\'s "quoted"'}
            page = build(own, source, asked, code=True, on_cell=lambda *cell: told.append(cell))
    assert told[-1][0] == told[-1][1] == len(read_notebook(own).cells) + 4
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


def test_page_shows_warnings_without_stderr(made):
    assert "UserWarning: mind the gap" in made.html
    assert "to nobody" not in made.html.replace("&quot;to nobody&quot;", "")
    assert "ipykernel" not in made.html


def test_code_is_folded(made):
    assert made.html.count("<details>") == 4
    assert "_report" not in made.html


def test_figure_has_alternative_text(made):
    images = PageContent(made.html).images
    assert [image["class"] for image in images] == ["tk-light", "tk-dark"]
    assert all("Simulated data: yes." in image["alt"] for image in images)
    # The page shows the one of its theme; the rule is stronger than the one in the figure.
    assert "body .tk-plot .tk-dark" in made.html


def test_page_states_source_of_frame(made):
    (source,) = made.facts["sources"]
    assert source["name"] == "fills"
    assert source["operation"] == "userFillsByTime"
    assert source["rows"] == 3
    assert source["digest"] in made.html


def test_progress_bars_leave_no_trace():
    """A bar appears only if a fetch takes long, and the same data gives the same page."""
    text = nb.new_output("display_data", {"text/plain": "4 fills"})
    bar = nb.new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}})
    pages = [
        make_page(nb.new_notebook(cells=[nb.new_code_cell("fetch()", outputs=outputs)])).html
        for outputs in ([text], [bar, bar, text, bar])
    ]
    assert pages[0] == pages[1]
    assert "4 fills" in pages[0]


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


def test_page_loads_nothing_from_outside():
    for html in ('<img src="https://example.org/a.png">', "<script>1</script>"):
        output = nb.new_output("display_data", {"text/html": html})
        cells = [nb.new_code_cell("HTML(...)", outputs=[output])]
        with pytest.raises(tk.ReportFailed, match="outside"):
            make_page(nb.new_notebook(cells=cells))


def test_write_replaces_page(tmp_path):
    out = tmp_path / "report.html"
    write_page("old", out)
    write_page("new", out)
    assert out.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_failed_report_leaves_others_written(tmp_path):
    """A cell that raises stops its report; its error has no colours."""
    raised = "raise SystemError('\\x1b[31mred\\x1b[0m')"
    cells = ['# %% tags=["parameters"]\nis_wrong = None', f"# %%\nif is_wrong:\n    {raised}"]
    (tmp_path / "mine.py").write_text("\n\n".join(['# %% tags=["source"]', *cells]))
    asked = [{"is_wrong": False}, {"is_wrong": True}]
    first, second = write_reports(tmp_path / "mine.py", asked, "None", tmp_path)
    assert first.path == tmp_path / "False.html"
    assert page_digest(first.path.read_text()) == first.digest
    assert second.path is None
    assert second.error.endswith("SystemError: red")


def test_templates_have_source_and_parameters():
    for name in NAMES:
        notebook = read_notebook(template(name))
        tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
        assert tags.count("source") == tags.count("parameters") == 1
        assert read_parameters(notebook)


def test_source_without_cell_is_warned(tmp_path):
    (tmp_path / "own.py").write_text("# %%\n1 + 1\n")
    with pytest.warns(UserWarning, match="tag source"):
        page = build(tmp_path / "own.py", "None")
    assert page.facts["source"] == "the notebook itself: it opened no session"


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
