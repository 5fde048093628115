"""Hand-made rows in the form of the live service, by section of docs/live_service.md."""

import json
from pathlib import Path

import pytest

import toolkit as tk
from tests.worlds import world_of

EXAMPLES = Path(__file__).with_name("examples.json")


def read_examples():
    """Return the hand-made rows, such as ``2_liquidation_fills``, without the notes in them."""

    def without_note(row):
        return {name: value for name, value in row.items() if name != "about"}

    return json.loads(EXAMPLES.read_text(), object_hook=without_note)


@pytest.fixture
def examples():
    return read_examples()


@pytest.fixture(scope="module")
def world():
    return world_of("tiny")


@pytest.fixture(scope="module")
def session():
    with tk.local(seed=7, size="tiny", default=False) as session:
        yield session
