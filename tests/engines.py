"""The data frame engines of the helpers: conversion of frames, and of results to rows."""

from functools import cached_property

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

from toolkit.analysis.common.memory_frames import spark_frame

ENGINES = ("pandas", "polars", "polars lazy", "duckdb")


class Engine:
    """An engine: conversion from pandas, and of its results to rows."""

    def __init__(self, name, session=None):
        self.name, self.session = name, session

    @cached_property
    def connection(self):
        """A connection of its own. Days are those of UTC, independent of the session's zone."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'America/New_York'")
        return connection

    def give(self, frame):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        match self.name:
            case "pandas":
                return frame
            case "polars":
                return pl.from_arrow(table)
            case "polars lazy":
                return pl.from_arrow(table).lazy()
            case "spark":
                return spark_frame(self.session, table)
            case _:
                return self.connection.from_arrow(table)

    def take(self, result):
        """Return rows with missing values as None and times as UTC milliseconds."""
        table = as_table(result)
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                plain = table[place].cast(pa.timestamp("ms", "UTC"))
                table = table.set_column(place, field.name, plain)
        return table.to_pylist()

    def owns(self, result):
        """Return whether a frame belongs to this engine."""
        if self.session is not None:
            return hasattr(result, "toArrow")
        kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "polars lazy": pl.LazyFrame}
        return isinstance(result, kinds.get(self.name, duckdb.DuckDBPyRelation))


def as_table(result):
    if isinstance(result, pl.LazyFrame):
        result = result.collect()
    if isinstance(result, pd.DataFrame):
        return pa.Table.from_pandas(result, preserve_index=False)
    if hasattr(result, "toArrow"):
        return result.toArrow()
    return result.to_arrow() if isinstance(result, pl.DataFrame) else result.to_arrow_table()
