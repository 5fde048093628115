"""Small frames, worked out by hand, and what tests of errors share."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa

EXACT = pd.ArrowDtype(pa.decimal128(36, 18))
HOUR = 3_600_000
DAY = 24 * HOUR
MONDAY = 1_756_684_800_000  # 2025-09-01
ME, OTHER = "0x" + "a" * 40, "0x" + "B" * 40


def times(ms):
    stamps = np.array(list(ms), dtype=np.int64).view("M8[ms]")
    return pd.Series(stamps).dt.tz_localize("UTC")


def exact(frame):
    """Return the same frame with exact numbers, from the shortest text of each float."""
    result = frame.copy()
    for name in frame.columns:
        if frame[name].dtype == float:
            texts = [None if v != v else Decimal(repr(float(v))) for v in frame[name]]
            result[name] = pd.array(texts, dtype=EXACT)
    return result


NONE = float("nan")
#  coin       px     sz   side  ms            closed  fee    builder deployer token  crossed dir
_FILLS = [
    ("BTC", 100.0, 1.0, "B", 0, 0.0, 0.05, 0.01, NONE, "USDC", True, "Open Long"),
    ("BTC", 110.0, 1.0, "A", HOUR, 10.0, 0.06, 0.01, NONE, "USDC", True, "Close Long"),
    ("flx:TSLA", 200.0, 2.0, "B", DAY, 0.0, 0.1, NONE, 0.05, "USDC", True, "Open Long"),
    ("PURR/USDC", 0.5, 100.0, "B", DAY + 1, 0.0, 0.07, NONE, NONE, "PURR", True, "Buy"),
    ("@107", 2.0, 10.0, "A", 7 * DAY, 3.0, 0.02, NONE, NONE, "USDC", True, "Sell"),
    ("ETH", 3000.0, 1.0, "A", 10 * DAY, -5.0, -0.3, NONE, NONE, "USDC", False, "Close Long"),
    ("ETH", 3000.0, 1.0, "A", 10 * DAY, 0.0, 1.0, NONE, NONE, "HYPE", False, "Open Short"),
]
_NAMES = ["coin", "px", "sz", "side", "time", "closed_pnl", "fee", "builder_fee", "deployer_fee"]
_NAMES += ["fee_token", "crossed", "dir"]


def fills():
    frame = pd.DataFrame(_FILLS, columns=_NAMES)
    frame["time"] = times(MONDAY + ms for ms in frame["time"])
    frame.insert(0, "user", ME)
    return frame


def funding():
    at = times([MONDAY, MONDAY + DAY, MONDAY + DAY + HOUR])
    rows = {"user": ME, "time": at, "coin": ["BTC", "SOL", "flx:TSLA"], "usdc": [-1.0, 0.5, -0.25]}
    return pd.DataFrame(rows)


def ledger():
    """Deposit 1000, withdraw 50 + 1, send 20 + 1 away, 5 to spot, get 7, and one unknown."""
    rows = [
        {"type": "deposit", "usdc": 1000.0},
        {"type": "withdraw", "usdc": 50.0, "fee": 1.0},
        {"type": "internalTransfer", "usdc": 20.0, "fee": 1.0, "user": ME, "destination": OTHER},
        {"type": "accountClassTransfer", "usdc": 5.0, "to_perp": False},
        {"type": "subAccountTransfer", "usdc": 7.0, "user": OTHER, "destination": ME},
        {"type": "liquidation", "liquidated_ntl_pos": 500.0, "account_value": -3.0},
        {"type": "somethingNew", "usdc": 99.0},
    ]
    frame = pd.DataFrame(rows)
    for name in ("user", "destination"):
        frame[name] = frame[name].astype("str")
    frame["to_perp"] = frame["to_perp"].astype("boolean")
    frame.insert(0, "time", times(MONDAY + n * HOUR for n in range(len(rows))))
    return frame


def records(frame):
    """Return the rows of a frame as mappings, with None for missing values."""
    return pa.Table.from_pandas(frame, preserve_index=False).to_pylist()


def wrong_errors(table):
    """Return what the calls of a table (call, class, named) do instead of raising such an error."""
    wrong = []
    for call, category, named in table:
        try:
            wrong.append((named, call()))
        except category as error:
            if named not in str(error):
                wrong.append((named, error))
    return wrong
