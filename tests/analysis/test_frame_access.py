"""What helpers do with their frames: columns, addresses, groups, names of coins."""

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis.common import frame_access, grouping, markets
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.value_kinds import ADDRESS
from toolkit.errors import MissingColumns

from .examples import DAY, fills, times


def test_wanted_columns_are_read():
    names = ["coin", "px", "time", "crossed"]
    found = frame_access.pandas_columns(fills(), "fills", names, ["dir", "nonsense"], ["px"])
    pd.testing.assert_frame_equal(found, fills()[[*names, "dir"]])
    for frame, columns, amounts, named in (
        (pd.DataFrame(), names, [], "columns"),
        (fills(), [*names, "nonsense"], [], "nonsense"),
        (fills(), names, ["coin"], "coin"),
    ):
        with pytest.raises(MissingColumns, match=f"^fills: .*{named}"):
            frame_access.pandas_columns(frame, "fills", columns, amounts=amounts)


def test_contract_addresses_are_known():
    found = {
        column.name
        for operation in OPERATIONS.values()
        for table in operation.tables
        for column in table_columns(table)
        if column.kind is ADDRESS
    }
    assert found
    assert found <= set(frame_access.ADDRESSES)


def test_addresses_ignore_case():
    """Other texts keep their case; a column of no text, or of nothing, is left alone."""
    frame = pd.DataFrame({"user": ["0xAb", None], "coin": ["kPEPE", "@1"], "account": [1, 2]})
    found = frame_access.normalise_frame(frame)
    assert found["user"].fillna("").tolist() == ["0xab", ""]
    assert found[["coin", "account"]].equals(frame[["coin", "account"]])
    nobody = pd.DataFrame({"builder": [None, None]}, index=[3, 4])
    assert frame_access.normalise_frame(nobody)["builder"].isna().all()
    names = pd.DataFrame({"user": pd.Categorical(["0xAb", "0xab"])})  # one address
    assert frame_access.normalise_frame(names)["user"].astype("str").tolist() == ["0xab"] * 2


STARTS = {  # of the hour, the day and the week; 1970-01-01 was a Thursday
    -1: (-3_600_000, -DAY, -3 * DAY),
    0: (0, 0, -3 * DAY),
    4 * DAY - 1: (4 * DAY - 3_600_000, 3 * DAY, -3 * DAY),
    4 * DAY: (4 * DAY, 4 * DAY, 4 * DAY),
}


def test_calendar_reads_integers_and_times():
    for time in (list(STARTS), times(STARTS)):
        frame = nw.from_native(pd.DataFrame({"time": time}))
        found = nw.to_native(grouping.add_calendar(frame, ["hour", "day", "week"]))
        rows = found[["hour", "day", "week"]].map(lambda start: start.timestamp() * 1000)
        assert [tuple(row) for row in rows.to_numpy()] == list(STARTS.values())


def test_aggregated_columns_are_refused():
    for by, named in (("time", "time"), ("net", "net"), (["coin", "fee"], "fee")):
        with pytest.raises(ValueError, match=f"'{named}'"):
            grouping.list_keys(by, ("time", "closed_pnl", "net", "fee"))


def test_coin_name_tells_its_dex():
    coins = {"BTC": "hyperliquid", "kPEPE": "hyperliquid", "flx:TSLA": "flx"}
    coins |= {"@107": "spot", "PURR/USDC": "spot", "#12": "outcome"}
    frame = nw.from_native(pd.DataFrame({"coin": list(coins)}))
    rows = frame.select(dex=markets.dex_of(nw.col("coin")))
    assert rows["dex"].to_list() == list(coins.values())
    perps = frame.filter(markets.is_perp(nw.col("coin")))["coin"].to_list()
    assert perps == ["BTC", "kPEPE", "flx:TSLA"]
