from collections.abc import Iterator

import pytest
import stamina


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Try again at once, and often enough for a network that fails."""
    with stamina.set_testing(True, attempts=12):
        yield
