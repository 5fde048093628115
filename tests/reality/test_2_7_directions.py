"""Sections 2 and 7: conversions, liquidations, their other side, and forced fills."""

import pandas as pd

from toolkit.prepare.door import Table
from toolkit.prepare.roles import read_roles

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
    roles = read_roles(Table(frame, "fills"), account)._asdict()
    return {name: "".join("01"[mark] for mark in flags.tolist()) for name, flags in roles.items()}


def test_directions_of_liquidated_account_are_classified():
    assert marks(FILLS, "0xaA") == {
        "conversion": "00000100001",
        "swap": "00000000000",
        "trade": "11111010000",
        "liquidated": "01110000000",
        "counterparty": "00000000000",
        "deleveraged": "00001000000",
        "forced": "01111000000",
    }


def test_liquidation_of_other_account_is_other_side():
    found = marks(FILLS, "0xbb")
    assert found["liquidated"] == "00010000000"
    assert found["counterparty"] == "01100000000"
    assert found["forced"] == "00011000000"


def test_account_is_read_from_user_column():
    found = marks(FILLS.assign(user=["0xAA", "0xaa", "0xbb", *["0xcc"] * 8]))
    assert found["liquidated"] == "01010000000"
    assert found["counterparty"] == "00100000000"


def test_taker_of_unknown_account_counts_as_liquidated():
    for fills in (FILLS, FILLS.drop(columns="liquidated_user")):
        found = marks(fills)
        assert found["liquidated"] == "01010000000"
        assert found["counterparty"] == "00100000000"


def test_direction_alone_marks_liquidations():
    words = marks(FILLS[["dir"]], "0xaa")
    assert words["liquidated"] == "00010000000"
    assert words["forced"] == "00011000000"
    found = marks(FILLS[["crossed"]])
    assert {kind for kind, marked in found.items() if "1" in marked} <= {"trade"}
