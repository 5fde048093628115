"""Equity and drawdown: by hand, as identities, and at the end of the simulated exchange."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from toolkit.errors import MissingColumns, RepeatedRows, UnnamedAccount
from toolkit.pnl import attribution, drawdown, equity
from toolkit.pnl._equity import CURVE_GAPS

from .examples import HOUR, ME, MONDAY, OTHER, fills, funding, ledger, times, wrong_errors
from .test_attribution import THIRD, two_fills, two_ledgers, two_payments
from .test_round_trips import NO, listed_rows

NAN = float("nan")
SIZES = {"BTC": 5, "ETH": 4, "flx:TSLA": 2}
MARKS = [
    ("flx:TSLA", 1.5, 202.0), ("flx:TSLA", 2, 210.0), ("flx:TSLA", 3, 180.0), ("BTC", 3, 104.0),
    ("flx:TSLA", 4, 185.0), ("ETH", 3, 40.0), ("ETH", 4, 36.0), ("ETH", 4.5, 35.0),
    ("BTC", 7, 105.0), ("flx:TSLA", 4, None),
]  # fmt: skip
#        end  realised  unrealised  pnl  flows  equity  long  short  spot
POINTS = {
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


def curve(by):
    """Return the curves of fills that were fetched for three accounts; one of them has none."""
    frames = [two_fills(), two_payments(), two_ledgers(), marks()]
    frames[0].attrs["toolkit"] = {
        "parameters": {"users": [ME, OTHER, THIRD]},
        "rows": len(frames[0]),
    }
    return equity(*frames[:3], by=by, marks=frames[3], sz_decimals=SIZES)


def test_equity_of_each_account_by_hand():
    """A broken position has no entry price, so nothing is known while it is held.

    The last fill of the second account is of an outcome token, which earns 1.5.
    """
    result = curve("hour")
    assert result.attrs["toolkit"]["by"] == "hour"
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
    rows = curve("day").drop(columns=["covers", *CURVE_GAPS])
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


def test_marks_value_open_positions():
    """3 BTC bought at 100; a coin without any mark is not known."""
    bought = two_fills().query("coin == 'BTC' and start_position == 0")
    prices = {"coin": "BTC", "hour": times([MONDAY + 3 * HOUR]), "oracle_px": [104.5]}
    oracle = pd.DataFrame(prices).set_index(pd.Index([7]))
    contexts = marks().assign(oracle_px=1.0)
    for marked, gain in ((oracle, 13.5), (marks(), 12.0), (contexts, 12.0)):
        row = equity(bought, marks=marked, sz_decimals=SIZES).iloc[0]
        assert (row["unrealised"], row["long"]) == pytest.approx((gain, 300 + gain))
    other = equity(bought, marks=marks().query("name == 'ETH'"), sz_decimals=SIZES)
    assert other[["unrealised", "long"]].isna().all(axis=None)


def test_old_mark_is_ignored():
    frame = fills().iloc[:1].assign(start_position=0.0)
    later = frame.assign(start_position=1.0, time=times([MONDAY + 5 * HOUR]))
    both = pd.concat([frame, later])
    marks = pd.DataFrame({"time": times([MONDAY + HOUR]), "name": ["BTC"], "mark_px": [101.0]})
    rows = equity(both, marks=marks, sz_decimals={"BTC": 5})
    assert listed_rows(rows[["unrealised"]])[:3] == [(1.0,), (NO,), (NO,)]
    assert rows["pnl"].isna().tolist()[:3] == [False, True, True]
    assert rows["flows"].isna().all()


def test_only_unnamed_broken_fills_warn():
    """Fills are missing, so positions break: this warns only if nothing names the account."""
    fills = two_fills().query("coin == 'BTC'").drop(columns="user")
    more = {"marks": marks(), "sz_decimals": SIZES}
    for options in ({}, more):
        assert equity(fills, account=ME, **options)["realised"].iloc[-1] == -11.125
        with pytest.warns(UnnamedAccount, match="1 fill does not start"):
            equity(fills, **options)
    assert equity(fills.drop(columns="start_position"))["realised"].iloc[-1] == -11.125


def test_last_point_equals_attribution():
    perps = fills()[~fills()["coin"].str.contains("^@|/")]
    frames = (perps, funding(), ledger())
    whole = attribution(*frames, account=ME).iloc[0]
    for by in ("hour", "day", "week"):
        last = equity(*frames, by=by, account=ME).iloc[-1]
        assert (last["realised"], last["flows"]) == (pytest.approx(whole["net"]), whole["ledger"])


def test_unknown_amounts_are_counted_by_hand():
    """Each count begins with the hour of its row; no sum contains the row."""
    frame = pd.DataFrame(
        {"coin": "BTC", "px": 100.0, "sz": [2.0, 1.0], "side": ["B", "A"],
         "start_position": [0.0, 2.0], "closed_pnl": [0.0, 4.0], "fee": [0.25, 0.5],
         "fee_token": ["USDC", "HYPE"], "time": times([MONDAY + 1, MONDAY + 2 * HOUR + 1])}
    )  # fmt: skip
    paid = pd.DataFrame({"coin": "BTC", "usdc": [-0.125, None]})
    paid["time"] = times([MONDAY + HOUR, MONDAY + 2 * HOUR])
    kinds = ["deposit", "withdraw", "somethingNew", "deposit"]
    moved = pd.DataFrame({"type": kinds, "usdc": [50.0, None, 7000.0, 3.0]})
    moved["time"] = times(MONDAY + hour * HOUR for hour in (0, 1, 3, 3))
    rows = equity(frame, paid, moved)
    wanted = {
        "realised": [-0.25, -0.375, 3.625, 3.625],
        "flows": [50, 50, 50, 53],
        "unpriced_fees": [0, 0, 1, 1],
        "unknown_flows": [0, 1, 1, 2],
        "missing_amounts": [0, 0, 1, 1],
    }
    for name, values in wanted.items():
        assert rows[name].tolist() == values, name
    assert set(rows["covers"]) == {
        "fills, funding, ledger, without 1 fees in other tokens, without 2 flows of unknown "
        "amount, without 1 funding rows of unknown amount"
    }


def test_hourly_curve_reaches_last_spot_fill():
    """The curve has the last spot fill, though the last perp fill is earlier."""
    frame = fills().iloc[[0, 1, 3]].assign(start_position=[0.0, 1.0, 0.0])
    late = frame.tail(1).assign(time=times([MONDAY + 5 * HOUR])[0], tid=77)
    hourly, daily = (equity(pd.concat([frame, late]), by=by) for by in ("hour", "day"))
    assert hourly["spot_realised"].iloc[-1] == daily["spot_realised"].iloc[-1]


def test_prices_convert_all_amounts_of_a_dex():
    """A dex pays in USDH at 0.5 USD: all its amounts halve, and those of BTC stay."""
    frame = pd.DataFrame(
        {"coin": ["flx:TSLA", "flx:TSLA", "BTC"], "px": [200.0, 210.0, 100.0],
         "sz": [4.0, 1.0, 2.0], "side": ["B", "A", "A"], "start_position": [0.0, 4.0, 0.0],
         "time": times([MONDAY, MONDAY + 1, MONDAY + 2]), "closed_pnl": [0.0, 10.0, 0.0],
         "fee": [1.0, 0.5, 0.25], "fee_token": ["USDH", "USDH", "USDC"]}
    )  # fmt: skip
    marks = pd.DataFrame(
        {"time": times([MONDAY + HOUR] * 2), "name": ["flx:TSLA", "BTC"], "mark_px": [190.0, 103.0]}
    )
    paid = pd.DataFrame({"coin": "flx:TSLA", "time": times([MONDAY + 1]), "usdc": -3.0})
    known = {"marks": marks, "sz_decimals": {"flx:TSLA": 3, "BTC": 5}, "prices": {"USDH": 0.5}}
    # TSLA: 3 at 200, marked at 190; BTC: -2 at 100, marked at 103.
    for rows, amount in ((None, 0), (paid, 3)):
        made = equity(frame, rows, **known).iloc[0]
        found = made[["realised", "unrealised", "long", "short"]].tolist()
        realised = 0.5 * (10 - 1.5 - amount) - 0.25
        assert found == pytest.approx([realised, 0.5 * -30 - 6, 0.5 * 570, 206])


def test_curve_ends_at_simulated_equity(world, tables):
    """Flows + realised + unrealised at the last marks is the equity of each."""
    marks = tables.contexts[["name", "mark_px"]].assign(
        time=times([world.sources.now_ms] * len(tables.contexts))
    )
    rows = equity(
        tables.fills, tables.funding, tables.ledger, "day", marks=marks,
        sz_decimals=tables.contexts,
    )  # fmt: skip
    ends = rows.groupby("user").last()
    truths = world.expected | world.expected_mixed
    # The last payments come at the very end, which begins another day.
    assert len(ends) == len([user for user in truths if user in ends.index]) > 35
    for user, row in ends.iterrows():
        truth = truths[user]
        assert row["flows"] == pytest.approx(float(truth.ledger), abs=1e-6)
        paid = truth.closed_pnl - truth.fees + truth.funding
        if user in world.expected:
            assert row["realised"] == pytest.approx(float(paid), abs=1e-6)
    at_the_end = rows[rows["time"] == rows["time"].max() - pd.Timedelta("1D")].set_index("user")
    known = at_the_end["unrealised"].dropna()
    assert len(known) > 30
    for user, gain in known.items():
        assert gain == pytest.approx(float(truths[user].unrealised), abs=1e-6)


def test_errors_of_equity():
    rows, few = two_fills(), two_fills().query("coin == 'BTC'")
    late = fills().assign(time=times([MONDAY]))

    def marked(frame):
        return lambda: equity(few, marks=frame, sz_decimals=SIZES)

    table = [
        (
            lambda: equity(rows.assign(px=rows["px"].where(rows["coin"] != "BTC"))),
            "fills: column px",
        ),
        (lambda: equity(rows.assign(closed_pnl=NAN)), "fills: column closed_pnl"),
        (lambda: equity(late), "time is missing in 6 of"),
        (marked(marks().assign(time=pd.NaT)), "marks: "),
    ]
    assert wrong_errors((call, MissingColumns, named) for call, named in table) == []
    for options, named in (({"by": "minute"}, "hour, day, week"), ({"marks": 1}, "sz_decimals=")):
        with pytest.raises(ValueError, match=named):
            equity(fills(), **options)


#  user   hour  pnl    high  drawdown under_hours
CURVES = [
    (ME, 0, -2.0, 0, -2, 0),  # an account begins at 0
    (ME, 1.5, 3.0, 3, 0, 0),
    (ME, 2, NAN, None, None, None),
    (ME, 4, 1.0, 3, -2, 2.5),
    (ME, 5, 3.0, 3, 0, 0),  # the high again
    (ME, 7.25, 2.5, 3, -0.5, 2.25),
    (OTHER, 3, NAN, None, None, None),
    (OTHER, 4, -5.0, 0, -5, 1),
    (OTHER, 5, -1.0, 0, -1, 2),
    (OTHER, 6, 4.5, 4.5, 0, 0),
]


def curves():
    frame = pd.DataFrame([row[:3] for row in CURVES], columns=["user", "time", "pnl"])
    frame["time"] = times(MONDAY + int(hour * HOUR) for hour in frame["time"])
    return frame


def test_drawdown_of_two_accounts_by_hand():
    """Each account begins at 0; the order of the rows does not matter."""
    curve = curves()
    rows = drawdown(curve.iloc[[9, 3, 7, 1, 0, 8, 2, 6, 5, 4]])
    assert rows.index.tolist() == list(range(10))
    given = curve.assign(user=curve["user"].str.lower())
    assert listed_rows(rows[["user", "time", "pnl"]]) == listed_rows(given)
    assert list(rows.columns) == ["user", "time", "pnl", "high", "drawdown", "under_hours"]
    assert listed_rows(rows[["high", "drawdown", "under_hours"]]) == [row[3:] for row in CURVES]
    assert str(rows["under_hours"].dtype) == "float64"


def test_drawdown_replaces_columns_of_earlier_call():
    """The columns of an earlier call are replaced; without accounts all rows are one curve."""
    curve = curves().drop(columns="user").assign(equity=range(10, 0, -1), high=7.0)
    curve = curve.sort_values("time", ignore_index=True)
    rows = drawdown(curve, of="equity")
    assert rows["high"].tolist() == [10] * 10
    assert rows["drawdown"].tolist() == (curve["equity"] - 10).tolist()
    assert rows["under_hours"].tolist() == [0, 1.5, 2, 3, 4, 4, 5, 5, 6, 7.25]
    assert rows.attrs["toolkit"]["of"] == "equity"


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40))
def test_worst_drawdown(values):
    frame = pd.DataFrame(
        {
            "time": times(MONDAY + n * HOUR for n in range(len(values))),
            "pnl": np.array(values, float),
        }
    )
    rows = drawdown(frame.sample(frac=1, random_state=1))
    assert (rows["drawdown"] <= 0).all()
    assert rows["high"].is_monotonic_increasing
    worst = min(v - max([0, *values[: n + 1]]) for n, v in enumerate(values))
    assert rows["drawdown"].min() == worst
    assert ((rows["under_hours"] == 0) | (rows["drawdown"] < 0)).all()


def test_rows_of_one_time_keep_their_order():
    values = [float(n * 7 % 50) for n in range(50)]
    rows = drawdown(pd.DataFrame({"pnl": values, "time": times([MONDAY] * 50)}))
    assert rows["pnl"].tolist() == values
    first = drawdown(pd.DataFrame({"pnl": [2.0, 1.0], "time": times([0, HOUR])}))
    assert first["under_hours"].tolist() == [0, 1]


def test_drawdown_of_missing_values_is_missing():
    rows = drawdown(curves().assign(pnl=NAN))
    assert rows[["high", "drawdown", "under_hours"]].isna().all(axis=None)
    assert str(rows["under_hours"].dtype) == "float64"


def test_errors_of_drawdown():
    late = curves()
    late["time"] = late["time"].where(late.index != 3)
    table = [
        (lambda: drawdown(late), "time is missing in 1 of 10 rows"),
        (lambda: drawdown(pd.DataFrame()), "curve: the frame lacks the columns time, pnl"),
        (lambda: drawdown(curves().drop(columns="time")), "lacks the column time"),
        (lambda: drawdown(curves().drop(columns="pnl")), "lacks the column pnl"),
        (lambda: drawdown(curves(), of="realised"), "lacks the column realised"),
        (lambda: drawdown(curves().assign(pnl="3")), "pnl"),
    ]
    assert wrong_errors((call, MissingColumns, named) for call, named in table) == []
    with pytest.warns(RepeatedRows, match=r"^curve: 2 of 12 rows"):
        assert len(drawdown(pd.concat([curves(), curves().tail(2)]))) == 10


def test_fee_without_a_token_is_in_the_collateral():
    """Two fees of 1 USDH at 0.5 USD; the second fill does not name the token."""
    rows = pd.DataFrame({"coin": "flx:A", "px": 10.0, "sz": 1.0, "side": ["B", "A"], "fee": 1.0})
    rows = rows.assign(time=times([MONDAY, MONDAY + 1]), start_position=[0.0, 1.0], closed_pnl=0.0)
    rows["fee_token"] = pd.array(["USDH", None], dtype="str")
    assert equity(rows, prices={"USDH": 0.5})["realised"].tolist() == [-1.0]
