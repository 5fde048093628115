"""How rows are told apart and paged, by the words of the specification alone."""

from typing import Any

Row = dict[str, Any]


def key(row: Row) -> tuple[Any, ...]:
    """Give what an operation orders its rows by: order events, funding rows, or fills."""
    if "order" in row:
        return row["statusTimestamp"], row["txIndex"]
    if "delta" in row:
        return row["time"], row["user"], row["delta"]["coin"]
    return row["time"], row["txIndex"]


def cursor(row: Row) -> str:
    """Write the cursor that leads on behind a row."""
    return "_".join(map(str, key(row)))


def tids(rows: list[Row]) -> list[int]:
    return [row["tid"] for row in rows]
