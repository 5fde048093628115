"""Rows of three accounts between two times, by hand: which of them count for whom."""

import pandas as pd
import pytest

from toolkit.analysis.common.account_values import AccountValue, ValuesAndPositions
from toolkit.analysis.pnl.reconcile_tables import account_bounds, select_tables
from toolkit.errors import MissingColumns

from .examples import ME, OTHER, times

THIRD = "0x" + "c" * 40
BOUNDS = {ME: (100, 200), OTHER.lower(): (150, 300)}
EVER = 2**62
#  user   ms   coin
FILLS = [
    (ME, 100, "BTC"),  # at the first time: it does not count
    (ME, 101, "@1"),
    (OTHER, 150, "BTC"),
    (ME.upper(), 150, "flx:TSLA"),
    (OTHER, 250, "PURR/USDC"),
    (None, 160, "BTC"),
    (THIRD, 160, "BTC"),
    (OTHER, 300, "ETH"),  # at the second time: it counts
    (ME, 200, "#7"),
    (ME, 201, "BTC"),
    (OTHER, 301, "@1"),
    (ME, 199, None),
]


def make_fills():
    frame = pd.DataFrame(FILLS, columns=["user", "time", "coin"])
    frame["time"] = times(frame["time"])
    return frame.assign(number=range(len(frame)))


def make_values(**ms):
    names = {"me": ME, "other": OTHER.lower(), "third": THIRD}
    worth = {names[name]: AccountValue(1.0, None, time) for name, time in ms.items()}
    return ValuesAndPositions(worth, None, "float")


def test_bounds_of_accounts_by_hand():
    """An account without a first value has no rows; one without a second time has all of them."""
    after = make_values(me=200, other=300, third=None)
    assert account_bounds(None, after) == {
        ME: (-EVER, 200),
        OTHER.lower(): (-EVER, 300),
        THIRD: (-EVER, EVER),
    }
    assert account_bounds(make_values(me=100, third=None), after) == {
        ME: (100, 200),
        OTHER.lower(): (EVER, 300),
        THIRD: (EVER, EVER),
    }


def test_rows_are_selected_by_account_bounds():
    for fills in (make_fills(), make_fills().astype({"coin": object})):
        check_rows(select_tables(BOUNDS, fills, None, None, None))
    nobody = select_tables({}, make_fills(), make_fills(), None, None)
    assert [len(frame) for frame in nobody[:3]] == [0, 0, 0]


def check_rows(tables):
    assert tables.perps["number"].tolist() == [3, 7, 11]
    assert tables.perps["user"].tolist() == [ME, OTHER.lower(), ME]
    assert tables.spots["number"].tolist() == [1, 4, 8]
    assert tables.spots["user"].tolist() == [ME, OTHER.lower(), ME]
    assert (tables.funding, tables.ledger) == (None, None)
    for frame in tables[:2]:
        assert frame.index.tolist() == [0, 1, 2]
        assert list(frame.columns) == ["user", "time", "coin", "number"]


def test_funding_and_ledger_keep_row_order():
    """A ledger needs no coin; rows keep their order."""
    paid = make_fills().iloc[::-1]
    moved = make_fills().rename(columns={"user": "account"}).drop(columns="coin")
    tables = select_tables(BOUNDS, None, paid, moved, None)
    assert (len(tables.perps.columns), len(tables.spots.columns)) == (0, 0)
    assert tables.funding["number"].tolist() == [11, 8, 7, 4, 3, 1]
    assert tables.ledger["number"].tolist() == [1, 3, 4, 7, 8, 11]
    assert tables.ledger["account"].unique().tolist() == [ME, OTHER.lower()]
    assert tables.ledger.index.tolist() == list(range(6))


def test_unnamed_rows_are_of_named_account():
    """Rows without an account are of the named one, or of the only account of the values."""
    fills = make_fills().drop(columns="user")
    tables = select_tables(BOUNDS, fills, fills, fills, OTHER)
    wanted = [n for n, (_, ms, _) in enumerate(FILLS) if 150 < ms <= 300]
    assert sorted([*tables.perps["number"], *tables.spots["number"]]) == wanted
    for frame, column in (
        (tables.perps, "user"),
        (tables.funding, "user"),
        (tables.ledger, "account"),
    ):
        assert set(frame[column]) == {OTHER.lower()}
        assert str(frame[column].dtype) == "str"
    assert tables.funding["number"].tolist() == tables.ledger["number"].tolist() == wanted
    only = select_tables({ME: (100, 200)}, None, fills, fills, None)
    wanted = [n for n, (_, ms, _) in enumerate(FILLS) if 100 < ms <= 200]
    assert only.funding["number"].tolist() == only.ledger["number"].tolist() == wanted
    bare = select_tables(BOUNDS, None, fills, fills, ME)
    assert bare.funding["number"].tolist() == bare.ledger["number"].tolist() == wanted
    named = fills.copy()
    named.attrs["toolkit"] = {"parameters": {"user": ME}}
    assert select_tables(BOUNDS, None, named, None, None).funding["number"].tolist() == wanted


def test_errors_of_tables():
    fills = make_fills()
    moved = fills.rename(columns={"user": "account"})
    given = {"fills": fills, "funding": fills, "ledger": moved}
    for what, frame in given.items():
        owner = "account" if what == "ledger" else "user"
        missing = ["time"] if what == "ledger" else ["coin", "time"]
        for column in missing:
            with pytest.raises(MissingColumns, match=f"^{what}: .* lacks the column {column}"):
                select_tables(BOUNDS, **given | {what: frame.drop(columns=column)}, account=None)
        words = f"^{what}: the frame has no column {owner}, and the values are of 2 accounts"
        with pytest.raises(ValueError, match=words):
            select_tables(BOUNDS, **given | {what: frame.drop(columns=owner)}, account=None)
        late = frame.assign(time=frame["time"].where(frame.index != 3))
        with pytest.raises(MissingColumns, match=f"^{what}: column time has 1 missing value"):
            select_tables(BOUNDS, **given | {what: late}, account=None)
        with pytest.raises(MissingColumns, match=f"^{what}: the frame has no columns"):
            select_tables(BOUNDS, **given | {what: pd.DataFrame()}, account=None)
