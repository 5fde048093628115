"""Sections 2 and 7: conversions, liquidations, their other side, and forced fills."""

import narwhals as nw
import pandas as pd

from toolkit.analysis.common.fill_kinds import (
    is_auto_deleveraging,
    is_conversion,
    is_forced_close,
    is_liquidation,
    is_liquidation_counterparty,
    is_market_trade,
)

DIRECTIONS = [
    *("Open Long", "Close Long", "Short > Long", "Liquidated Cross Long", "Auto-Deleveraging"),
    *("Split Outcome", None, "Settlement", "Net Child Vaults", "Spot Dust Conversion"),
    "Merge Question",
]
FILLS = pd.DataFrame(
    {
        "dir": DIRECTIONS,
        "liquidated_user": [None, "0xAa", "0xAa", *[None] * 8],
        "liquidation_method": [None, "market", "market", *[None] * 8],
        "crossed": pd.array([True, True, False, True, None, *[True] * 6], dtype="boolean"),
    }
)


def marks(frame, account=None):
    given = nw.from_native(frame)
    have = given.collect_schema().names()
    marked = given.select(
        conversion=is_conversion(have),
        trade=is_market_trade(have),
        liquidation=is_liquidation(have, account),
        other_side=is_liquidation_counterparty(have, account),
        deleveraging=is_auto_deleveraging(have),
        forced=is_forced_close(have, account),
    )
    return {name: "".join("01"[mark] for mark in marked[name].to_list()) for name in marked.columns}


def test_directions_of_liquidated_account_are_classified():
    assert marks(FILLS, "0xaA") == {
        "conversion": "00000100001",
        "trade": "11111010000",
        "liquidation": "01110000000",
        "other_side": "00000000000",
        "deleveraging": "00001000000",
        "forced": "01111000000",
    }


def test_liquidation_of_other_account_is_other_side():
    found = marks(FILLS, "0xbb")
    assert found["liquidation"] == "00010000000"
    assert found["other_side"] == "01100000000"
    assert found["forced"] == "00011000000"


def test_account_is_read_from_user_column():
    found = marks(FILLS.assign(user=["0xAA", "0xaa", "0xbb", *["0xcc"] * 8]))
    assert found["liquidation"] == "01010000000"
    assert found["other_side"] == "00100000000"


def test_taker_of_unknown_account_counts_as_liquidated():
    for fills in (FILLS, FILLS.drop(columns="liquidated_user")):
        found = marks(fills)
        assert found["liquidation"] == "01010000000"
        assert found["other_side"] == "00100000000"


def test_direction_alone_marks_liquidations():
    words = marks(FILLS[["dir"]], "0xaa")
    assert words["liquidation"] == "00010000000"
    assert words["forced"] == "00011000000"
    found = marks(FILLS[["crossed"]])
    assert {kind for kind, marked in found.items() if "1" in marked} <= {"trade"}
