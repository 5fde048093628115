"""The simulated exchange that the tests of fetching share."""

import pytest

import toolkit as tk


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def users(session):
    return list(session.world["users"][:5])
