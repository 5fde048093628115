"""Reports and notebooks on a freeze have the same frames and bytes later, each in a new kernel."""

import contextlib
import io
import re

import pytest
from typer.testing import CliRunner

import toolkit as tk
from toolkit.archive import open as open_archive
from toolkit.cli import app
from toolkit.client import forget
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import HistoryWarning
from toolkit.reports.report_frames import find_builders

SOURCE = """\
import toolkit as tk

session = tk.local(seed=7, size="tiny")
"""
DIGEST = """\
import hashlib

import pandas as pd

fills = tk.user_fills_by_time(user, 0, end, numbers="exact")
funding = tk.builder_approved_funding_by_time(builder, 0, end, numbers="exact")
ledger = tk.user_non_funding_ledger_updates(user, 0, end, numbers="text")
earned = tk.pnl.attribution(fills, funding[funding["user"] == user])
digest = hashlib.sha256()
for frame in (fills, funding, ledger, earned):
    digest.update(repr(list(frame.dtypes.items())).encode())
    digest.update(frame.to_csv().encode())
print(f"{len(fills)} fills, {len(funding)} payments, {digest.hexdigest()}")
"""
NOTEBOOK = f"""\
# %% tags=["source"]
{SOURCE}
# %% tags=["parameters"]
user = ""
builder = ""
end = 0

# %%
{DIGEST}"""


def run_report(*arguments):
    result = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


class FrozenCase:
    """An archive with the data of one account's report up to a middle, and its freeze."""

    def __init__(self, folder, session):
        self.session = session
        self.user = tk.reports.example_account(session=session)
        self.builders = find_builders(session, self.user)
        everything = tk.user_fills_by_time(self.user, 0, session=session)
        self.end = int(everything["time"].iloc[len(everything) // 2].timestamp() * 1000)
        self.archive = open_archive(folder / "kept")
        self.refresh(self.end)
        for call in (
            (tk.user_fills, self.user),
            *((tk.slippage_history, "BTC", amount, 0) for amount in AMOUNTS[:3]),
        ):
            self.archive.refresh(*call, session=session)
        for dex in ("", *session.world["dexes"]):
            self.archive.refresh(tk.meta, dex=dex, session=session)
        self.frozen = f"{folder / 'kept'}@{self.archive.freeze()}"

    def refresh(self, end):
        for fetch, subject in (
            (tk.user_fills_by_time, self.user),
            (tk.user_non_funding_ledger_updates, self.user),
            *((tk.builder_approved_funding_by_time, builder) for builder in self.builders),
        ):
            self.archive.refresh(fetch, subject, 0, end, session=self.session)


@pytest.fixture(scope="module", name="case")
def _case(tmp_path_factory, tiny):
    return FrozenCase(tmp_path_factory.mktemp("case"), tiny)


def test_frozen_report_is_identical_later(case, tmp_path):
    command = ("wallet", "--user", case.user, "--archive", case.frozen, "--out")
    first = run_report(*command, tmp_path / "first.html")
    with pytest.warns(HistoryWarning, match="rows in between"):  # the samples end later
        before = len(case.archive.frame(tk.user_fills_by_time, case.user))
    case.refresh(None)
    assert len(case.archive.frame(tk.user_fills_by_time, case.user)) > before
    case.archive.compact(forget_after_hours=0)
    again = run_report(*command, tmp_path / "again.html")
    digests = [
        re.findall(r"^digest: ([0-9a-f]{64})$", text, re.MULTILINE) for text in (first, again)
    ]
    assert len(digests[0]) == 1
    assert digests[0] == digests[1]
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "again.html").read_bytes()


def test_notebook_on_freeze_matches_fetch(case, tmp_path):
    facts = {"user": case.user, "builder": case.builders[0], "end": case.end}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(SOURCE + DIGEST, dict(facts))
    forget()
    fetched = printed.getvalue().strip()
    assert int(fetched.split()[0]) > 20
    notebook, page = tmp_path / "paid.py", tmp_path / "page.html"
    notebook.write_text(NOTEBOOK)
    parameters = [text for name, value in facts.items() for text in ("-p", f"{name}={value}")]
    run_report("run", notebook, *parameters, "--archive", case.frozen, "-o", page)
    assert fetched in page.read_text()
