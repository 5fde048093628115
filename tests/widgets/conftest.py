"""One simulated exchange for all tests of widgets."""

import pytest

import toolkit as tk


@pytest.fixture(scope="session")
def exchange():
    with tk.local(seed=7, size="tiny", default=False) as session:
        yield session


@pytest.fixture
def default(exchange):
    """Make it the session that cells ask without naming one."""
    with tk.local(seed=7, size="tiny") as session:
        yield session
