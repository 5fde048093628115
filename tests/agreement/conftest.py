"""The specification, where it lies beside the project."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = ROOT.parent / "shared" / "spec" / "specification.md"


@dataclass(frozen=True)
class Specification:
    """The text of the specification, and how to look things up in it."""

    text: str

    def section(self, heading: str) -> str:
        """The text below a heading (its first words suffice) up to the next of its level."""
        found = re.search(
            rf"^(#+) {re.escape(heading)}[^\n]*\n(.*?)(?=^#{{1,3}} |\Z)",
            self.text,
            re.DOTALL | re.MULTILINE,
        )
        assert found, f"the specification has no section {heading!r}"
        return found[2]

    def chapter(self, heading: str) -> str:
        """The text below a heading of the second level, its sections included."""
        found = re.search(
            rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.text, re.DOTALL | re.MULTILINE
        )
        assert found, f"the specification has no chapter {heading!r}"
        return found[1]

    def tables(self, text: str) -> list[list[list[str]]]:
        """The tables in a text: a list of rows of cells each, without the headings."""
        blocks = re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE)
        return [
            [
                [cell.strip() for cell in line.strip().strip("|").split("|")]
                for line in block.splitlines()[2:]
            ]
            for block in blocks
        ]

    def endpoint(self, operation: str) -> str:
        """What the chapter on endpoints says of one operation."""
        found = re.search(
            rf"^\*\*{operation}\*\*(.*?)(?=^\*\*\w+\*\*|^### |\Z)",
            self.chapter("Endpoints"),
            re.DOTALL | re.MULTILINE,
        )
        assert found, f"the specification has no endpoint {operation}"
        return found[1]


@pytest.fixture(scope="session")
def specification() -> Specification:
    if not PLACE.exists():
        pytest.skip(f"NOT CHECKED: the specification is not at {PLACE}")
    return Specification(PLACE.read_text())
