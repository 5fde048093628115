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


@pytest.fixture(scope="module")
def made(own, session, user):
    asked = {"user": user, "words": 'it\'s "quoted"'}
    return build(own, session_source(session), asked, code=True)


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


def test_unknown_parameter_is_refused(own, session):
    with pytest.raises(tk.ReportFailed, match="no parameter usr; it has user, most, words"):
        build(own, session_source(session), {"usr": "0x0"})


def test_missing_notebook_is_refused(session, tmp_path):
    with pytest.raises(tk.ReportFailed, match="there is no notebook"):
        build(tmp_path / "none.py", session_source(session))


def test_damaged_notebook_is_refused(session, tmp_path):
    (tmp_path / "bad.ipynb").write_text("{")
    with pytest.raises(tk.ReportFailed, match=r"bad\.ipynb is not a notebook"):
        build(tmp_path / "bad.ipynb", session_source(session))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemError('\\x1b[31mred\\x1b[0m')", "SystemError: red"),
        (
            "from IPython.display import HTML\nHTML('<img src=\"https://example.org/a.png\">')",
            "from outside the page",
        ),
        ("from IPython.display import HTML\nHTML('<script>1</script>')", "from outside the page"),
    ],
)
def test_failing_cell_stops_report(code, said, session, tmp_path):
    (tmp_path / "bad.py").write_text(f'# %% tags=["source"]\n\n# %%\n{code}\n')
    with pytest.raises(tk.ReportFailed, match=said):
        build(tmp_path / "bad.py", session_source(session))


def test_write_replaces_page(tmp_path):
    out = tmp_path / "report.html"
    write_page("old", out)
    write_page("new", out)
    assert out.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_failed_report_leaves_others_written(own, session, user, tmp_path):
    asked = [{"user": user}, {"user": "0x12"}]
    first, second = write_reports(own, asked, session_source(session), tmp_path)
    assert first.path == tmp_path / f"{user}.html"
    assert page_digest(first.path.read_text()) == first.digest
    assert second.path is None
    assert "0x12" in second.error


def test_reports_of_one_name_are_refused(own, session, user, tmp_path):
    with pytest.raises(tk.ReportFailed, match="several reports"):
        list(write_reports(own, [{"user": user}] * 2, session_source(session), tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_templates_have_source_and_parameters(name):
    notebook = read_notebook(template(name))
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("source") == tags.count("parameters") == 1
    assert read_parameters(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert all(len(cell.splitlines()) <= 10 for cell in code)


def test_kernel_ends_after_last_cell(own, session, user):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    told = []
    build(own, session_source(session), {"user": user}, on_cell=lambda *cell: told.append(cell))
    assert told[-1][0] == told[-1][1] == len(read_notebook(own).cells) + 4
    assert told == sorted(told)
    after = psutil.Process().children(recursive=True)
    assert [child.name() for child in after if child.pid not in before] == []


def test_report_does_not_contain_key(own, monkeypatch, capfd):
    store = simulated_store(7, "tiny")
    with run_server(application_of(store, KeyQuotas([AcceptedKey("me", CANARY)]))) as address:
        monkeypatch.setenv("TOOLKIT_API_KEY", CANARY)
        with tk.connect(address, default=False) as session:
            assert CANARY not in session_source(session)
            result = build(own, session_source(session), {"user": store.about["world"]["users"][0]})
            with pytest.raises(tk.ReportFailed) as failed:
                build(own, session_source(session), {"user": "0x12"})
    assert result.facts["source"] == store.about["label"]  # a served exchange says what it is
    assert result.facts["simulated"]
    assert CANARY not in result.html + str(failed.value) + "".join(capfd.readouterr())


def test_source_without_cell_is_warned(session, tmp_path):
    (tmp_path / "own.py").write_text("# %%\n1 + 1\n")
    with pytest.warns(UserWarning, match="no cell with the tag source, so .* tk.local"):
        page = build(tmp_path / "own.py", session_source(session))
    assert page.facts["source"] == "the notebook itself: it opened no session"


def test_missing_key_is_named():
    with (
        tk.connect("http://127.0.0.1:1", CANARY, default=False) as session,
        pytest.raises(tk.ReportFailed, match="Set TOOLKIT_API_KEY") as failed,
    ):
        session_source(session)
    assert CANARY not in str(failed.value)


def test_interrupt_ends_kernel(own, session, tmp_path):
    (tmp_path / "long.py").write_text(
        '# %% tags=["source"]\n\n# %%\n'
        "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "long.py", session_source(session))
    after = psutil.Process().children(recursive=True)
    assert [child.name() for child in after if child.pid not in before] == []
