"""One simulated exchange for all tests of reports."""

import pytest

import toolkit as tk


@pytest.fixture(scope="session")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="session")
def user(session):
    return tk.reports.example_account(session)
