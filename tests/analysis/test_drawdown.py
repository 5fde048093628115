"""Drawdown of two accounts in one frame, worked out by hand."""

import pandas as pd
import polars as pl
import pytest

from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.pnl import drawdown

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times
from .test_round_trips import listed_rows

NONE = float("nan")
#  user   hour  pnl    high  drawdown under_hours
CURVES = [
    (ME, 0, -2.0, 0, -2, 0),  # an account begins at 0
    (ME, 1.5, 3.0, 3, 0, 0),
    (ME, 2, NONE, None, None, None),
    (ME, 4, 1.0, 3, -2, 2.5),
    (ME, 5, 3.0, 3, 0, 0),  # the high again
    (ME, 7.25, 2.5, 3, -0.5, 2.25),
    (OTHER, 3, NONE, None, None, None),
    (OTHER, 4, -5.0, 0, -5, 1),
    (OTHER, 5, -1.0, 0, -1, 2),
    (OTHER, 6, 4.5, 4.5, 0, 0),
]


def curves(kind="float"):
    frame = pd.DataFrame([row[:3] for row in CURVES], columns=["user", "time", "pnl"])
    frame["time"] = times(MONDAY + int(hour * HOUR) for hour in frame["time"])
    return as_numbers(frame, kind)


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_drawdown_of_two_accounts_by_hand(kind):
    """Each account begins at 0; the order of the rows does not matter."""
    curve = curves(kind)
    rows = drawdown(curve.iloc[[9, 3, 7, 1, 0, 8, 2, 6, 5, 4]])
    assert rows.index.tolist() == list(range(10))
    given = curve.assign(user=curve["user"].str.lower())
    assert listed_rows(rows[["user", "time", "pnl"]]) == listed_rows(given)
    assert list(rows.columns) == ["user", "time", "pnl", "high", "drawdown", "under_hours"]
    assert listed_rows(rows[["high", "drawdown", "under_hours"]]) == [row[3:] for row in CURVES]
    wanted = "float64" if kind == "float" else "decimal128(36, 18)[pyarrow]"
    assert {str(rows[name].dtype) for name in ("high", "drawdown")} == {wanted}
    assert str(rows["under_hours"].dtype) == "float64"
    facts = rows.attrs["toolkit"]
    assert (facts["helper"], *facts["inputs"]) == ("pnl.drawdown", "curve")
    assert facts["of"] == "pnl"


def test_drawdown_replaces_columns_of_earlier_call():
    """The columns of an earlier call are replaced; without accounts all rows are one curve."""
    curve = curves().drop(columns="user").assign(equity=range(10, 0, -1), high=7.0)
    curve = curve.sort_values("time", ignore_index=True)
    rows = drawdown(curve, of="equity")
    assert rows["high"].tolist() == [10] * 10
    assert rows["drawdown"].tolist() == (curve["equity"] - 10).tolist()
    assert rows["under_hours"].tolist() == [0, 1.5, 2, 3, 4, 4, 5, 5, 6, 7.25]
    assert rows.attrs["toolkit"]["of"] == "equity"


def test_points_are_sorted_by_account():
    """Accounts are sorted by their address, and points of one time keep their order."""
    users = curves()["user"].str.lower()
    order = pl.Enum([OTHER.lower(), ME])
    frame = pl.from_pandas(curves().assign(user=users)).with_columns(pl.col("user").cast(order))
    assert drawdown(frame)["user"].to_list() == users.to_list()
    values = [float(n * 7 % 50) for n in range(50)]
    rows = drawdown(pd.DataFrame({"pnl": values, "time": times([MONDAY] * 50)}))
    assert rows["pnl"].tolist() == values
    first = drawdown(pd.DataFrame({"pnl": [2.0, 1.0], "time": times([0, HOUR])}))
    assert first["under_hours"].tolist() == [0, 1]


def test_drawdown_of_missing_values_is_missing():
    rows = drawdown(curves().assign(pnl=NONE))
    assert rows[["high", "drawdown", "under_hours"]].isna().all(axis=None)
    assert str(rows["under_hours"].dtype) == "float64"


def test_errors_of_drawdown():
    late = curves()
    late["time"] = late["time"].where(late.index != 3)
    with pytest.raises(MissingColumns, match=r"^curve: column time has 1 missing value in 10 rows"):
        drawdown(late)
    with pytest.raises(MissingColumns, match=r"^curve: the frame has no columns"):
        drawdown(pd.DataFrame())
    for column in ("time", "pnl"):
        with pytest.raises(MissingColumns, match=f"^curve: the frame lacks the column {column}"):
            drawdown(curves().drop(columns=column))
    with pytest.raises(MissingColumns, match=r"^curve: .*pnl"):
        drawdown(curves().assign(pnl="3"))
    frame = pd.concat([curves(), curves().tail(2)])
    with pytest.warns(RepeatedRows, match=r"^curve: 2 of 12 rows"):
        assert len(drawdown(frame)) == 10
