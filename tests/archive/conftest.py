import pytest

import toolkit as tk


@pytest.fixture(scope="module")
def tiny():
    """Return a session of the tiny simulated exchange."""
    return tk.local(seed=7, size="tiny", default=False)
