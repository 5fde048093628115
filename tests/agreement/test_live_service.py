"""docs/live_service.md lists what the contract has beyond the specification, with its tests."""

import inspect
import re
import tomllib
from pathlib import Path

from toolkit.contract import records
from toolkit.contract.fields import record_fields

ROOT = Path(__file__).parents[2]
KNOWN = tomllib.loads((ROOT / "docs/live_service.toml").read_text())
SECTIONS = {item["number"]: item for item in KNOWN["section"]}
BEYOND = {
    (field.beyond, field.path)
    for _, record in inspect.getmembers(records, inspect.isclass)
    if issubclass(record, records.Record)
    for field in record_fields(record)
    if field.beyond
}


def section_text(number):
    """Return the statements of a section."""
    return " ".join(f"{fact['statement']} {fact['does']}" for fact in SECTIONS[number]["fact"])


def wire_name(field):
    first, *rest = field.split("_")
    return first + "".join(part.capitalize() for part in rest)


def test_sections_have_facts_and_real_tests():
    assert list(SECTIONS) == sorted(SECTIONS)
    for section in SECTIONS.values():
        assert section["tests"]
        assert [path for path in section["tests"] if not (ROOT / path).is_file()] == []
        for fact in section["fact"]:
            assert fact.keys() == {"statement", "sure", "does"}
            assert fact["sure"] in KNOWN["sure"]
            assert fact["does"]


def test_sections_name_fields_and_operations_beyond():
    spans = {
        number: re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section_text(number))))
        for number in SECTIONS
    }
    missing = {
        (number, field)
        for number, field in BEYOND
        if not {field, wire_name(field)} & {*spans[number]}
    }
    assert missing == set()


def test_reference_marks_fields_beyond():
    pages = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    mark = r"(\.\w+)?`.*\(beyond the specification: docs/live_service.md, section "
    missing = {
        field
        for _, field in BEYOND
        if not re.search(rf"`([\w.]*\.)?{wire_name(field)}{mark}", pages)
    }
    assert missing == set()
