"""What rows are grouped by."""

import pandas as pd
import pytest

from toolkit.prepare import groups as grouping
from toolkit.prepare.door import Table

from .examples import times

DAY = 86_400_000
STARTS = {  # of the hour, the day and the week; 1970-01-01 was a Thursday
    -1: (-3_600_000, -DAY, -3 * DAY),
    0: (0, 0, -3 * DAY),
    4 * DAY - 1: (4 * DAY - 3_600_000, 3 * DAY, -3 * DAY),
    4 * DAY: (4 * DAY, 4 * DAY, 4 * DAY),
}


def test_calendar_reads_integers_and_times():
    for time in (list(STARTS), times(STARTS)):
        table = Table(pd.DataFrame({"time": time}), "fills", "none")
        found = grouping.group_columns(table, ["hour", "day", "week"])
        rows = found[["hour", "day", "week"]].map(lambda start: start.timestamp() * 1000)
        assert [tuple(row) for row in rows.to_numpy()] == list(STARTS.values())


def test_aggregated_columns_are_refused():
    for by, named in (("time", "time"), ("net", "net"), (["coin", "fee"], "fee")):
        with pytest.raises(ValueError, match=f"'{named}'"):
            grouping.list_keys(by, ("time", "closed_pnl", "net", "fee"))
