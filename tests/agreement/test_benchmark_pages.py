"""docs/benchmarks.md and docs/scale.md are what their figures give."""

import doctest
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import benchmark_pages
from benchmark_pages import DOCS, MEASURED, made_pages

SECTIONS = json.loads(MEASURED.read_text("utf-8"))


def test_pages_are_current():
    hint = "run `python docs/benchmark_pages.py`"
    texts = {name: (DOCS / name).read_text("utf-8") for name in ("benchmarks.md", "scale.md")}
    assert texts == made_pages(), hint


def test_scale_page_recomputed():
    """The main figures, computed a second time without the code of the page."""
    page = (DOCS / "scale.md").read_text("utf-8")
    requests = 5e9 / 1_999 + 2e6
    assert f"takes {requests:,.0f} requests" in page
    once = next(line for line in page.splitlines() if line.startswith("| the year, once"))
    assert f"| {requests * 10:,.0f} |" in once
    assert f"| {requests * 10 / 5_000 / 60:,.0f} h |" in once
    (growth,) = (
        each for each in SECTIONS["test_growth"]["growth"] if each["what"].startswith("append")
    )
    rows, seconds, _ = growth["points"][-1]
    assert f"{5e9 * seconds / rows / 3_600:,.1f} h to fetch and archive them" in page
    size = SECTIONS["test_growth"]["figures"][0]["value"]
    assert f"| {size * 5e9 / 1e9:.0f} GB |" in page


def test_cost_and_growth_by_hand():
    result = doctest.testmod(benchmark_pages)
    assert (result.attempted, result.failed) == (3, 0)
