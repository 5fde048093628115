"""Reports and notebooks on a freeze have the same frames and bytes in a new process."""

import os
import re
import subprocess
import sys

import matplotlib
import pytest

import toolkit as tk
from tests.archive.processes import ROOT
from toolkit.archive import open as open_archive
from toolkit.contract.requests import AMOUNTS
from toolkit.errors import HistoryWarning
from toolkit.reports.report_frames import find_builders

NOTEBOOK = """\
# %% [markdown]
# # What did the account pay?

# %% tags=["source"]
import toolkit as tk

session = tk.local(seed=7, size="tiny")

# %% tags=["parameters"]
user = ""
builder = ""
end = 0
out = ""

# %%
import hashlib
from pathlib import Path

import pandas as pd

fills = tk.user_fills_by_time(user, 0, end, numbers="exact")
funding = tk.builder_approved_funding_by_time(builder, 0, end, numbers="exact")
ledger = tk.user_non_funding_ledger_updates(user, 0, end, numbers="text")
earned = tk.pnl.attribution(fills, funding[funding["user"] == user])

# %%
digest = hashlib.sha256()
for frame in (fills, funding, ledger, earned):
    digest.update(repr(list(frame.dtypes.items())).encode())
    digest.update(frame.to_csv().encode())
done = Path(out).write_text(f"{len(fills)} fills, {len(funding)} payments, {digest.hexdigest()}")

# %%
earned
"""


def run_toolkit(cache, *arguments):
    """Run a command in a process without a service and without cached worlds."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("TOOLKIT_")}
    done = subprocess.run(
        [sys.executable, "-c", "from toolkit.cli import app; app()", *map(str, arguments)],
        cwd=ROOT,
        env={**known, "XDG_CACHE_HOME": str(cache), "MPLCONFIGDIR": matplotlib.get_cachedir()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed_digest(printed):
    found = re.search(r"^digest: ([0-9a-f]{64})$", printed, re.MULTILINE)
    assert found, printed
    return found[1]


class FrozenCase:
    """An archive with the data of one account's report up to a middle, and its freeze."""

    def __init__(self, folder):
        self.folder = folder
        self.session = tk.local(seed=7, size="tiny", default=False)
        self.user = tk.reports.example_account(session=self.session)
        (self.builder, *_) = self.builders = find_builders(self.session, self.user)
        everything = tk.user_fills_by_time(self.user, 0, session=self.session)
        self.end = int(everything["time"].iloc[len(everything) // 2].timestamp() * 1000)
        self.coins = tk.meta(session=self.session)["name"]
        self.archive = open_archive(folder / "kept")
        self.refresh(self.end)
        self.frozen = f"{folder / 'kept'}@{self.archive.freeze()}"

    def refresh(self, end):
        def keep(fetch, *arguments, **named):
            self.archive.refresh(fetch, *arguments, **named, session=self.session)

        keep(tk.user_fills_by_time, self.user, 0, end)
        keep(tk.user_non_funding_ledger_updates, self.user, 0, end)
        for builder in self.builders:
            keep(tk.builder_approved_funding_by_time, builder, 0, end)
        if end is not None:  # not histories of the account: archived once
            keep(tk.user_fills, self.user)
            for dex in ("", *self.session.world["dexes"]):
                keep(tk.meta, dex=dex)
            for coin in self.coins[:3]:
                for amount in AMOUNTS:
                    keep(tk.slippage_history, coin, amount, 0)


@pytest.fixture(scope="module", name="case")
def _case(tmp_path_factory):
    return FrozenCase(tmp_path_factory.mktemp("case"))


def test_frozen_report_is_identical_later(case, tmp_path):
    command = ("report", "wallet", "--user", case.user, "--archive", case.frozen, "--out")
    first = run_toolkit(tmp_path, *command, tmp_path / "first.html")
    with pytest.warns(HistoryWarning, match="rows in between"):  # the samples end later
        before = len(case.archive.frame(tk.user_fills_by_time, case.user))
    case.refresh(None)
    assert len(case.archive.frame(tk.user_fills_by_time, case.user)) > before
    case.archive.compact(forget_after_hours=0)
    again = run_toolkit(tmp_path, *command, tmp_path / "again.html")
    assert printed_digest(first) == printed_digest(again)
    assert (tmp_path / "first.html").read_bytes() == (tmp_path / "again.html").read_bytes()


def test_notebook_on_freeze_matches_fetch(case, tmp_path):
    notebook = tmp_path / "paid.py"
    notebook.write_text(NOTEBOOK)
    frames = []
    for number, source in enumerate(
        (["--seed", "7", "--size", "tiny"], ["--archive", case.frozen])
    ):
        out = tmp_path / f"{number}.txt"
        facts = {"user": case.user, "builder": case.builder, "end": case.end, "out": f'"{out}"'}
        parameters = [text for k, v in facts.items() for text in ("-p", f"{k}={v}")]
        run_toolkit(
            tmp_path,
            "report",
            "run",
            notebook,
            *parameters,
            *source,
            "-o",
            out.with_suffix(".html"),
        )
        frames.append(out.read_text())
    fetched, replayed = frames
    assert int(fetched.split()[0]) > 20
    assert replayed == fetched
