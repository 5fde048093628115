"""Cases of ``tk.auctions``."""

import numpy as np

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, table

NEEDED = {"status": "start_time_seconds duration_seconds start_gas current_gas end_gas"}
AT = MONDAY + 10_000_000 * HOUR


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


def case(at_scale, note="", **arguments):
    arguments = {"at": AT, "floor": 500.0, **arguments}
    return Case("auctions.decay", auctions, at_scale, NEEDED, arguments, note)


def decay_at_scale(frames, result):
    assert len(result) == len(frames["status"])
    assert (result["per_hour"] == -3600.0).all()
    assert (result["gas"].iloc[1:] == 550.0).all()
    wait = (result["gas_time"] - result["start"]).dt.total_seconds()
    assert (wait == 75.0).all()
    done = result.iloc[1:]
    assert np.allclose(done["premium"], 0.1)
    assert ((done["bought_at"] - done["start"]).dt.total_seconds() == 50.0).all()


def points_at_scale(frames, result):
    assert result["line_gas"].tolist()[:2] == [600.0, 500.0]
    assert result["line_gas"].sum() == 1100.0 * len(frames["status"])


CASES = [case(decay_at_scale, gas=525.0), case(points_at_scale, note="points", points=2)]
