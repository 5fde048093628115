"""What helpers do with their frames."""

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toolkit.analysis.common import frame_access
from toolkit.contract.columns import table_columns
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.value_kinds import ADDRESS
from toolkit.errors import MissingColumns

from .examples import as_numbers, exact, fills


def test_nested_column_of_exact_frame_is_dropped():
    frame = exact(fills())
    frame["legs"] = pd.array([[1]] * len(frame), dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    opened = frame_access.open_frame(frame, "fills")
    assert "legs" not in opened.columns
    assert opened.implementation.is_pyarrow()


def test_frame_without_columns_is_refused():
    with pytest.raises(MissingColumns, match="fills: the frame has no columns"):
        frame_access.open_frame(pd.DataFrame(), "fills")


def test_mixed_numbers_are_refused():
    mixed = nw.from_native(exact(fills()).assign(px=1.0))
    with pytest.raises(MissingColumns, match="exact and float numbers are mixed"):
        frame_access.number_kind(mixed, ["px", "sz"], "fills")


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_pandas_columns_equal_on_each_engine(engine, kind):
    frame = as_numbers(fills(), kind)
    names = ["coin", "px", "time", "crossed"]
    result = frame_access.pandas_columns(
        engine.give(frame), "fills", names, ["dir", "nonsense"], ["px"]
    )
    plain = fills()[[*names, "dir"]]
    pd.testing.assert_frame_equal(result, plain, check_dtype=False)
    assert (result["px"].dtype, result["time"].dtype) == (plain["px"].dtype, plain["time"].dtype)
    with pytest.raises(MissingColumns, match="fills: the frame lacks the column nonsense"):
        frame_access.pandas_columns(engine.give(frame), "fills", [*names, "nonsense"])
    with pytest.raises(MissingColumns, match="coin is String"):
        frame_access.pandas_columns(engine.give(frame), "fills", names, amounts=["coin"])


def test_nan_is_missing(engine):
    """Polars and DuckDB take NaN for a number, and a sum with one of them is NaN."""
    frame = engine.give(pd.DataFrame({"sz": [1.0, 2.0]}))
    odd = nw.from_native(frame).with_columns(
        sz=nw.when(nw.col("sz") > 1).then(float("nan")).otherwise(nw.col("sz"))
    )
    opened = frame_access.open_as_floats(nw.to_native(odd), "frame", ["sz"])
    assert engine.take(nw.to_native(opened.select(nw.col("sz").sum()))) == [{"sz": 1.0}]


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


def test_addresses_ignore_case(engine):
    """Other texts keep their case; a column of no text, or of nothing, is left alone."""
    frame = pd.DataFrame({"user": ["0xAb", None], "coin": ["kPEPE", "@1"], "account": [1, 2]})
    rows = engine.take(frame_access.normalise_frame(engine.give(frame)))
    assert [row["user"] for row in rows] == ["0xab", None]
    assert [row["coin"] for row in rows] == ["kPEPE", "@1"]
    assert [row["account"] for row in rows] == [1, 2]
    nobody = pd.DataFrame({"builder": [None, None]}, index=[3, 4])
    assert frame_access.normalise_frame(nobody)["builder"].isna().all()


CATEGORIES = {
    "polars": lambda names: pl.DataFrame({"user": names}, {"user": pl.Categorical}),
    "polars enum": lambda names: pl.DataFrame({"user": names}, {"user": pl.Enum(names)}),
    "polars lazy": lambda names: pl.LazyFrame({"user": names}, {"user": pl.Categorical}),
    "arrow": lambda names: pa.table({"user": pa.array(names).dictionary_encode()}),
    "pandas with arrow": lambda names: pd.DataFrame(
        {"user": pd.Series(pa.array(names).dictionary_encode(), dtype=ARROW_CATEGORY)}
    ),
    "duckdb enum": lambda names: duckdb.sql(
        f"SELECT unnest({names})::ENUM ({str(sorted(set(names)))[1:-1]}) AS user"
    ),
}
ARROW_CATEGORY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_of_addresses_ignore_case(kind):
    """Two categories may be one address, in frames that are not pandas', too."""
    native = frame_access.normalise_frame(CATEGORIES[kind](["0xAb", "0xab"]))
    table = nw.from_native(native).lazy().collect("pyarrow")
    assert table["user"].to_list() == ["0xab", "0xab"]
    assert table.schema["user"] == nw.String()
