"""The example of docs/archive.md runs."""

import re
from pathlib import Path

from toolkit.client import forget

TEXT = (Path(__file__).parents[2] / "docs" / "archive.md").read_text()


def test_docs_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    try:
        exec(compile(block, "docs/archive.md", "exec"), names)
    finally:
        forget()
    assert len(names["fills"]) > 0
    assert re.fullmatch("f[0-9a-f]{16}", names["freeze_id"])
    assert (tmp_path / "my-archive").is_dir()
