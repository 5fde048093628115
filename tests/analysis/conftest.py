"""Frames of each engine, the recordings, and a simulated exchange."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toolkit.frames import frame
from toolkit.simulation import World, simulate

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
ENGINES = ("pandas", "polars", "polars lazy", "duckdb")


class Engine:
    """One engine: hand a pandas frame over to it, and take its result back as rows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection = duckdb.connect()
        # Days are cut in UTC, wherever the session believes to be.
        self.connection.execute("SET TimeZone = 'America/New_York'")

    def give(self, frame: pd.DataFrame) -> Any:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        match self.name:
            case "pandas":
                return frame
            case "polars":
                return pl.from_arrow(table)
            case "polars lazy":
                return pl.from_arrow(table).lazy()
            case _:
                return self.connection.from_arrow(table)

    def take(self, result: Any) -> list[dict[str, Any]]:
        """Give rows with missing values as None and times as UTC milliseconds."""
        if isinstance(result, pl.LazyFrame):
            result = result.collect()
        if isinstance(result, pd.DataFrame):
            table = pa.Table.from_pandas(result, preserve_index=False)
        else:
            table = result.to_arrow() if isinstance(result, pl.DataFrame) else arrow(result)
        for place, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                plain = table[place].cast(pa.timestamp("ms", "UTC"))
                table = table.set_column(place, field.name, plain)
        return table.to_pylist()


def arrow(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    return relation.to_arrow_table()


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return Engine(request.param)


@pytest.fixture(scope="session")
def world() -> World:
    return simulate(seed=7, size="tiny")


Maker = Callable[[str, str], pd.DataFrame]


@pytest.fixture(scope="session")
def rows_of(world: World) -> Callable[[str, str, str], pd.DataFrame]:
    """Give an account's rows of one table as the fetch function would."""
    kept: dict[tuple[str, str], list[Any]] = {}
    for name, rows in (
        ("userFillsByTime", world.sources.fills),
        ("userNonFundingLedgerUpdates", world.sources.ledger),
        ("builderApprovedFundingByTime", [(row.user, row) for row in world.sources.funding]),
    ):
        for user, row in rows:
            kept.setdefault((name, user), []).append(row)

    def make(name: str, user: str, numbers: str = "exact") -> pd.DataFrame:
        wire = msgspec.json.decode(msgspec.json.encode(kept.get((name, user), [])))
        if name == "userFillsByTime":
            wire = [{k: v for k, v in row.items() if k != "builder"} for row in wire]
        return frame(name, wire, numbers=numbers)

    return make


@pytest.fixture
def recorded() -> Callable[[str], Any]:
    """Give the recorded answer of an operation; skip where the recordings are not there."""

    def read(name: str) -> Any:
        path = RECORDINGS / f"{name}.json"
        if not path.exists():
            pytest.skip(f"no recording {name}")
        return json.loads(path.read_text())["response"]

    return read
