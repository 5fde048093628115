"""Section 3: the cost of a spot buy contains its token fee, which counts only once."""

from decimal import Decimal

import pytest

from tests.reality.rows import fills_of
from toolkit.pnl import attribution

NET = Decimal("98.460539")  # -1000 + 1099.23 - 0.769461: the cash of both fills


def test_attribution_equals_spot_cash(examples):
    fills = fills_of(examples["3_spot_fills"], "exact")
    row = attribution(fills).iloc[0]
    assert row["net"] == NET
    assert row["closed_pnl"] == Decimal("99.23")
    assert row["trading_fee"] == Decimal("-0.769461")
    assert row["fees_in_cost"] == Decimal("-0.7")  # 0.07 HYPE at 10
    assert (row["unpriced_fees"], row["at_par"]) == (0, 0)
    assert row["equity_change"] is None or row.isna()["equity_change"]


def test_unsold_spot_has_fee_in_cost(examples):
    """A buy realises nothing: its fee stays in the cost."""
    row = attribution(fills_of(examples["3_spot_fills"][:1], "exact")).iloc[0]
    assert (row["net"], row["trading_fee"]) == (0, 0)
    assert row["fees_in_cost"] == Decimal("-0.7")


def test_engines_agree_on_spot_net(examples, engine):
    fills = fills_of(examples["3_spot_fills"])
    row = engine.take(attribution(engine.give(fills), by="dex"))[0]
    assert row["dex"] == "spot"
    assert row["net"] == pytest.approx(98.460539, abs=1e-12)
    assert row["fees_in_cost"] == pytest.approx(-0.7)
