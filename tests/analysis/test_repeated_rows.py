"""Rows that are given twice count once; rows without an identity are never left out."""

import random
import warnings
from collections import Counter

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import HOUR, ME, MONDAY, OTHER, times
from tests.analysis.test_lots import chain
from toolkit.errors import RepeatedRows, UnnamedAccount
from toolkit.prepare.repeats import drop_repeated_rows


def fills():
    """Buy 2 at 100, sell 1 at 110 and 1 at 120."""
    ids = {"oid": [11, 12, 13], "tid": pd.array([101, 102, 103], dtype="Int64")}
    rows = [("B", 2, 100.0), ("A", 1, 110.0), ("A", 1, 120.0)]
    return chain(rows, step=1, closed_pnl=[0.0, 10.0, 20.0], fee=0.5, **ids)


def payments():
    """Two accounts are paid alike in one hour, and differently in the next."""
    return pd.DataFrame(
        {
            "user": pd.array([ME, OTHER, ME, OTHER], dtype="str"),
            "coin": pd.array(["BTC"] * 4, dtype="str"),
            "time": times([MONDAY, MONDAY, MONDAY + HOUR, MONDAY + HOUR]),
            "usdc": [-0.5, -0.5, 1.0, 0.25],
        }
    )


def attributed(*frames, repeated=0, **more):
    """Return the attribution of frames below each other, and check the number of repetitions."""
    joined = pd.concat(frames)
    if not repeated:
        return tk.pnl.attribution(joined, **more).iloc[0]
    with pytest.warns(RepeatedRows, match=f"^fills: {repeated} of {len(joined)} row"):
        result = tk.pnl.attribution(joined, **more)
    assert len(result) == 1
    return result.iloc[0]


def test_fills_without_identity_stay():
    """Trade id 0, and no trade id: two legs of a conversion may look alike."""
    for tid in (0, None):
        odd = fills().assign(tid=pd.array([tid] * 3, dtype="Int64"))
        assert attributed(odd, odd)["fills"] == 6
    bare = fills().drop(columns="tid")
    assert attributed(bare, bare)["fills"] == 6
    some = fills().assign(tid=pd.array([0, 102, None], dtype="Int64"))
    assert attributed(some, some, repeated=1)["fills"] == 5


def test_both_sides_of_a_trade_count():
    other = fills().assign(side=["A", "B", "B"], oid=[21, 22, 23])
    assert attributed(fills(), other)["fills"] == 6


def test_unnamed_copies_count_once():
    """The row that names the account stays."""
    named, copies = fills().assign(user=ME), fills().iloc[:2]
    for parts in ([named, copies], [copies, named]):
        row = attributed(*parts, repeated=2, by="user")
        assert (row["user"], row["fills"], row["net"]) == (ME.lower(), 3, 28.5)


def test_two_named_accounts_stay():
    named = [fills().assign(user=ME), fills().assign(user=OTHER)]
    assert attributed(*named)["fills"] == 6
    assert attributed(fills(), *named, repeated=3)["fills"] == 6


def test_equal_payments_of_two_accounts_stay():
    """The same account in capitals is no other; another account may be paid the same."""
    row = tk.funding.sums(payments(), None).iloc[0]
    assert (row["payments"], row["net"]) == (4, 0.25)
    shouted = payments().assign(user=payments()["user"].str.upper().str.replace("0X", "0x"))
    for again in (payments().iloc[[0, 3]], shouted):
        with pytest.warns(RepeatedRows, match=f"^funding: {len(again)} of {4 + len(again)} rows"):
            row = tk.funding.sums(pd.concat([payments(), again]), None).iloc[0]
        assert (row["payments"], row["net"]) == (4, 0.25)
    unnamed = payments().iloc[[0]].drop(columns="user")
    row = tk.funding.sums(pd.concat([unnamed, payments().iloc[[1]]]), None).iloc[0]
    assert (row["payments"], row["net"]) == (2, -1.0)


def test_account_column_overrides_user():
    """A `user` beside an `account` may be a sender, so a row with it only is unnamed."""
    rows = fills().assign(user=ME)
    joined = pd.concat([rows.head(2), rows.assign(account=ME)])
    with pytest.warns(RepeatedRows, match="2 of 5 rows"):
        kept = drop_repeated_rows(joined, "fills")
    assert kept["account"].str.lower().tolist() == [ME.lower()] * 3


def transfers(**more):
    """Return ledger rows; `user` is the sender in those of the sender and of the receiver."""
    row = {"type": "internalTransfer", "usdc": 100.0, "user": ME, "hash": "0x" + "7" * 64}
    return pd.DataFrame([row]).assign(time=times([MONDAY]), **more)


def test_both_sides_of_a_transfer_stay():
    for sent in (transfers(), transfers(account=ME)):
        both = pd.concat([sent, transfers(account=OTHER)])
        assert len(drop_repeated_rows(both, "ledger")) == 2


def test_ledger_rows_without_hash_stay():
    deposit = transfers(type="deposit", usdc=30.0)
    unknown = transfers(type="deposit", hash="0x" + "0" * 64)
    for more in ({}, {"tid": [0, 5, 0, 5]}):  # a column of that name identifies nothing here
        with pytest.warns(RepeatedRows, match="^ledger: 1 of 4 rows"):
            result = tk.ledger.sums(pd.concat([deposit, unknown] * 2).assign(**more), by=None)
        assert result["net_deposits"].item() == 230.0


def test_first_rows_keep_provenance():
    twice = pd.concat([fills(), fills()]).set_axis(list("abcdef"))
    twice.attrs["toolkit"] = {"rows": 6, "complete": "yes"}
    with pytest.warns(RepeatedRows):
        found = drop_repeated_rows(twice, "fills")
    assert found.index.tolist() == ["a", "b", "c"]
    assert found.attrs["toolkit"] == {"rows": 3, "complete": "yes", "repeated_rows": 3}
    assert len(twice) == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drop_repeated_rows(found, "fills") is found


def test_warning_names_the_callers_line():
    with pytest.warns(RepeatedRows) as caught:
        tk.pnl.lots(pd.concat([fills(), fills()]))
    assert [warning.filename for warning in caught] == [__file__]


def alternating(user_column):
    """Two accounts that trade in turn: one is 5 long and adds 1, one is 40 short and adds 2."""
    mine = chain([("B", 1, 100.0)] * 6, start=5.0, fee=0.0, user=ME)
    other = chain([("A", 2, 100.0)] * 6, start=-40.0, fee=0.0, user=OTHER)
    both = pd.concat([mine, other.assign(time=other["time"] + pd.Timedelta("1min"))])
    rows = both.sort_values("time", ignore_index=True)
    return rows if user_column else rows.drop(columns="user")


WALKERS = {
    "audit": lambda rows: tk.pnl.audit(rows, {"BTC": 5}),
    "positions": lambda rows: tk.pnl.positions(rows, {"BTC": 5}),
    "unrealised": lambda rows: tk.pnl.unrealised(rows, {"BTC": 90.0}, {"BTC": 5}),
    "lots": tk.pnl.lots,
    "round_trips": tk.pnl.round_trips,
    "equity": tk.pnl.equity,
}


@pytest.mark.parametrize("name", WALKERS)
def test_mixed_accounts_are_noticed(name):
    walk = WALKERS[name]
    with pytest.warns(UnnamedAccount, match="11 fills"):
        walk(alternating(user_column=False))
    result = walk(alternating(user_column=True))
    assert set(result["user"].str.lower()) == {ME.lower(), OTHER.lower()}
    rows = fills()
    rows.attrs["toolkit"] = {"rows": 3, "parameters": {"users": [ME, OTHER]}}
    with pytest.raises(ValueError, match="2 accounts"):
        walk(rows)
    rows.attrs["toolkit"] = {"rows": 9, "parameters": {"users": [ME, OTHER]}}
    walk(rows)


def test_missing_fills_are_not_refused():
    """One account, every third fill missing: breaks go on from new positions."""
    grown = [round(0.37 * n * (n + 1) / 2, 2) for n in range(60)]
    rows = pd.DataFrame({"start_position": grown[:-1], "side": "B", "coin": "BTC", "px": 10.0})
    rows["sz"] = [round(0.37 * (n + 1), 2) for n in range(59)]
    rows["closed_pnl"], rows["fee"] = 0.0, 0.0
    rows["time"] = times(MONDAY + n for n in range(59))
    kept = rows[rows.index % 3 != 1].reset_index(drop=True)
    assert tk.pnl.positions(kept, {"BTC": 5})["chain_break"].sum() == 19


def test_fill_that_begins_flat_warns():
    """The close is missing, or the second buy is of another account."""
    rows = pd.concat([fills().head(1)] * 2, ignore_index=True)
    rows = rows.assign(time=times([MONDAY, MONDAY + 1]), tid=[1, 2])
    with pytest.warns(UnnamedAccount, match="1 fill "):
        tk.pnl.round_trips(rows)
    tk.pnl.round_trips(rows, account=ME)
    tk.pnl.lots(rows.assign(user=ME))
    rows.attrs["toolkit"] = {"rows": 90, "parameters": {"user": ME}}
    tk.pnl.positions(rows, {"BTC": 5})


def test_both_sides_of_a_trade_are_refused():
    """The exchange cancels an order that would meet one of the same account."""
    other = fills().assign(side=["A", "B", "B"], oid=[21, 22, 23], start_position=[0.0, -2.0, -1.0])
    with pytest.raises(ValueError, match=r"3.*user"):
        tk.pnl.round_trips(pd.concat([fills(), other], ignore_index=True))
    apart = pd.concat([fills().assign(user=ME), other.assign(user=OTHER)], ignore_index=True)
    assert tk.pnl.round_trips(apart)["status"].tolist() == ["closed", "closed"]
    conversions = pd.concat([fills(), other.assign(time=other["time"] + pd.Timedelta("1h"))])
    tk.pnl.round_trips(conversions.assign(tid=0).reset_index(drop=True))


def test_interleaved_pair_is_noticed():
    """Two accounts open and close in turn."""
    rows = pd.concat([fills().head(1)] * 4, ignore_index=True).assign(
        side=["B", "A", "A", "B"],
        sz=[2.37, 0.91, 2.37, 0.91],
        start_position=[0.0, 0.0, 2.37, -0.91],
        time=times([MONDAY + number for number in range(4)]),
        tid=[1, 2, 3, 4],
    )
    with pytest.warns(UnnamedAccount, match="3 fills "):
        tk.pnl.round_trips(rows)


@pytest.fixture(scope="module")
def histories():
    """The shorter histories of a simulated exchange, with nothing that names the account."""
    session = tk.local(seed=7, size="tiny", default=False)
    frames = {
        user: tk.user_fills_by_time(user, 0, session=session).drop(columns="user", errors="ignore")
        for user in session.world["users"]
    }
    for frame in frames.values():
        frame.attrs.clear()
    return {user: frame for user, frame in frames.items() if 3 < len(frame) < 800}


def test_two_unnamed_histories_are_noticed(histories):
    """Two histories without names are refused, or warned of, or have the trips of both."""
    drawn, seen = random.Random(3), Counter()
    for _ in range(30):
        parts = [histories[user].assign(user=user) for user in drawn.sample([*histories], 2)]
        if drawn.random() < 0.3:
            parts = [part.head(20) for part in parts]
        joined = pd.concat(parts, ignore_index=True)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            expected = tk.pnl.round_trips(joined)
            try:
                found = tk.pnl.round_trips(joined.drop(columns="user"))
            except ValueError:
                seen["refused"] += 1
                continue
        if any(issubclass(one.category, UnnamedAccount) for one in warned):
            seen["warned"] += 1
        else:
            seen["right"] += 1
            pd.testing.assert_frame_equal(in_order(found), in_order(expected[found.columns]))
    assert min(seen["refused"], seen["warned"], seen["right"]) > 0


def test_gaps_of_one_account_are_accepted(histories):
    drawn = random.Random(4)
    for _ in range(15):
        history = histories[drawn.choice([*histories])]
        first = drawn.randrange(len(history))
        last = drawn.randrange(first, len(history)) + 1
        kept = history.drop(history.index[first:last]).iloc[:: drawn.randint(1, 5)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnamedAccount)
            tk.pnl.round_trips(kept)


def in_order(trips):
    names = ["coin", "side", "opened", "closed", "size", "fees"]
    return trips.sort_values(names, ignore_index=True)


def test_repeated_week_of_validator_counts_once():
    """The history of a single validator has no column that names it."""
    weeks = pd.to_datetime(["2025-09-22", "2025-09-29"], utc=True)
    history = pd.DataFrame({"week": weeks, "net_apr": [0.02, 0.03], "gross_apr": [0.025, 0.035]})
    with pytest.warns(RepeatedRows, match="history: 1 of 3 rows"):
        kept = drop_repeated_rows(pd.concat([history, history.tail(1)]), "history")
    assert kept["net_apr"].tolist() == [0.02, 0.03]
