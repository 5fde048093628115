import pytest

import toolkit as tk
from tests.archive import bucket


@pytest.fixture(scope="module")
def tiny():
    """Return a session of the tiny simulated exchange."""
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module", name="served")
def _served():
    with bucket.running() as served:
        yield served
