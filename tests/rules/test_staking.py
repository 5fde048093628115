"""Yields of a stake, by hand."""

import pytest

from toolkit.rules.staking import WEEKS, apr, apy, implied_fee


def test_apr_is_365_daily_rewards():
    """20 on a stake of 73,000 in a day: 7,300 a year."""
    assert apr(20.0, 73_000.0) == pytest.approx(0.1)


def test_apy_compounds_weeks():
    assert WEEKS == 365 / 7
    assert apy(0.52, 52) == pytest.approx(1.01**52 - 1)
    assert apy(0.2, 2) == pytest.approx(0.21)  # 1.1 * 1.1 - 1
    assert apy(0.1) == pytest.approx((1 + 0.1 * 7 / 365) ** (365 / 7) - 1)


def test_fee_is_share_not_paid():
    assert implied_fee(0.06, 0.08) == pytest.approx(0.25)
    assert implied_fee(0.1, 0.1) == 0
