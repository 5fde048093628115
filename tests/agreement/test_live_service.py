"""docs/live_service.md lists what the contract has beyond the specification, with its tests."""

import inspect
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from toolkit.contract import records
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.fields import beyond_fields

ROOT = Path(__file__).parents[2]
KNOWN: dict[str, Any] = tomllib.loads((ROOT / "docs/live_service.toml").read_text())
SECTIONS: dict[int, dict[str, Any]] = {item["number"]: item for item in KNOWN["section"]}
FACTS = [(number, fact) for number, item in SECTIONS.items() for fact in item["fact"]]
EVERY = pytest.mark.parametrize(
    ("number", "fact"), FACTS, ids=[f"{n}: {fact['statement'][:30]}" for n, fact in FACTS]
)


def section_text(number):
    """Return the statements of a section."""
    return " ".join(
        " ".join((fact["statement"], fact["does"])) for fact in SECTIONS[number]["fact"]
    )


def test_page_has_every_fact():
    result = runpy.run_path(str(ROOT / "docs/generate.py"), run_name="generate")[
        "live_service_page"
    ]()
    assert (ROOT / "docs/live_service.md").read_text() == result
    for _, fact in FACTS:
        assert " ".join(fact["statement"].split()) in result


def test_sections_keep_their_numbers():
    assert list(SECTIONS) == list(range(1, 10))


@EVERY
def test_fact_has_certainty(number, fact):
    assert fact["sure"] in KNOWN["sure"]
    assert fact["does"]
    assert set(fact) <= {"statement", "sure", "does", "tests"}


@EVERY
def test_fact_names_real_tests(number, fact):
    named = fact.get("tests", SECTIONS[number].get("tests", []))
    assert named
    for name in named:
        path, _, test = name.partition("::")
        text = (ROOT / path).read_text()
        assert not test or f"def {test}(" in text, name


BEYOND = sorted(
    {
        (section, field)
        for _, record in inspect.getmembers(records, inspect.isclass)
        if issubclass(record, records.Record)
        for field, section in beyond_fields(record).items()
    }
)


@pytest.mark.parametrize(("section", "field"), BEYOND)
def test_beyond_field_is_named_in_section(section, field):
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section_text(section)))))
    first, *rest = field.split("_")
    wire = first + "".join(part.capitalize() for part in rest)
    assert {field, wire} & named, f"{field}: name it in section {section}"


@pytest.mark.parametrize("type_", EXTRA_OPERATIONS)
def test_extra_operation_is_in_section_nine(type_):
    assert f"`{type_}`" in section_text(9)


@pytest.mark.parametrize(("section", "field"), BEYOND)
def test_reference_marks_field_beyond(section, field):
    pages = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    first, *rest = field.split("_")
    wire = first + "".join(part.capitalize() for part in rest)
    marked = (
        rf"`([\w.]*\.)?{wire}(\.\w+)?`.*\(beyond the specification: docs/live_service.md, section "
    )
    assert re.search(marked, pages), f"{field}: no page of the reference marks it"
