"""Columns that are missing in every row: no figure comes from them without a word."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.analysis.directions import MissingWords
from toolkit.errors import MissingColumns

TIMES = pd.to_datetime([0, 1_000, 2_000, 4_000], unit="ms", utc=True)


def tape(**changes: object) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "coin": "XYZ",
            "px": [10.0, 10.5, 10.0, 11.0],
            "sz": [1.0, 2.0, 3.0, 4.0],
            "side": ["B", "A", "B", "A"],
            "time": TIMES,
            "crossed": pd.array([True, False, True, True], dtype="boolean"),
            "dir": ["Open Long", "Close Long", "Open Long", "Close Long"],
        }
    ).assign(**changes)


NO_FLAG = pd.array([pd.NA] * 4, dtype="boolean")
NO_TEXT = pd.array([None] * 4, dtype="str")


def test_quotes_without_crossed_are_refused() -> None:
    with pytest.raises(MissingColumns, match="fills: column crossed is missing in every row"):
        tk.execution.quotes(tape(crossed=NO_FLAG))
    with pytest.raises(MissingColumns, match="crossed"):
        tk.execution.spreads(tape(crossed=NO_FLAG))


def test_quotes_with_one_crossed_are_made() -> None:
    known = pd.array([True, None, None, None], dtype="boolean")
    assert len(tk.execution.quotes(tape(crossed=known))) == 1


def test_quality_without_dir_warns() -> None:
    with pytest.warns(MissingWords, match="column dir is missing in every row") as warned:
        tk.execution.quotes(tape(dir=NO_TEXT))
    assert len(warned) == 1


def test_liquidations_without_dir_are_refused() -> None:
    rows = tape(dir=NO_TEXT, liquidated_user=NO_TEXT)
    with pytest.raises(MissingColumns, match="column dir is missing in every row"):
        tk.liquidations.fills(rows)
    assert len(tk.liquidations.fills(tape(liquidated_user=NO_TEXT))) == 0
    assert len(tk.liquidations.fills(rows.iloc[:0])) == 0


def test_trigger_delay_without_flag_is_refused() -> None:
    orders = pd.DataFrame(
        {
            "oid": [1, 1, 2, 2],
            "status": ["open", "triggered", "open", "filled"],
            "is_trigger": NO_FLAG,
            "order_type": "Stop Market",
            "timestamp": TIMES[0],
            "status_timestamp": TIMES,
        }
    )
    with pytest.raises(MissingColumns, match="orders: column is_trigger is missing"):
        tk.orders.trigger_delay(orders)
    some = pd.array([True, True, None, None], dtype="boolean")
    assert tk.orders.trigger_delay(orders.assign(is_trigger=some))["orders"].tolist() == [1]
