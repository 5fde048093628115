"""Account values and positions of several accounts, dexes and times, by hand."""

from functools import partial

import pandas as pd
import pytest

from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.prepare import states
from toolkit.prepare.door import NO_TIME
from toolkit.prepare.states import read_values

from .examples import DAY, MONDAY, times, wrong_errors

NAN = float("nan")


def snapshot():
    """Return 0xb on three dexes, with the last value unknown, and 0xa on two of one time."""
    rows = [
        ("0xB", "hyperliquid:USDC", 70.5, 2, MONDAY + 5),
        ("0xa", "hyperliquid:USDC", -4.25, 0, MONDAY + 2),
        ("0xb", "pre:USDH", 30.0, 2, MONDAY + 5),
        ("0xa", "pre:USDH", 10.0, 0, MONDAY + 2),
        ("0xc", "hyperliquid:USDC", NAN, 3, MONDAY),
        ("0xc", "pre:USDH", 8.0, 3, MONDAY),
    ]
    names = ["user", "collateral_token", "account_value", "account_mode", "time"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.assign(time=times(frame["time"]))


def positions():
    rows = [("0xB", "X", 2.0, -3.5), ("0xa", "X", -1.0, NAN), ("0xb", "pre:Y", NAN, 6.0)]
    return pd.DataFrame(rows, columns=["user", "coin", "szi", "unrealized_pnl"])


def test_values_of_three_accounts_by_hand():
    """An account with an unknown part has no value; one without a row has no entry."""
    found = read_values((snapshot(), positions()), "end")
    assert list(found[0].index) == ["0xa", "0xb", "0xc"]
    assert list(found[0].loc["0xa"]) == [5.75, 0, MONDAY + 2]
    assert list(found[0].loc["0xb"]) == [100.5, 2, MONDAY + 5]
    assert found[0]["value"].isna().tolist() == [False, False, True]
    assert list(found[0].loc["0xc", ["mode", "ms"]]) == [3, MONDAY]
    assert found[1] is not None
    lower = positions().assign(user=["0xb", "0xa", "0xb"])
    pd.testing.assert_frame_equal(found[1].reset_index(), lower)


def test_absent_optional_columns_are_none():
    bare = snapshot()[["user", "collateral_token", "account_value"]]
    found = read_values(bare, "end")
    assert found[0]["value"]["0xb"] == 100.5
    assert found[0]["mode"].isna().all()
    assert set(found[0]["ms"]) == {NO_TIME}
    assert found[1] is None
    states = bare.assign(collateral_token=None, dex=["a", "a", "b", "b", "a", "b"])
    assert read_values(states.drop(columns="collateral_token"), "end")[0]["value"]["0xa"] == 5.75
    empty = read_values(bare[:0], "end")
    assert empty[0].empty
    held = read_values((bare, positions().drop(columns="szi")), "end")[1]
    assert held is not None
    assert held["szi"].isna().all()
    assert held["unrealized_pnl"]["0xb", "X"] == -3.5


def test_passed_time_replaces_time_of_values():
    """A passed time replaces those of the frame; a missing time is that of the other rows."""
    for at in (
        MONDAY + 9,
        pd.Timestamp(MONDAY + 9, unit="ms", tz="UTC"),
        "2025-09-01T00:00:00.009Z",
    ):
        assert set(read_values(snapshot(), "end", at)[0]["ms"]) == {MONDAY + 9}
    late = snapshot()
    late.loc[[0, 3], "time"] = pd.NaT
    known = read_values(late, "end")[0]["ms"]
    assert dict(known) == {"0xa": MONDAY + 2, "0xb": MONDAY + 5, "0xc": MONDAY}
    never = snapshot().assign(time=pd.Series(pd.NaT, index=range(6), dtype="datetime64[ms, UTC]"))
    assert set(read_values(never, "end")[0]["ms"]) == {NO_TIME}
    by_dex = snapshot().assign(dex=list("aabbab"), time=times([9, 4, 7, 8, 1, 1]))
    by_dex = by_dex.drop(columns="collateral_token")
    assert dict(read_values(by_dex, "end")[0]["ms"]) == {"0xa": 8, "0xb": 9, "0xc": 1}


def test_repeated_values_count_once():
    rows = snapshot()
    again = (pd.concat([rows, rows[2:3]]), pd.concat([positions(), positions()[1:]]))
    with pytest.warns(RepeatedRows) as caught:
        found = read_values(again, "end")
    texts = [str(warning.message).split(" repeat")[0] for warning in caught]
    assert texts == ["end: 1 of 7 rows", "end[1]: 2 of 5 rows"]
    assert found[0]["value"]["0xb"] == 100.5
    kept = states.distinct_rows(pd.concat([rows[2:4]] * 2), ("user", "absent"), "rows")
    assert kept["user"].tolist() == ["0xb", "0xa"]
    assert kept.index.tolist() == [0, 1]
    aside = pd.concat([rows.assign(fee_tier=1), rows[2:3].assign(fee_tier=2)])
    assert read_values(aside, "end")[0]["value"]["0xb"] == 100.5


def test_errors_of_account_values():
    rows, held = snapshot(), positions()
    twice = pd.concat([rows, rows[2:3].assign(account_value=31.0)])
    later = pd.concat([rows, rows[2:3].assign(time=times([MONDAY + DAY]).to_numpy())])
    moments = pd.concat([held, held[2:]]).assign(time=[MONDAY, MONDAY, MONDAY, MONDAY + 1])

    def changed(name):
        return pd.concat([held, held[:1].assign(**{name: 9.5})])

    table = [
        (twice, ValueError, "0xb pre:USDH"),
        (later, ValueError, "end[end.time == end.time.max"),
        (rows.assign(snapshot_id=list("aabbcc")), ValueError, "3 snapshots"),
        (pd.concat([rows, rows[:1].assign(account_mode=3)]), ValueError, "0xb hyperliquid:USDC"),
        ((rows, changed("szi")), ValueError, "end[1]: 0xb X"),
        ((rows, changed("unrealized_pnl")), ValueError, "end[1]: 0xb X"),
        ((rows, moments), ValueError, "end[1]: rows of 0xb have 2 different times"),
        *(((rows, held.drop(columns=name)), MissingColumns, name)
          for name in ("user", "coin", "unrealized_pnl")),
    ]  # fmt: skip
    calls = ((partial(read_values, given, "end"), *wanted) for given, *wanted in table)
    assert wrong_errors(calls) == []
