"""The equity of two accounts with late, broken and flipped positions, by hour and by day."""

from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from toolkit.analysis.pnl.attribution_coverage import CURVE_GAPS
from toolkit.analysis.pnl.equity import MONEY
from toolkit.errors import MissingColumns, UnnamedAccount
from toolkit.pnl import equity

from .examples import EXACT, HOUR, ME, MONDAY, OTHER, as_numbers, times
from .test_attribution_of_accounts import THIRD, two_fills, two_ledgers, two_payments
from .test_round_trips import NO, listed_rows

SIZES = {"BTC": 5, "ETH": 4, "flx:TSLA": 2}
MARKS = [
    ("flx:TSLA", 1.5, 202.0), ("flx:TSLA", 2, 210.0), ("flx:TSLA", 3, 180.0), ("BTC", 3, 104.0),
    ("flx:TSLA", 4, 185.0), ("ETH", 3, 40.0), ("ETH", 4, 36.0), ("ETH", 4.5, 35.0),
    ("BTC", 7, 105.0), ("flx:TSLA", 4, None),
]  # fmt: skip
#        end  realised  unrealised  pnl  flows  equity  long  short  spot
POINTS: dict[str, list[tuple[Any, ...]]] = {
    "a": [
        (1, 0, 0, 0, 100, 100, 0, 0, 0),
        (2, 69.475, -20, 49.475, 100, 149.475, 0, 420, 0),
        (3, 71.225, 52, 123.225, 100, 223.225, 312, 360, 4.75),
        (4, 81.225, NO, NO, 100, NO, NO, NO, 5.625),
        (5, 72.475, NO, NO, 97, NO, NO, NO, 5.625),
        (6, 88.475, NO, NO, 97, NO, NO, NO, 7.625),
        (7, 77.225, NO, NO, 97, NO, NO, NO, 7.625),
    ],
    "b": [
        (2, 0, 0, 0, 30, 30, 0, 0, -0.25),
        (3, 127.75, 10, 137.75, 23, 160.75, 40, 0, 0),
        (4, 127.25, 12, 139.25, 23, 162.25, 144, 0, -0.5),
        (5, 119.375, 0, 119.375, 23, 142.375, 0, 0, 2.25),
        (6, 375.375, 0, 375.375, 23, 398.375, 0, 0, 2.25),
        (7, 375.375, 0, 375.375, 23, 398.375, 0, 0, 3.75),
    ],
    "d": [
        (2, 1000, 0, 1000, 0, 1000, 0, 0, 0),
        (3, 1000, 0, 1000, 0, 1000, 0, 0, 0),
        (4, 1000, 0, 1000, 0, 1000, 0, 0, 0),
        (5, 1000, 0, 1000, 0, 1000, 0, 0, 0),
        (6, 1000, 0, 1000, 4, 1004, 0, 0, 0),
    ],
}


def marks():
    frame = pd.DataFrame(MARKS, columns=["name", "time", "mark_px"])
    return frame.assign(time=times(MONDAY + int(hour * HOUR) for hour in frame["time"]))


def curve(kind, by):
    """Return the curves of fills that were fetched for three accounts; one of them has none."""
    frames = [as_numbers(f, kind) for f in (two_fills(), two_payments(), two_ledgers(), marks())]
    frames[0].attrs["toolkit"] = {
        "parameters": {"users": [ME, OTHER, THIRD]},
        "rows": len(frames[0]),
    }
    result: pd.DataFrame = equity(*frames[:3], by=by, marks=frames[3], sz_decimals=SIZES)
    return result


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_equity_of_each_account_by_hand(kind):
    """A broken position has no entry price, so nothing is known while it is held.

    The last fill of the second account is of an outcome token, which earns 1.5.
    """
    result = curve(kind, "hour")
    facts = result.attrs["toolkit"]
    assert (facts["helper"], facts["by"]) == ("pnl.equity", "hour")
    assert list(facts["inputs"]) == ["fills", "funding", "ledger", "marks"]
    dtype = str(EXACT) if kind == "exact" else "float64"
    assert {str(result[name].dtype) for name in (*MONEY, "spot_realised")} == {dtype}
    covers = result.pop("covers")
    gaps = pd.DataFrame({name: result.pop(name) for name in CURVE_GAPS})
    assert gaps.groupby(result["user"]).last().to_numpy().tolist() == [
        [0, 1, 1], [2, 0, 0], [0, 0, 0]
    ]  # fmt: skip
    for letter, points in POINTS.items():
        rows = [row[1:] for row in listed_rows(result) if str(row[0])[2] == letter]
        assert rows == [pytest.approx(point, abs=1e-9) for point in points]
    assert covers.iloc[0].startswith("fills, funding (6 of 9 position hours), ledger, without 2 f")
    assert set(covers[result["user"] == OTHER.lower()]) == {
        "fills, funding (1 of 2 position hours), ledger, without 2 fees in other tokens"
    }


def test_last_mark_of_day_counts():
    """Of a day's marks the last one counts, and fills of spot alone make no curve of perps."""
    rows = curve("float", "day").drop(columns=["covers", *CURVE_GAPS])
    assert [row[2:] for row in listed_rows(rows)] == [
        pytest.approx((77.225, -15, 62.225, 97, 159.225, 555, 0, 7.625)),
        pytest.approx((375.375, 0, 375.375, 23, 398.375, 0, 0, 3.75)),
        (1000, 0, 1000, 4, 1004, 0, 0, 0),
    ]
    alone = equity(two_fills().query("coin == '@107'"), by="day")
    assert listed_rows(alone.drop(columns=["user", "time", *CURVE_GAPS])) == [
        (0, NO, NO, NO, NO, NO, NO, 5.625, "")
    ]


def test_accounts_without_fills_have_no_curve():
    """The funding of a builder has rows of others; these fills were fetched for nobody."""
    rows = equity(two_fills(), two_payments(), two_ledgers(), by="day")
    assert rows["user"].tolist() == [ME, OTHER.lower()]
    assert rows["flows"].tolist() == [97, 23]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_oracle_prices_serve_as_marks(kind):
    """3 BTC bought at 100: of an exact oracle price, eight decimals count."""
    fills = two_fills().query("coin == 'BTC' and start_position == 0")
    prices = {"coin": "BTC", "hour": times([MONDAY + 3 * HOUR]), "oracle_px": [104.123456789]}
    oracle = pd.DataFrame(prices).set_index(pd.Index([7]))
    row = equity(as_numbers(fills, kind), marks=oracle, sz_decimals=SIZES).iloc[0]
    gain = 12.370370367 if kind == "float" else Decimal("12.37037037")
    assert row["unrealised"] == (pytest.approx(gain) if kind == "float" else gain)
    assert float(row["long"]) == pytest.approx(300 + float(gain))


def test_exact_marks_value_float_fills():
    """Exact marks value float fills; a coin without any mark is not known."""
    fills = two_fills().query("coin == 'BTC' and start_position == 0")
    marked = as_numbers(marks(), "exact")
    assert equity(fills, marks=marked, sz_decimals=SIZES)["unrealised"].tolist() == [12.0]
    other = equity(fills, marks=marked.query("name == 'ETH'"), sz_decimals=SIZES)
    assert other[["unrealised", "long"]].isna().all(axis=None)


def test_only_unnamed_broken_fills_warn():
    """Fills are missing, so positions break: this warns only if nothing names the account."""
    fills = two_fills().query("coin == 'BTC'").drop(columns="user")
    more: dict[str, Any] = {"marks": marks(), "sz_decimals": SIZES}
    for given in ({}, more):
        assert equity(fills, account=ME, **given)["realised"].iloc[-1] == -11.125
        with pytest.warns(UnnamedAccount, match="1 fill does not start"):
            equity(fills, **given)
    assert equity(fills.drop(columns="start_position"))["realised"].iloc[-1] == -11.125


def test_errors_of_equity():
    """Each names its frame: fills, funding, marks."""
    fills = two_fills()
    for name, coin in (("px", "BTC"), ("closed_pnl", "@107")):
        gone = fills.assign(**{name: fills[name].where(fills["coin"] != coin)})
        with pytest.raises(MissingColumns, match=f"^fills: .*{name}"):
            equity(gone)
    with pytest.raises(MissingColumns, match="fills: the frame lacks the column coin"):
        equity(fills.drop(columns="coin"))
    with pytest.raises(MissingColumns, match="funding: the frame lacks the column usdc"):
        equity(fills.head(2), two_payments().drop(columns="usdc"))
    few: Any = fills.query("coin == 'BTC'")
    for given, marked, match in (
        (few, marks().drop(columns="mark_px"), "marks: the frame lacks the column mark_px"),
        (few, marks().astype({"mark_px": "str"}), r"marks: .*mark_px is String"),
        (few, marks().assign(time=pd.NaT), "^marks: "),
        (as_numbers(few, "exact"), marks(), "marks: the numbers are float"),
    ):
        with pytest.raises(MissingColumns, match=match):
            equity(given, marks=marked, sz_decimals=SIZES)
