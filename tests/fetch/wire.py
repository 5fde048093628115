"""Rows as they are on the wire."""

from typing import Any


def fill(time: int, tx: int = 0, tid: int = 1) -> dict[str, Any]:
    """Return a fill on the wire; the parameters are its only varying fields."""
    return {
        "coin": "BTC",
        "px": "1.0",
        "sz": "0.0",
        "side": "B",
        "time": time,
        "startPosition": "0.0",
        "dir": "Open Long",
        "closedPnl": "0.0",
        "hash": "0x0",
        "oid": tid,
        "crossed": True,
        "fee": "0.0",
        "tid": tid,
        "feeToken": "USDC",
        "twapId": None,
        "txIndex": tx,
    }
