"""Cases of ``tk.auctions``."""

import numpy as np

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, table

NEEDED = {"status": "start_time_seconds duration_seconds start_gas current_gas end_gas"}
KNOWN = {"at": MONDAY + 10_000_000 * HOUR, "floor": 500.0}


def auctions(n):
    """Return auctions: k starts at hour k, at 600, and is bought at 550 after half its 100 s."""
    k = np.arange(n)
    status = table(
        n,
        start_time_seconds=times(MONDAY + HOUR * k),
        duration_seconds=100,
        start_gas=600.0,
        current_gas=np.where(k == 0, 600.0, np.nan),
        end_gas=np.where(k == 0, np.nan, 550.0),
    )
    return {"status": status}


CASES = [
    Case("auctions.decay", auctions, NEEDED, KNOWN | {"gas": 525.0}),
    Case("auctions.decay", auctions, NEEDED, KNOWN | {"points": 2}, "points"),
]
