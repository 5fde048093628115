"""What helpers do with their frames."""

import pandas as pd
import pytest

from toolkit.analysis.common import frame_access
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.value_kinds import ADDRESS
from toolkit.errors import MissingColumns

from .examples import fills


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
