"""Recorded and hand-made rows in every helper of profit and loss."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from tests.reality.rows import fills_of
from toolkit import pnl
from toolkit.frames import frame

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
SECTIONS = ("2_liquidation_fills", "3_spot_fills", "6_fee_token", "7_outcome_conversions")
SIZES = {"HYPE": 2, "flx:TSLA": 3}
HELPERS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "attribution": lambda fills: pnl.attribution(fills, by=["coin", "dir"]),
    "audit": lambda fills: pnl.audit(fills, SIZES),
    "positions": lambda fills: pnl.positions(fills, SIZES),
    "unrealised": lambda fills: pnl.unrealised(fills, {"HYPE": 25.0, "flx:TSLA": 245.0}, SIZES),
    "fifo": lambda fills: pnl.lots(fills, "fifo"),
    "lifo": lambda fills: pnl.lots(fills, "lifo"),
    "average": lambda fills: pnl.lots(fills, "average"),
    "round_trips": pnl.round_trips,
    "equity": pnl.equity,
}


def recorded(name, operation, numbers):
    path = RECORDINGS / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recording {name}")
    rows = json.loads(path.read_text())["response"]
    result: pd.DataFrame = frame(operation, rows, numbers=numbers)
    return result


@pytest.mark.parametrize("numbers", ["float", "exact"])
@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("section", SECTIONS)
def test_helpers_keep_closed_pnl_of_rows(examples, section, helper, numbers):
    """The gains of helpers equal those of the rows, and the audit confirms them."""
    rows = [row for row in examples[section] if "counterparty" not in row.get("about", "")]
    result = HELPERS[helper](fills_of(rows, numbers))
    closed = float(sum(Decimal(row["closedPnl"]) for row in rows))
    if helper == "audit":
        assert (result["difference"] == 0).all()
    for name in ("closed_pnl", "expected_closed_pnl", "gross", "realised"):
        if name in result and helper != "equity" and len(result):
            assert float(result[name].sum()) == pytest.approx(closed), name


@pytest.mark.parametrize("numbers", ["float", "exact"])
def test_recorded_fills_of_2023_have_known_pnl(numbers):
    """500 fills of five minutes lack trade ids, fee tokens and transaction indexes."""
    fills = recorded("userFills", "userFills", numbers)
    row = pnl.attribution(fills).iloc[0]
    assert (row["fills"], row["missing_amounts"], row["unpriced_fees"]) == (500, 0, 0)
    assert float(row["net"]) == pytest.approx(-152.586132)
    trips = pnl.round_trips(fills)
    assert float(trips["gross"].sum()) == pytest.approx(-152.586132)
    unknown = trips["status"].isin(["late", "broken"])
    assert unknown.sum() == 193
    assert trips.loc[unknown, ["entry_px", "return_"]].isna().all(axis=None)
    assert trips.loc[~unknown, "return_"].notna().all()
    assert pnl.positions(fills, {})["chain_break"].sum() == 167
    assert pnl.lots(fills).loc[lambda lots: lots["opened"].isna(), "realised"].isna().all()


@pytest.mark.parametrize("numbers", ["float", "exact"])
def test_recorded_funding_outside_fills_is_separate(numbers):
    """Funding of two weeks with fills of five minutes: 695 USD were once added silently."""
    fills = recorded("userFills", "userFills", numbers)
    paid = recorded("userFunding", "userFunding", numbers)
    row = pnl.attribution(fills, paid).iloc[0]
    assert float(row["funding_outside"]) == pytest.approx(float(paid["usdc"].sum()))
    assert pd.isna(row["funding"])
    assert float(row["net"]) == pytest.approx(-152.586132)
    assert "funding rows outside the time of the fills" in row["covers"]
    curve = pnl.equity(fills, paid)
    assert float(curve["realised"].iloc[-1]) == pytest.approx(float(row["net"]))
