"""How much of the funding is covered: by hand, on every engine, and on the simulated exchange."""

from decimal import Decimal

import pandas as pd
import pytest

from toolkit.analysis.pnl.funding_hours import count_position_hours
from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.pnl import attribution
from toolkit.reports.funding_coverage import compare_funding

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times

KINDS = ("float", "exact")
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


def fills(user=ME):
    frame = pd.DataFrame(_FILLS, columns=["time", "coin", "side", "sz", "start_position"])
    frame["time"] = times(MONDAY + int(hour * HOUR) for hour in frame["time"])
    return frame.assign(user=user, px=10.0, closed_pnl=0.0, fee=0.0)


def funding(**hours):
    rows = [(coin, hour) for coin, some in hours.items() for hour in sorted(some)]
    frame = pd.DataFrame({"coin": [coin for coin, _ in rows]}, dtype="str")
    frame.insert(0, "time", times(MONDAY + hour * HOUR for _, hour in rows))
    return frame.assign(usdc=-1.0, user=ME)


def told(engine, kind, *frames, by=None):
    given = [engine.give(as_numbers(frame, kind)) for frame in frames]
    return [row["covers"] for row in engine.take(attribution(*given, by=by))]


@pytest.mark.parametrize("kind", KINDS)
def test_total_states_share_of_position_hours(engine, kind):
    """A payment at the very moment of a fill is for the position before it."""
    whole = funding(**HELD)
    assert told(engine, kind, fills(), whole) == ["fills, funding"]
    assert told(engine, kind, fills(), whole[:5]) == ["fills, funding (5 of 17 position hours)"]
    strange = pd.concat([funding(BTC={5}), funding(SOL={1, 2})])
    assert told(engine, kind, fills(), strange) == ["fills, funding (0 of 17 position hours)"]
    twice = pd.concat([whole[:1], whole[:1]])
    with pytest.warns(RepeatedRows, match="funding: 1 of 2 rows"):
        found = told(engine, kind, fills(), twice)
    assert found == ["fills, funding (1 of 17 position hours)"]


@pytest.mark.parametrize("kind", KINDS)
def test_row_of_several_hours_covers_each(engine, kind):
    """ETH at 3 sums hours 1 to 3, and BTC at 7 hours 5 to 7, at the first of which it was flat."""
    paid = funding(BTC={1, 2, 3, 4, 7, 8, 9}, ETH=set(range(3, 10)))
    several = [(3, "ETH"), (7, "BTC")]
    hours = (paid["time"] - paid["time"].min()) // pd.Timedelta(hours=1) + 1
    counts = [3 if pair in several else None for pair in zip(hours, paid["coin"], strict=True)]
    paid["n_samples"] = pd.Series(counts, dtype="Int64").to_numpy("float64", na_value=float("nan"))
    paid = paid.astype({"n_samples": "Int64"})
    assert told(engine, kind, fills(), paid) == ["fills, funding"]
    some = paid[paid["time"] != paid["time"].max()]
    assert told(engine, kind, fills(), some) == ["fills, funding (15 of 17 position hours)"]
    fewer = paid.assign(
        n_samples=paid["n_samples"].mask(paid["time"] == times([MONDAY + 3 * HOUR])[0], 2)
    )
    fewer.loc[fewer["coin"] == "BTC", "n_samples"] = paid["n_samples"]
    assert told(engine, kind, fills(), fewer) == ["fills, funding (16 of 17 position hours)"]


@pytest.mark.parametrize("kind", KINDS)
def test_group_without_payments_is_not_covered(engine, kind):
    """A coin or hour without any row is not covered; the others state the whole time."""
    paid = funding(BTC={1, 2})
    by_coin = told(engine, kind, fills(), paid, by="coin")
    assert by_coin == [
        "fills, funding",
        "fills, funding (2 of 8 position hours)",
        "fills, not funding (no rows)",
    ]
    some = ["fills, funding (2 of 17 position hours in all)"]
    # Fills are at hours 0, 4, 5 and 9, payments at 1 and 2.
    none = ["fills, not funding (no rows)"]
    by_hour = told(engine, kind, fills(), paid, by=["hour", "user"])
    assert by_hour == none + some * 2 + none * 3
    assert told(engine, kind, fills(), paid, by="week") == some
    both = pd.concat([fills(), fills(OTHER)])
    paid = pd.concat([funding(**HELD), funding(ETH={1}).assign(user=OTHER.lower())])
    assert told(engine, kind, both, paid, by="user") == [
        "fills, funding",
        "fills, funding (1 of 17 position hours)",
    ]
    assert told(engine, kind, both, paid) == ["fills, funding (18 of 34 position hours)"]
    assert told(engine, kind, both, paid, by="dex") == [
        "fills, funding (18 of 34 position hours)",
        "fills, funding",
    ]


def test_uncovered_funding_is_missing():
    rows = attribution(fills(), funding(BTC={1, 2}), by="coin").set_index("coin")
    assert rows["funding"].isna().to_dict() == {"@1": False, "BTC": False, "ETH": True}
    assert rows.loc["BTC", "funding"] == -2


def two_days():
    """Long 1 BTC over hours 23 of Monday, 0 and 1 of Tuesday; a quick trade on Wednesday."""
    frame = pd.DataFrame({"side": ["B", "A", "B", "A"], "start_position": [0.0, 1.0, 0.0, 1.0]})
    frame["time"] = times(MONDAY + int(hour * HOUR) for hour in (22.5, 25.5, 60.2, 60.4))
    frame["closed_pnl"] = [0.0, 10.0, 0.0, 3.0]
    return frame.assign(user=ME, coin="BTC", px=100.0, sz=1.0, fee=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_funding_of_partly_covered_day_is_missing(engine, kind):
    """Monday: -0.5 fee, -1 funding. Tuesday: 10 - 0.5, two hours held. Wednesday: 3 - 2 * 0.5."""

    def days(paid, by="day"):
        given = [engine.give(as_numbers(frame, kind)) for frame in (two_days(), paid)]
        return [(row["funding"], row["net"]) for row in engine.take(attribution(*given, by=by))]

    some, whole = funding(BTC={23}), funding(BTC={23, 24, 25})
    assert days(some) == [(-1, -1.5), (None, 9.5), (None, 2.0)]
    assert days(some, ["coin", "day"]) == days(some)
    assert days(some, None) == [(-1, -1.5 + 9.5 + 2.0)]
    assert days(whole) == [(-1, -1.5), (-2, 7.5), (0, 2.0)]
    assert days(whole, None) == [(-1 - 2 + 0, -1.5 + 7.5 + 2.0)]


def test_equity_change_of_uncovered_day_is_missing():
    moved = pd.DataFrame({"time": times([MONDAY]), "type": "deposit", "usdc": 100.0})
    rows = attribution(two_days(), funding(BTC={23}), moved, by="day", account=ME)
    assert rows["equity_change"].isna().tolist() == [False, True, True]
    assert rows["equity_change"][0] == 100 - 0.5 - 1


def test_days_without_positions_need_any_payment():
    bare = two_days().drop(columns="start_position")
    rows = attribution(bare, funding(BTC={23, 24, 25}), by="day")
    assert rows["funding"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", [None, "coin", ["user", "day"]], ids=str)
def test_empty_frames_state_no_hours(engine, kind, by):
    none, paid = funding(), funding(**HELD)
    assert set(told(engine, kind, fills(), none, by=by)) == {"fills, not funding (no rows)"}
    assert set(told(engine, kind, fills()[:0], paid[:0], by=by)) <= {"fills, funding"}
    assert set(told(engine, kind, fills()[:0], paid, by=by)) <= {"fills, funding"}


def test_integer_times_and_categories_are_read():
    traded, paid = fills(), funding(**HELD)[:5]
    for frame in (traded, paid):
        frame["time"] = frame["time"].dt.tz_localize(None).astype("int64")
    paid["coin"] = paid["coin"].astype("category")
    result = attribution(traded, paid)["covers"].item()
    assert result == "fills, funding (5 of 17 position hours)"


def test_order_of_rows_does_not_matter():
    """Fills of one millisecond are put in order by the positions they start from."""
    paid = funding(**HELD)
    for seed in range(5):
        shuffled = fills().sample(frac=1, random_state=seed)
        assert attribution(shuffled, paid)["covers"].item() == "fills, funding"


def test_positions_count_until_request_time():
    """Not until then if rows of the fills were taken away since."""
    traded, paid = fills(), funding(**HELD)
    asked = f"{pd.Timestamp(MONDAY + 12 * HOUR, unit='ms'):%Y-%m-%dT%H:%M:%S}.000Z"
    for frame in (traded, paid):
        frame.attrs["toolkit"] = {"asked_at": asked, "rows": len(frame), "parameters": {}}
    result = attribution(traded, paid)["covers"].item()
    assert result == "fills, funding (17 of 20 position hours)"
    assert attribution(traded[:-1], paid)["covers"].item() == "fills, funding"
    traded.attrs["toolkit"]["parameters"] = {"end": MONDAY + 10 * HOUR + 1}
    result = attribution(traded, paid)["covers"].item()
    assert result == "fills, funding (17 of 18 position hours)"


def test_positions_count_until_earlier_request():
    """What happened between the two requests is known of one frame only."""
    hour = "2025-09-01T{:02}:00:00.000Z"
    for first, second in ((12, 14), (14, 12)):
        traded, paid = fills(), funding(**HELD)
        for frame, asked in ((traded, first), (paid, second)):
            frame.attrs["toolkit"] = {"asked_at": hour.format(asked), "rows": len(frame)}
        result = attribution(traded, paid)["covers"].item()
        assert result == "fills, funding (17 of 20 position hours)"


def test_sizes_as_text_are_refused():
    for name in ("sz", "start_position"):
        with pytest.raises(MissingColumns, match=rf"^fills: .*{name}"):
            count_position_hours(fills().assign(**{name: "1"}), funding(**HELD), [], [])


def test_fills_without_start_positions_state_no_hours():
    bare = fills().drop(columns="start_position")
    assert attribution(bare, funding(BTC={1}))["covers"].item() == "fills, funding"


def test_hours_equal_the_report(world, rows_of):
    paying = list(dict.fromkeys(row.user for row in world.sources.funding))
    seen = []
    for user in paying[:8]:
        traded = rows_of("userFillsByTime", user)
        every = rows_of("builderApprovedFundingByTime", user)
        for paid in (every, every[: len(every) // 3]):
            last = max(traded["time"].max(), paid["time"].max())
            found = compare_funding(traded, paid, last.value // 1_000_000)
            share = f" ({found.covered} of {found.held} position hours)"
            row = attribution(traded, paid, account=user).iloc[0]
            assert row["covers"] == f"fills, funding{share * (found.covered < found.held)}"
            assert row["funding"] == sum(paid["usdc"], Decimal(0))
            seen.append(found.held > found.covered)
    assert set(seen) == {True, False}
