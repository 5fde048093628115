"""Keys and cursors of rows, from the words of the specification only."""

from typing import Any

Row = dict[str, Any]


def key(row):
    """Return the key by which an operation orders a row: order event, funding row or fill."""
    if "order" in row:
        return row["statusTimestamp"], row["txIndex"]
    if "delta" in row:
        return row["time"], row["user"], row["delta"]["coin"]
    return row["time"], row["txIndex"]


def cursor(row):
    """Return the cursor after a row."""
    return "_".join(map(str, key(row)))


def tids(rows):
    return [row["tid"] for row in rows]
