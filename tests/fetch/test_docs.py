"""docs/fetching.md and docs/data_flow.md are true."""

import ast
import re
import shlex
from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

import toolkit as tk
from toolkit.cli import app
from toolkit.client import forget

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "fetching.md").read_text()

ERROR = re.compile(r"`([A-Z]\w+)`(?: \((\d+)\))?")


def test_docs_examples_run(capsys):
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    try:
        for block in blocks:
            exec(compile(block, "docs/fetching.md", "exec"), names)
    finally:
        forget()
    assert "userFillsByTime" in capsys.readouterr().out


def test_docs_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLKIT_BASE_URL", raising=False)
    lines = re.findall(r"^toolkit (?:plan|fetch) .*", TEXT, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    assert len(pd.read_parquet("fills.parquet")) > 0


def test_documented_errors_exist():
    rows = re.findall(
        r"^\| (`[A-Z].*?) \|", TEXT.partition("## When something goes wrong")[2], re.M
    )
    named = {name: status for row in rows for name, status in ERROR.findall(row)}
    assert len(named) > 8
    for name, status in named.items():
        error = getattr(tk, name)
        assert issubclass(error, tk.ToolkitError)
        assert not status or error.status == int(status)


def test_docs_describe_certificate():
    session = tk.local(seed=7, size="tiny", default=False)
    facts = tk.provenance(tk.user_fills_by_time(session.world["users"][0], 0, session=session))
    missing = {name for name in facts if f"`{name}`" not in f"{TEXT}{tk.provenance.__doc__}"}
    assert missing == set()


def test_data_flow_names_existing_functions():
    page = (ROOT / "docs" / "data_flow.md").read_text()
    steps = re.findall(r"^\| \w+ \| (`.*?) \| (`toolkit/.*?\.py`) \|", page, re.MULTILINE)
    assert len(steps) > 18
    missing = []
    for functions, modules in steps:
        paths = re.findall(r"`(.*?)`", modules)
        body = [node for path in paths for node in ast.parse((ROOT / path).read_text()).body]
        classes = {node.name: node.body for node in body if isinstance(node, ast.ClassDef)}
        for name in re.findall(r"`([\w.]+)`", functions):
            owner, _, function = name.rpartition(".")
            defined = {getattr(node, "name", "") for node in (classes | {"": body})[owner]}
            missing += [(modules, name)] * (function not in defined)
    assert missing == []
