"""Section 3: the cost of a spot buy contains its token fee, which counts only once."""

import pytest

import toolkit as tk
from toolkit.pnl import attribution


def test_attribution_equals_spot_cash(examples):
    """The net is the cash of both fills, and 0.07 HYPE at 10 are in the cost."""
    row = attribution(tk.frame("userFills", examples["3_spot_fills"]), by="dex").iloc[0]
    assert row["dex"] == "spot"
    assert row["net"] == pytest.approx(-1000 + 1099.23 - 0.769461, abs=1e-12)
    assert row["closed_pnl"] == pytest.approx(99.23)
    assert row["trading_fee"] == pytest.approx(-0.769461)
    assert row["fees_in_cost"] == pytest.approx(-0.7)
    assert (row["unpriced_fees"], row["at_par"]) == (0, 0)
    assert row.isna()["equity_change"]


def test_unsold_spot_has_fee_in_cost(examples):
    """A buy realises nothing: its fee stays in the cost."""
    row = attribution(tk.frame("userFills", examples["3_spot_fills"][:1])).iloc[0]
    assert (row["net"], row["trading_fee"]) == (0, 0)
    assert row["fees_in_cost"] == pytest.approx(-0.7)
