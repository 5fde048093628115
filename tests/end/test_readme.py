"""README.md tells the truth: its example is run, and its output is what stands there."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_prints_what_the_readme_shows() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"), run_name="generate")
    block, picture = generate["example"]()
    assert block in (ROOT / "README.md").read_text(), "run: python docs/generate.py --example"
    assert picture.startswith("<?xml")
    assert (ROOT / "docs/pictures/waterfall.svg").exists()
