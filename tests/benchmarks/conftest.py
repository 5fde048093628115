"""Benchmarks print their figures, and `make bench` writes them into docs/benchmarks.md.

A benchmark reports. It fails only if a ratio is below half of what the documents state.
"""

import datetime as dt
import inspect
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.growth import Figure, Growth
from tests.benchmarks.side_by_side import Ratio

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

from benchmark_pages import MEASURED, write_pages

_LINES: list[str] = []
_SECTIONS: dict[str, dict[str, Any]] = {}


def pytest_addoption(parser):
    parser.addoption("--write-page", action="store_true", help="write docs/benchmarks.md")
    parser.addoption("--most-rows", type=int, default=1_000_000, help="the largest of growth")


@pytest.fixture(scope="session")
def sizes(request):
    """Return the numbers of rows for growth: powers of ten from 1,000."""
    most: int = request.config.getoption("--most-rows")
    return [10**power for power in range(3, len(str(most))) if 10**power <= most]


@pytest.fixture
def report(request):
    """Print a figure at the end of the run; fail if it is a gross regression."""
    module = request.node.module
    title, _, about = inspect.cleandoc(module.__doc__).partition("\n")
    section = _SECTIONS.setdefault(
        module.__name__.rpartition(".")[2],
        {
            "title": title.removesuffix("."),
            "about": about.strip(),
            "date": str(dt.date.today()),
            "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python "
            f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}",
            "ratios": [],
            "growth": [],
            "figures": [],
            "lines": [],
        },
    )

    def add(figure):
        _LINES.append(str(figure))
        if isinstance(figure, Ratio):
            section["ratios"].append(asdict(figure))
            assert figure.value >= figure.stated / 2, f"a gross regression: {figure}"
        elif isinstance(figure, Growth):
            section["growth"].append(asdict(figure))
        elif isinstance(figure, Figure):
            section["figures"].append(asdict(figure))
        else:
            section["lines"].append(str(figure))

    return add


def pytest_terminal_summary(terminalreporter):
    if _LINES:
        terminalreporter.section("side by side")
        for line in _LINES:
            terminalreporter.write_line(line)


def pytest_sessionfinish(session):
    """Replace the sections that were measured, and write the pages again."""
    if not (_SECTIONS and session.config.getoption("--write-page")):
        return
    sections = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}
    sections |= _SECTIONS
    MEASURED.write_text(json.dumps(sections, indent=1, sort_keys=True) + "\n", "utf-8")
    write_pages()
