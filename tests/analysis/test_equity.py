"""Equity and drawdown: by hand, as identities, and at the end of the simulated exchange."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from tests.engines import ENGINES, Engine
from toolkit.errors import MissingColumns
from toolkit.pnl import attribution, drawdown, equity

from .examples import HOUR, ME, MONDAY, as_numbers, fills, funding, ledger, times
from .simulated import everybody

KINDS = ("float", "exact")
NAN = float("nan")


def listed(column):
    return [None if pd.isna(value) else float(value) for value in column]


@pytest.mark.parametrize("kind", KINDS)
def test_equity_by_hand(kind):
    """BTC bought at 0 h and sold at 1 h; marks at both ends; spot fills are another balance's."""
    frame = fills().iloc[[0, 1, 3]].assign(start_position=[0.0, 1.0, 0.0])
    marks = pd.DataFrame(
        {"time": times([MONDAY + HOUR, MONDAY + 2 * HOUR]), "name": "BTC", "mark_px": [107.0, 1.0]}
    )
    paid = funding().head(1).assign(usdc=-0.25)
    given = [as_numbers(item, kind) for item in (frame, paid, ledger(), marks)]
    rows = equity(*given[:3], account=ME, marks=given[3], sz_decimals={"BTC": 5})
    assert list(rows["time"].head(2)) == list(times([MONDAY + HOUR, MONDAY + 2 * HOUR]))
    assert listed(rows["realised"].head(2)) == pytest.approx([-0.3, 9.64])
    assert listed(rows["unrealised"].head(2)) == pytest.approx([7, 0])
    assert listed(rows["pnl"].head(2)) == pytest.approx([6.7, 9.64])
    assert listed(rows["flows"].head(5)) == [1000, 949, 928, 923, 930]
    assert listed(rows["equity"].head(2)) == pytest.approx([1006.7, 958.64])


def test_old_mark_is_ignored():
    frame = fills().iloc[:1].assign(start_position=0.0)
    later = frame.assign(start_position=1.0, time=times([MONDAY + 5 * HOUR]))
    both = pd.concat([frame, later])
    marks = pd.DataFrame({"time": times([MONDAY + HOUR]), "name": ["BTC"], "mark_px": [101.0]})
    rows = equity(both, marks=marks, sz_decimals={"BTC": 5})
    assert listed(rows["unrealised"])[:3] == [1.0, None, None]
    assert rows["pnl"].isna().tolist()[:3] == [False, True, True]
    assert rows["flows"].isna().all()


@pytest.mark.parametrize("kind", KINDS)
def test_long_and_short_notional_by_hand(kind):
    """3 BTC long from 100 and 2 ETH short from 50; the marks are 110 and 60."""
    frame = pd.DataFrame(
        {
            "coin": pd.array(["BTC", "ETH"], dtype="str"), "px": [100.0, 50.0], "sz": [3.0, 2.0],
            "side": pd.array(["B", "A"], dtype="str"), "time": times([MONDAY, MONDAY + 1]),
            "start_position": 0.0, "closed_pnl": 0.0, "fee": 0.0,
        }
    )  # fmt: skip
    marks = pd.DataFrame(
        {"time": times([MONDAY + HOUR] * 2), "name": ["BTC", "ETH"], "mark_px": [110.0, 60.0]}
    )
    given = [as_numbers(item, kind) for item in (frame, marks)]
    row = equity(given[0], marks=given[1], sz_decimals={"BTC": 5, "ETH": 4}).iloc[0]
    found = {name: float(row[name]) for name in ("long", "short", "unrealised")}
    assert found == {"long": 330.0, "short": 120.0, "unrealised": 10.0}


@pytest.mark.parametrize("by", ["hour", "day", "week"])
def test_last_point_equals_attribution(by):
    perps = fills()[~fills()["coin"].str.contains("^@|/")]
    given = [as_numbers(item, "exact") for item in (perps, funding(), ledger())]
    last = equity(*given, by=by, account=ME).iloc[-1]
    whole = attribution(*given, account=ME).iloc[0]
    assert last["realised"] == whole["net"]
    assert last["flows"] == whole["ledger"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_unknown_amounts_are_counted_by_hand(kind, engine):
    """Each count begins with the hour of its row; no sum contains the row."""
    frame = pd.DataFrame(
        {"coin": "BTC", "px": 100.0, "sz": [2.0, 1.0], "side": ["B", "A"],
         "start_position": [0.0, 2.0], "closed_pnl": [0.0, 4.0], "fee": [0.25, 0.5],
         "fee_token": ["USDC", "HYPE"], "time": times([MONDAY + 1, MONDAY + 2 * HOUR + 1])}
    )  # fmt: skip
    paid = pd.DataFrame({"coin": "BTC", "usdc": [-0.125, NAN]})
    paid["time"] = times([MONDAY + HOUR, MONDAY + 2 * HOUR])
    kinds = ["deposit", "withdraw", "somethingNew", "deposit"]
    moved = pd.DataFrame({"type": kinds, "usdc": [50.0, NAN, 7000.0, 3.0]})
    moved["time"] = times(MONDAY + hour * HOUR for hour in (0, 1, 3, 3))
    native = Engine(engine)
    given = (native.give(as_numbers(item, kind)) for item in (frame, paid, moved))
    rows = native.take(equity(*given))
    wanted = {
        "realised": [-0.25, -0.375, 3.625, 3.625],
        "flows": [50, 50, 50, 53],
        "unpriced_fees": [0, 0, 1, 1],
        "unknown_flows": [0, 1, 1, 2],
        "missing_amounts": [0, 0, 1, 1],
    }
    for name, values in wanted.items():
        assert [float(row[name]) for row in rows] == values, name
    assert {row["covers"] for row in rows} == {
        "fills, funding, ledger, without 1 fees in other tokens, without 2 flows of unknown "
        "amount, without 1 funding rows of unknown amount"
    }


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="hour, day, week"):
        equity(fills(), by="minute")
    with pytest.raises(ValueError, match="sz_decimals="):
        equity(fills(), marks=pd.DataFrame())
    gone = fills().assign(time=times([MONDAY]))
    with pytest.raises(MissingColumns, match="time has 6 missing values"):
        equity(gone)
    with pytest.raises(MissingColumns, match="realised"):
        drawdown(pd.DataFrame({"time": times([0])}), of="realised")


def test_curve_ends_at_simulated_equity(world):
    """Flows + realised + unrealised at the last marks is the equity of each, to the last digit."""
    tables = everybody(world)
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
        assert row["flows"] == truth.ledger
        paid = truth.closed_pnl - truth.fees + truth.funding
        if user in world.expected:
            assert row["realised"] == paid
    at_the_end = rows[rows["time"] == rows["time"].max() - pd.Timedelta("1D")].set_index("user")
    known = at_the_end["unrealised"].dropna()
    assert len(known) > 30
    for user, gain in known.items():
        assert gain == truths[user].unrealised


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40))
def test_drawdown_by_hand(values):
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


def test_missing_value_has_no_drawdown():
    frame = pd.DataFrame({"time": times([0, HOUR, 2 * HOUR]), "pnl": [5.0, np.nan, 4.0]})
    rows = drawdown(frame)
    assert listed(rows["drawdown"]) == [0, None, -1]
    assert listed(rows["under_hours"]) == [0, None, 2]


def test_second_drawdown_replaces_first():
    curve = pd.DataFrame({"time": times([0, 1]), "pnl": [3.0, 1.0], "realised": [2.0, 5.0]})
    again = drawdown(drawdown(curve), of="realised")
    pd.testing.assert_frame_equal(again, drawdown(curve, of="realised"))
    assert again["high"].tolist() == [2.0, 5.0]


def test_hourly_curve_reaches_last_spot_fill():
    """The curve has the last spot fill, though the last perp fill is earlier."""
    frame = fills().iloc[[0, 1, 3]].assign(start_position=[0.0, 1.0, 0.0])
    late = frame.tail(1).assign(time=times([MONDAY + 5 * HOUR])[0], tid=77)
    hourly, daily = (equity(pd.concat([frame, late]), by=by) for by in ("hour", "day"))
    assert hourly["spot_realised"].iloc[-1] == daily["spot_realised"].iloc[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_funding", [False, True], ids=["fills", "funding"])
def test_prices_convert_all_amounts_of_a_dex(kind, with_funding):
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
    paid = None
    if with_funding:
        rows = {"coin": "flx:TSLA", "time": times([MONDAY + 1]), "usdc": -3.0}
        paid = as_numbers(pd.DataFrame(rows), kind)
    made = equity(
        as_numbers(frame, kind),
        paid,
        marks=as_numbers(marks, kind),
        sz_decimals={"flx:TSLA": 3, "BTC": 5},
        prices={"USDH": 0.5},
    )
    # TSLA: 3 at 200, marked at 190; BTC: -2 at 100, marked at 103.
    realised = 0.5 * (10 - 1.5 - (3 if with_funding else 0)) - 0.25
    assert listed(made["realised"]) == pytest.approx([realised])
    assert listed(made["unrealised"]) == pytest.approx([0.5 * -30 - 6])
    assert listed(made["long"]) == pytest.approx([0.5 * 570])
    assert listed(made["short"]) == pytest.approx([206])
