"""The examples of README.md and of the pages in docs/ run; the first has the printed output."""

import re
from pathlib import Path

import pytest

from toolkit.client import current_session, forget
from toolkit.service import read_keys

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_readme_example_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = r"^```python\n([^`]*)^```\n\n```\n([^`]*)^```"
    code, output = re.search(blocks, README, re.M).groups()
    try:
        exec(compile(code, "README.md", "exec"), {})
    finally:
        forget()
    assert capsys.readouterr().out == output, "copy the output, and the picture to docs/pictures"
    assert Path("waterfall.svg").read_text().startswith("<?xml")


def test_readme_lines_without_a_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n([^`]*like=[^`]*)^```", README, re.M)
    names = {}
    try:
        exec(compile(code, "README.md", "exec"), names)
        account = names["account"]
        assert account.session.key is None
        assert len(account.fills) > 0
        assert len(account.funding) > 0
    finally:
        forget()
    assert account.address in Path("build/report/wallet.html").read_text()


@pytest.mark.parametrize("page", ["how_to", "accounting", "archive"])
@pytest.mark.filterwarnings("ignore:userNonFundingLedgerUpdates")  # starts before the first day
def test_code_of_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = (ROOT / f"docs/{page}.md").read_text()
    names = {}
    try:
        for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            exec(compile(block, f"docs/{page}.md", "exec"), names)
    finally:
        forget()
    if page == "archive":
        assert len(names["fills"]) > 0
        assert re.fullmatch("f[0-9a-f]{16}", names["freeze_id"])


def test_keys_file_of_docs_is_valid(tmp_path):
    page = (ROOT / "docs/service.md").read_text()
    text, _ = re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "keys.toml").write_text(text)
    (key,) = read_keys(tmp_path / "keys.toml")
    assert (key.name, key.add_ons, key.points_per_minute) == ("desk", {"currentDepth"}, 1_000)


def test_readme_connect_example_makes_session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TOOLKIT_API_KEY", "a-key")
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if "points_per_minute" in block]
    try:
        exec(compile(block, "README.md", "exec"), {})
        with current_session() as session:
            assert session.base_url == "https://api.hydromancer.xyz"
            assert session.key is not None
            assert session.budget.per_minute == 5_000
    finally:
        forget()
