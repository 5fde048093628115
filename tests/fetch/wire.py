"""Rows as the service writes them."""

from typing import Any


def fill(time: int, tx: int = 0, tid: int = 1) -> dict[str, Any]:
    """Write a fill; everything that does not tell it from others is always the same."""
    return {
        "coin": "BTC",
        "px": "1.0",
        "sz": "1.0",
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
