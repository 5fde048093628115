"""Funding outside the time of the fills is separate and never added silently."""

import pandas as pd

from tests.analysis.examples import HOUR, MONDAY, times
from toolkit.pnl import attribution

FILLS = pd.DataFrame(
    {
        "coin": pd.array(["BTC", "BTC", "ETH"], dtype="str"),
        "px": [100.0, 110.0, 50.0],
        "sz": [1.0, 1.0, 4.0],
        "side": pd.array(["B", "A", "A"], dtype="str"),
        "time": times(MONDAY + ms for ms in (10 * HOUR + 5, 13 * HOUR + 5, 12 * HOUR + 5)),
        "start_position": [0.0, 1.0, 0.0],
        "closed_pnl": [0.0, 10.0, 0.0],
        "fee": [0.5, 0.5, 0.5],
    }
)
# Each hour from 9:00 to 16:00. BTC is open at 11, 12, 13; ETH (short 4) from 13 on.
PAID = pd.DataFrame(
    {
        "coin": pd.array(["BTC"] * 8 + ["ETH"] * 8, dtype="str"),
        "time": times(MONDAY + hour * HOUR + 33 for hour in [*range(9, 17)] * 2),
        "usdc": [2.0**n for n in range(16)],
        "szi": [1.0] * 8 + [-4.0] * 6 + [-3.0, -4.0],
    }
)


def test_funding_outside_fills_is_separate():
    """The fills explain neither the BTC payments at 9, 15 and 16 nor that of 3 ETH at 15."""
    row = attribution(FILLS, PAID).iloc[0]
    outside = 2**0 + 2**6 + 2**7 + 2**8 + 2**14
    assert row["funding_outside"] == outside
    assert row["funding"] == 2**16 - 1 - outside
    assert row["net"] == 8.5 + 2**16 - 1 - outside
    assert row["covers"].endswith("without 5 funding rows outside the time of the fills")


def test_open_position_explains_funding_without_size():
    """Without sizes, an open position is enough: ETH at 15 counts."""
    row = attribution(FILLS, PAID.drop(columns=["szi"])).iloc[0]
    assert row["funding_outside"] == 2**0 + 2**6 + 2**7 + 2**8


def test_funding_within_callers_time_counts():
    start, end = MONDAY + 10 * HOUR, MONDAY + 13 * HOUR
    row = attribution(FILLS, PAID, start_time=start, end_time=end).iloc[0]
    assert row["funding"] == 2**1 + 2**2 + 2**3 + 2**9 + 2**10 + 2**11
    assert row["funding"] + row["funding_outside"] == 2**16 - 1


def test_funding_within_requested_time_counts():
    """A complete fetched frame has the time range, also without fills at its edges."""
    fills = FILLS.copy()
    fills.attrs["toolkit"] = {
        "complete": "yes",
        "rows": 3,
        "asked_at": "2025-09-01T23:00:00.000Z",
        "parameters": {"start": MONDAY + 9 * HOUR, "end": MONDAY + 15 * HOUR},
    }
    row = attribution(fills, PAID).iloc[0]
    assert row["funding_outside"] == 2**6 + 2**7 + 2**14 + 2**15
    # Rows were removed, so only positions that the fills show count.
    cut = fills[fills["coin"] == "ETH"]
    paid = PAID[PAID["coin"] == "ETH"]
    assert attribution(cut, paid)["funding_outside"].item() == 2**8 + 2**9 + 2**10 + 2**14


def test_funding_without_fills_is_outside():
    later = PAID.assign(time=PAID["time"] + pd.Timedelta(days=3)).drop(columns=["szi"])
    rows = attribution(FILLS, later[later["coin"] == "BTC"], by="day")
    found = rows[["fills", "net", "funding_outside"]].to_numpy().tolist()
    assert found == [[3, 8.5, 0.0], [0, 0.0, 255.0]]
