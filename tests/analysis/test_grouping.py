"""What rows are grouped by."""

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis.common import grouping

from .examples import MONDAY, times


def test_calendar_reads_integers_and_times(engine):
    for time in ([MONDAY + 1], times([MONDAY + 1])):
        frame = nw.from_native(engine.give(pd.DataFrame({"time": time})))
        rows = engine.take(nw.to_native(grouping.add_calendar(frame, ["week", "hour"])))
        for name in ("week", "hour"):
            assert rows[0][name].timestamp() == MONDAY / 1000


def test_calendar_borders_before_1970(engine):
    """1970-01-01 was a Thursday: the week before its Monday ends at the 345,600th second."""
    day = 86_400_000
    starts = {
        -1: (-3_600_000, -day, -3 * day),
        0: (0, 0, -3 * day),
        4 * day - 1: (4 * day - 3_600_000, 3 * day, -3 * day),
        4 * day: (4 * day, 4 * day, 4 * day),
    }
    frame = nw.from_native(engine.give(pd.DataFrame({"time": times(list(starts))})))
    take = engine.take(nw.to_native(grouping.add_calendar(frame, ["hour", "day", "week"])))
    rows = [tuple(row[name].timestamp() * 1000 for name in ("hour", "day", "week")) for row in take]
    assert rows == list(starts.values())


@pytest.mark.parametrize("by", ["time", "closed_pnl", "net", ["coin", "fee"]])
def test_aggregated_column_is_refused(by):
    with pytest.raises(ValueError, match="it is an aggregated column"):
        grouping.list_keys(by, ("time", "closed_pnl", "net", "fee"))
