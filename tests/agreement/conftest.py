"""The text of the specification, if it is next to the project."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = ROOT.parent / "shared" / "spec" / "specification.md"


@dataclass(frozen=True)
class Specification:
    """The specification: its text, headings and tables."""

    text: str

    def section(self, heading):
        """Return the text below a heading (its first words) up to the next heading of its level."""
        found = re.search(
            rf"^(#+) {re.escape(heading)}[^\n]*\n(.*?)(?=^#{{1,3}} |\Z)",
            self.text,
            re.DOTALL | re.MULTILINE,
        )
        assert found, f"the specification has no section {heading!r}"
        return found[2]

    def chapter(self, heading):
        """Return the text below a heading of the second level, with its sections."""
        found = re.search(
            rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.text, re.DOTALL | re.MULTILINE
        )
        assert found, f"the specification has no chapter {heading!r}"
        return found[1]

    def tables(self, text):
        """Return the tables of a text as lists of rows, without the heads."""
        blocks = re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE)
        return [
            [
                [cell.strip() for cell in line.strip().strip("|").split("|")]
                for line in block.splitlines()[2:]
            ]
            for block in blocks
        ]

    def endpoint(self, operation):
        """Return the text about one operation in the chapter on endpoints."""
        found = re.search(
            rf"^\*\*{operation}\*\*(.*?)(?=^\*\*\w+\*\*|^### |\Z)",
            self.chapter("Endpoints"),
            re.DOTALL | re.MULTILINE,
        )
        assert found, f"the specification has no endpoint {operation}"
        return found[1]


@pytest.fixture(scope="session")
def specification():
    if not PLACE.exists():
        pytest.skip(f"NOT CHECKED: the specification is not at {PLACE}")
    return Specification(PLACE.read_text())
