"""The data frame engines of the helpers, and their results as Arrow tables."""

import pandas as pd
import polars as pl
import pyarrow as pa


def as_table(result):
    if isinstance(result, pl.LazyFrame):
        result = result.collect()
    if isinstance(result, pd.DataFrame):
        return pa.Table.from_pandas(result, preserve_index=False)
    if hasattr(result, "toArrow"):
        return result.toArrow()
    return result.to_arrow() if isinstance(result, pl.DataFrame) else result.to_arrow_table()


def rows_of(result):
    """Return rows with missing values as None and times as UTC milliseconds."""
    table = as_table(result)
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            plain = table[place].cast(pa.timestamp("ms", "UTC"))
            table = table.set_column(place, field.name, plain)
    return table.to_pylist()
