"""Rows as they are on the wire, the rows that a request selects, and sessions over a function."""

import httpx

from toolkit.client import open_session


def session_over(answer, api_key=None, **options):
    """Return a session whose requests go to a function; it is not the default session."""
    transport = httpx.MockTransport(answer)
    options = {"default": False, **options}
    return open_session("http://service.test", api_key, transport=transport, **options)


def fill(time, tx=0, tid=1):
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


_TIMES = ("statusTimestamp", "timestamp", "week", "time", "close_time", "t")


def rows_of_request(rows, body):
    """Return the rows from the start or the cursor of a request to its end."""
    body = body.get("req", body)
    start = int(str(body.get("cursor") or body.get("startTime") or 0).split("_")[0])
    end = body.get("endTime", 2**53)
    times = [next(int(row[name]) for name in _TIMES if name in row) for row in rows]
    return [row for row, time in zip(rows, times, strict=True) if start <= time <= end]
