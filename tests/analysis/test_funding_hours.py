"""How much of the funding is covered: by hand, and on the simulated exchange."""

import pandas as pd
import pytest

from toolkit.errors import RepeatedRows
from toolkit.pnl import attribution, round_trips
from toolkit.reports.funding_coverage import compare_funding

from .examples import HOUR, ME, MONDAY, OTHER, times
from .test_lots import chain

#  hours  coin       side size start: BTC is open at 1..4 and 6..9, ETH at 1..9, @1 never
_FILLS = [
    (0.5, "BTC", "B", 0.3, 0.0),
    (0.5, "BTC", "B", 0.7, 0.3),
    (0.5, "ETH", "A", 5.0, 0.0),
    (0.5, "@1", "B", 5.0, 0.0),
    (4.0, "BTC", "A", 0.4, 1.0),
    (4.0, "BTC", "A", 0.6, 0.6),
    (5.5, "BTC", "A", 2.0, 0.0),
    (5.7, "BTC", "B", 1.0, -2.0),
    (5.7, "BTC", "A", 1.0, -1.0),
    (9.2, "BTC", "B", 2.0, -2.0),
]
HELD = {"BTC": {1, 2, 3, 4, 6, 7, 8, 9}, "ETH": set(range(1, 10))}
WHOLE, NOTHING = "fills, funding", "fills, not funding (no rows)"


def fills(user=ME):
    frame = pd.DataFrame(_FILLS, columns=["time", "coin", "side", "sz", "start_position"])
    frame["time"] = times(MONDAY + int(hour * HOUR) for hour in frame["time"])
    return frame.assign(user=user, px=10.0, closed_pnl=0.0, fee=0.0)


def funding(user=ME, **hours):
    rows = [(coin, hour) for coin, some in hours.items() for hour in sorted(some)]
    frame = pd.DataFrame({"coin": [coin for coin, _ in rows]}, dtype="str")
    frame.insert(0, "time", times(MONDAY + hour * HOUR for _, hour in rows))
    return frame.assign(usdc=-1.0, user=user)


def covers(traded, paid, by=None):
    return attribution(traded, paid, by=by)["covers"].tolist()


def share(covered, held, words=""):
    return f"{WHOLE} ({covered} of {held} position hours{words})"


def test_payment_before_late_trip_is_no_hour_of_it():
    at = times(MONDAY + int(hour * HOUR) for hour in (2.5, 5.5))
    late = fills()[:2].assign(time=at, sz=[1.0, 2.0], side=["B", "A"], start_position=[1.0, 2.0])
    (trip,) = round_trips(late, funding(BTC={1, 3, 4}).assign(szi=[1.0, 2.0, 2.0])).itertuples()
    assert (trip.held_hours, trip.funded_hours, pd.isna(trip.funding)) == (3, 2, True)


def test_total_states_share_of_position_hours():
    """A payment at the very moment of a fill is for the position before it."""
    whole = funding(**HELD)
    assert covers(fills(), whole) == [WHOLE]
    assert covers(fills(), whole[:5]) == [share(5, 17)]
    strange = pd.concat([funding(BTC={5}), funding(SOL={1, 2})])
    assert covers(fills(), strange) == [share(0, 17)]
    with pytest.warns(RepeatedRows, match="1 of 2"):
        assert covers(fills(), pd.concat([whole[:1]] * 2)) == [share(1, 17)]
    again = whole[:1].assign(time=whole["time"][:1] + pd.Timedelta("1s"))  # of the same hour
    unsized = fills()[:1].assign(coin="SOL", sz=0.0)
    assert covers(pd.concat([fills(), unsized]), pd.concat([whole[:5], again])) == [share(5, 17)]
    for seed in range(3):  # positions put fills of one millisecond in order
        assert covers(fills().sample(frac=1, random_state=seed), whole) == [WHOLE]
    for bare in (fills().drop(columns="start_position"), fills()[:0]):
        assert covers(bare, funding(BTC={1})) == [WHOLE]
    frames = fills(), whole[:5].astype({"coin": "category"})
    for frame in frames:
        frame["time"] = frame["time"].dt.tz_localize(None).astype("int64")
    assert covers(*frames) == [share(5, 17)]


def test_row_of_several_hours_covers_each():
    """ETH at 3 sums hours 1 to 3, and BTC at 7 hours 5 to 7, at the first of which it was flat."""
    paid = funding(BTC={1, 2, 3, 4, 7, 8, 9}, ETH=set(range(3, 10)))
    hours = (paid["time"] - paid["time"].min()) // pd.Timedelta(hours=1) + 1
    several = (paid["coin"] == "ETH") & (hours == 3) | (paid["coin"] == "BTC") & (hours == 7)
    paid["n_samples"] = pd.array(several.map({True: 3, False: None}), dtype="Int64")
    assert covers(fills(), paid) == [WHOLE]
    some = paid[paid["time"] != paid["time"].max()]
    assert covers(fills(), some) == [share(15, 17)]
    paid.loc[(paid["coin"] == "ETH") & (hours == 3), "n_samples"] = 2
    assert covers(fills(), paid) == [share(16, 17)]


def test_group_without_payments_is_not_covered():
    """A coin or hour without any row is not covered; the others state the whole time."""
    paid = funding(BTC={1, 2})
    assert covers(fills(), paid, "coin") == [WHOLE, share(2, 8), NOTHING]
    rows = attribution(fills(), paid, by="coin").set_index("coin")["funding"]
    assert rows.fillna(99).to_dict() == {"@1": 0, "BTC": -2, "ETH": 99}
    some = [share(2, 17, " in all")]
    # Fills are at hours 0, 4, 5 and 9, payments at 1 and 2.
    assert covers(fills(), paid, ["hour", "user"]) == [NOTHING, *some * 2, *[NOTHING] * 3]
    assert covers(fills(), paid, "week") == some
    both = pd.concat([fills(), fills(OTHER)])
    paid = pd.concat([funding(**HELD), funding(ETH={1}, user=OTHER.lower())])
    assert covers(both, paid, "user") == [WHOLE, share(1, 17)]
    assert covers(both, paid) == [share(18, 34)]
    assert covers(both, paid, "dex") == [share(18, 34), WHOLE]


def two_days():
    """Long 1 BTC over hours 23 of Monday, 0 and 1 of Tuesday; a quick trade on Wednesday."""
    at = times(MONDAY + int(hour * HOUR) for hour in (22.5, 25.5, 60.2, 60.4))
    paid = {"closed_pnl": [0.0, 10.0, 0.0, 3.0], "fee": 0.5}
    return chain([("B", 1, 100.0), ("A", 1, 100.0)] * 2, time=at, user=ME, **paid)


def test_funding_of_partly_covered_day_is_missing():
    """Monday: -0.5 fee, -1 funding. Tuesday: 10 - 0.5, two hours held. Wednesday: 3 - 2 * 0.5."""

    def days(paid, by="day"):
        rows = attribution(two_days(), paid, by=by)[["funding", "net"]]
        return [tuple(row) for row in rows.fillna({"funding": 99}).to_numpy()]

    some, whole = funding(BTC={23}), funding(BTC={23, 24, 25})
    assert days(some) == [(-1, -1.5), (99, 9.5), (99, 2.0)]
    assert days(some, ["coin", "day"]) == days(some)
    assert days(some, None) == [(-1, -1.5 + 9.5 + 2.0)]
    assert days(whole) == [(-1, -1.5), (-2, 7.5), (0, 2.0)]
    assert days(whole, None) == [(-1 - 2 + 0, -1.5 + 7.5 + 2.0)]
    moved = pd.DataFrame({"time": times([MONDAY]), "type": "deposit", "usdc": 100.0})
    rows = attribution(two_days(), some, moved, by="day", account=ME)["equity_change"]
    assert rows.fillna(99).tolist() == [100 - 0.5 - 1, 99, 99]
    # Without positions, a day needs any payment.
    rows = attribution(two_days().drop(columns="start_position"), whole, by="day")
    assert rows["funding"].isna().tolist() == [False, False, True]


def test_empty_frames_state_no_hours():
    for by in (None, "coin", ["user", "day"]):
        assert set(covers(fills(), funding(), by)) == {NOTHING}
        assert set(covers(fills()[:0], funding(), by)) <= {WHOLE}
        assert set(covers(fills()[:0], funding(**HELD), by)) <= {WHOLE}


def test_positions_count_until_earlier_request():
    """What happened later is not known; if rows of the fills were taken away since, nothing is."""
    asked = "2025-09-01T{:02}:00:00.000Z"
    for of_fills, of_funding, until, rows, wanted in (
        (12, 12, None, 10, share(17, 20)),
        (12, 14, None, 10, share(17, 20)),
        (14, 12, None, 10, share(17, 20)),
        (12, 12, None, 9, WHOLE),
        (12, 12, MONDAY + 10 * HOUR + 1, 10, share(17, 18)),
    ):
        traded, paid = fills(), funding(**HELD)
        said = {"rows": 10, "parameters": {"end": until} if until else {}}
        traded.attrs["toolkit"] = said | {"asked_at": asked.format(of_fills)}
        paid.attrs["toolkit"] = {"rows": len(paid), "asked_at": asked.format(of_funding)}
        assert covers(traded[:rows], paid) == [wanted]


def test_recorded_fills_cover_their_own_time():
    """Recordings may lack earlier fills, so funding of a day before is not funding of these."""
    traded, paid = fills(), pd.concat([funding(**HELD), funding(BTC={-30, -29})])
    parameters = {"user": ME, "start": MONDAY - 48 * HOUR, "end": MONDAY + 24 * HOUR}
    whole = {"complete": "yes", "rows": len(traded), "parameters": parameters}
    whole |= {"asked_at": "2026-01-07T00:00:00Z"}
    sums = []
    for history in ("", "some fills may be missing: the source has only recorded answers"):
        traded.attrs["toolkit"] = whole | ({"history": history} if history else {})
        sums.append(attribution(traded, paid)[["funding", "funding_outside"]].loc[0].tolist())
    assert sums == [[-19.0, 0.0], [-17.0, -2.0]]


def test_hours_equal_the_report(tables):
    seen = set()
    for user in tables.funding["user"].unique()[:4]:
        traded = tables.fills[tables.fills["user"] == user]
        every = tables.funding[tables.funding["user"] == user]
        for paid in (every, every[: len(every) // 3]):
            last = max(traded["time"].max(), paid["time"].max())
            found = compare_funding(traded, paid, last.value // 1_000_000)
            partly = found.covered < found.held
            row = attribution(traded, paid, account=user).iloc[0]
            assert row["covers"] == (share(found.covered, found.held) if partly else WHOLE)
            assert float(row["funding"]) == pytest.approx(float(paid["usdc"].sum()))
            seen.add(partly)
    assert seen == {True, False}
