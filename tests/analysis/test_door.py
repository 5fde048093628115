"""What the door makes of frames: columns, addresses, groups, names of coins."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.contract.fields import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.value_kinds import ADDRESS
from toolkit.errors import MissingColumns
from toolkit.prepare.door import ADDRESSES, Table
from toolkit.prepare.groups import group_columns, list_keys
from toolkit.prepare.money import dex_of, is_perp

from .examples import DAY, ME, MONDAY, fills, times


def test_wanted_columns_are_read():
    names = ["coin", "px", "time", "crossed"]
    found = Table(fills(), "fills").columns(names, ["dir", "nonsense"], ["px"])
    pd.testing.assert_frame_equal(found, fills()[[*names, "dir"]])
    for frame, columns, amounts, named in (
        (pd.DataFrame(), names, [], "columns"),
        (fills(), [*names, "nonsense"], [], "nonsense"),
        (fills(), names, ["coin"], "coin"),
    ):
        with pytest.raises(MissingColumns, match=f"^fills: .*{named}"):
            Table(frame, "fills").columns(columns, amounts=amounts)


def test_contract_addresses_are_known():
    found = {
        column.name
        for operation in OPERATIONS.values()
        for table in operation.tables
        for column in table_columns(table)
        if column.kind is ADDRESS
    }
    assert found
    assert found <= set(ADDRESSES)


def texts(frame, name):
    return Table(frame, "frame").text(name).texts().fillna("").tolist()


def test_addresses_ignore_case():
    """Other texts keep their case; a column of nothing is missing."""
    frame = pd.DataFrame({"user": ["0xAb", None], "coin": ["kPEPE", "@1"]})
    assert texts(frame, "user") == ["0xab", ""]
    assert texts(frame, "coin") == ["kPEPE", "@1"]
    nobody = pd.DataFrame({"builder": [None, None]}, index=[3, 4])
    assert texts(nobody, "builder") == ["", ""]
    names = pd.DataFrame({"user": pd.Categorical(["0xAb", "0xab"])})  # one address
    found = Table(names, "frame").text("user")
    assert (texts(names, "user"), len(found.present(blank=True))) == (["0xab"] * 2, 1)


STARTS = {  # of the hour, the day and the week; 1970-01-01 was a Thursday
    -1: (-3_600_000, -DAY, -3 * DAY),
    0: (0, 0, -3 * DAY),
    4 * DAY - 1: (4 * DAY - 3_600_000, 3 * DAY, -3 * DAY),
    4 * DAY: (4 * DAY, 4 * DAY, 4 * DAY),
}


def test_calendar_reads_integers_and_times():
    for time in (list(STARTS), times(STARTS)):
        table = Table(pd.DataFrame({"time": time}), "frame")
        found = group_columns(table, ["hour", "day", "week"])
        rows = found.map(lambda start: start.timestamp() * 1000)
        assert [tuple(row) for row in rows.to_numpy()] == list(STARTS.values())


def test_aggregated_columns_are_refused():
    for by, named in (("time", "time"), ("net", "net"), (["coin", "fee"], "fee")):
        with pytest.raises(ValueError, match=f"'{named}'"):
            list_keys(by, ("time", "closed_pnl", "net", "fee"))


def test_coin_name_tells_its_dex():
    coins = {"BTC": "hyperliquid", "kPEPE": "hyperliquid", "flx:TSLA": "flx"}
    coins |= {"@107": "spot", "PURR/USDC": "spot", "#12": "outcome"}
    assert {coin: dex_of(coin) for coin in coins} == coins
    assert [coin for coin in coins if is_perp(coin)] == ["BTC", "kPEPE", "flx:TSLA"]


def test_prepared_fills_show_their_columns():
    rows = pd.DataFrame(
        {
            "user": ME,
            "coin": "BTC",
            "time": times([MONDAY + 2, MONDAY]),
            "side": ["A", "B"],
            "px": [12.0, 10.0],
            "sz": [1.0, 3.0],
            "start_position": [3.0, 0.0],
            "closed_pnl": [2.0, 0.0],
            "fee": [0.5, -0.25],
            "dir": ["Close Long", "Open Long"],
        }
    )
    shown = tk.prepare.fills(rows).frame()
    assert shown["position"].tolist() == [3.0, 2.0]
    assert shown["volume_usd"].tolist() == [30.0, 12.0]
    assert shown["fee_usd"].tolist() == [-0.25, 0.5]
    assert shown["trade"].tolist() == [True, True]
    assert tk.prepare.fills(rows.drop(columns="start_position")).frame()["px"].tolist() == [12, 10]
