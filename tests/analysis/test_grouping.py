"""What rows are grouped by."""

import narwhals as nw
import pandas as pd
import pytest

from toolkit.analysis import grouping

from .examples import MONDAY, times


def test_times_may_be_whole_milliseconds(engine) -> None:
    for time in ([MONDAY + 1], times([MONDAY + 1])):
        frame = nw.from_native(engine.give(pd.DataFrame({"time": time})))
        rows = engine.take(nw.to_native(grouping.with_calendar(frame, ["week", "hour"])))
        for name in ("week", "hour"):
            assert rows[0][name].timestamp() == MONDAY / 1000


@pytest.mark.parametrize("by", ["time", "closed_pnl", "net", ["coin", "fee"]])
def test_what_is_measured_is_not_grouped_by(by) -> None:
    with pytest.raises(ValueError, match="that is measured, not grouped by"):
        grouping.listed(by, ("time", "closed_pnl", "net", "fee"))
