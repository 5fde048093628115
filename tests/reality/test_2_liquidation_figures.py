"""Liquidations by market order in helpers: docs/live_service.md, section 2."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import MissingColumns

LIQUIDATED, OTHER = "0x" + "a" * 40, "0x" + "b" * 40


@pytest.fixture
def rows(examples):
    """Return the opening of a long, its liquidation, and the other side of it."""
    for row in examples["2_liquidation_fills"]:
        row.pop("about", None)
    frame = tk.frame("userFills", examples["2_liquidation_fills"])
    return frame.assign(user=[LIQUIDATED, LIQUIDATED, OTHER])


def test_liquidated_and_counterparty_are_distinguished(rows):
    found = tk.liquidations.fills(rows)
    assert found["liquidation_side"].tolist() == ["liquidated", "counterparty"]
    assert found["user"].tolist() == [LIQUIDATED, OTHER]
    assert tk.liquidations.fills(rows, "counterparty")["start_position"].tolist() == [-2.0]
    assert list(found.columns)[:-1] == list(rows.columns)


def test_frame_names_its_account(rows):
    mine = rows[rows["user"] == OTHER].drop(columns="user")
    assert tk.liquidations.fills(mine, account=OTHER)["liquidation_side"].item() == "counterparty"
    assert (
        tk.liquidations.fills(mine, account=LIQUIDATED)["liquidation_side"].item() == "liquidated"
    )
    with pytest.raises(ValueError, match=r"unknown side .* choose one of"):
        tk.liquidations.fills(mine, "maker")
    with pytest.raises(MissingColumns, match="liquidated_user"):
        tk.liquidations.fills(pd.DataFrame({"px": [1.0]}))


def test_deleveraged_fills_are_returned_on_request(rows):
    odd = rows.assign(dir=["Auto-Deleveraging", "Liquidated Cross Long", "Buy"])
    odd["liquidated_user"] = None
    odd["liquidation_method"] = None
    every = tk.liquidations.fills(odd, ["liquidated", "counterparty", "deleveraged"])
    assert every["liquidation_side"].tolist() == ["deleveraged", "liquidated"]
    assert len(tk.liquidations.fills(odd)) == 1


def test_routing_excludes_forced_closes(rows):
    """A liquidation cannot be routed through a builder; its other side can."""
    result = tk.builders.routing(rows, "0xb")
    assert result[["fills", "direct", "unroutable"]].iloc[0].tolist() == [3, 2, 1]
    assert result["unroutable_usd"].item() == pytest.approx(21.2 * 6.2)
    assert result["direct_usd"].item() == pytest.approx((30.0 + 21.2) * 6.2)


def test_conversions_add_no_volume(examples):
    """Section 7: splits and merges of outcomes count for no builder."""
    fills = tk.frame("userFills", examples["7_outcome_conversions"])
    result = tk.builders.routing(fills, "0xb").iloc[0]
    assert (result["fills"], result["volume"]) == (0, 0.0)
    carried = fills.assign(builder="0xb", builder_fee=0.1)
    assert tk.builders.revenue(carried)["fills"].item() == 0
    trade = carried.assign(dir="Buy", coin="#1230")
    assert tk.builders.revenue(trade)["volume"].item() == pytest.approx(40.0)


def test_simulated_liquidations_have_two_sides():
    session = tk.local(seed=7, size="tiny", default=False)
    fills = tk.many(tk.user_fills_by_time, session.world["users"], 0, session=session)
    found = tk.liquidations.fills(fills)
    mine = found[found["liquidation_side"] == "liquidated"]
    assert len(mine)
    market = mine[mine["liquidation_method"] == "market"]
    others = found[found["liquidation_side"] == "counterparty"]
    assert set(market["tid"]) <= set(others["tid"])
    assert (
        mine["dir"].str.startswith("Liquidated") | (mine["liquidated_user"] == mine["user"])
    ).all()
