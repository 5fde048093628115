"""Section 7: conversions of outcome tokens are no trades, but they are in the cost basis."""

from typing import Any

import pytest

from tests.engines import Engine
from tests.reality.rows import fills_of
from toolkit.analysis.pnl import attribution


def test_conversions_outside_of_volume(examples: dict[str, Any], engine: Engine) -> None:
    trade = {**examples["7_outcome_conversions"][0], "dir": "Buy", "tid": 9, "fee": "0.02"}
    fills = fills_of([trade, *examples["7_outcome_conversions"]])
    row = engine.take(attribution(engine.give(fills)))[0]
    assert (row["fills"], row["conversions"]) == (1, 4)
    assert row["volume"] == 10.0
    assert row["trading_fee"] == pytest.approx(-0.02)
    assert row["net"] == pytest.approx(-0.02)
