"""Hand-made rows in the form of the live service, by section of docs/live_service.md."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.engines import ENGINES, Engine

EXAMPLES = Path(__file__).with_name("examples.json")


@pytest.fixture
def examples():
    """Return the hand-made rows: one entry for each section, such as ``2_liquidation_fills``."""
    found: dict[str, Any] = json.loads(EXAMPLES.read_text())
    return found


@pytest.fixture(scope="session", params=ENGINES)
def engine(request):
    return Engine(request.param)
