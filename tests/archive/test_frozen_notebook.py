"""A notebook on a freeze has the same frames later, in a new kernel."""

import contextlib
import io

from typer.testing import CliRunner

import toolkit as tk
from toolkit.archive import open as open_archive
from toolkit.cli import app
from toolkit.client import forget

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


def test_notebook_on_freeze_matches_fetch_later(tmp_path, tiny):
    """The archive goes on after the freeze, and its old files are deleted."""
    user = tk.reports.example_account(session=tiny)
    builders = tk.user_fills(user, session=tiny)["builder"].dropna().unique()
    everything = tk.user_fills_by_time(user, 0, session=tiny)
    middle = int(everything["time"].iloc[len(everything) // 2].timestamp() * 1000)
    archive = open_archive(tmp_path / "kept")

    def refresh(end):
        archive.refresh(tk.user_fills_by_time, user, 0, end, session=tiny)
        archive.refresh(tk.user_non_funding_ledger_updates, user, 0, end, session=tiny)
        for builder in builders:
            archive.refresh(tk.builder_approved_funding_by_time, builder, 0, end, session=tiny)

    refresh(middle)
    frozen = f"{tmp_path / 'kept'}@{archive.freeze()}"
    before = len(archive.frame(tk.user_fills_by_time, user))
    refresh(None)
    assert len(archive.frame(tk.user_fills_by_time, user)) > before
    archive.compact(forget_after_hours=0)
    facts = {"user": user, "builder": builders[0], "end": middle}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(SOURCE + DIGEST, dict(facts))
    forget()
    fetched = printed.getvalue().strip()
    assert int(fetched.split()[0]) > 20
    notebook, page = tmp_path / "paid.py", tmp_path / "page.html"
    notebook.write_text(NOTEBOOK)
    parameters = [text for name, value in facts.items() for text in ("-p", f"{name}={value}")]
    words = ["report", "run", notebook, *parameters, "--archive", frozen, "-o", page]
    result = CliRunner().invoke(app, [*map(str, words)])
    assert result.exit_code == 0, result.output
    assert fetched in page.read_text()
