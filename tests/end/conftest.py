import pytest
import stamina


@pytest.fixture
def no_waiting():
    """Retry without waits, and often enough for a failing network."""
    with stamina.set_testing(True, attempts=12):
        yield
