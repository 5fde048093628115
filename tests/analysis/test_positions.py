"""Positions and round trips: by hand, as identities, and on the simulated exchange."""

from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given

from toolkit.errors import HistoryWarning, MissingColumns
from toolkit.pnl import attribution, lots, positions, round_trips, unrealised

from .examples import HOUR, ME, MONDAY, OTHER, as_numbers, times
from .simulated import everybody
from .test_lots import chain, trades

KINDS = ("float", "exact")
SIZES = {"BTC": 5, "ETH": 4}


@pytest.fixture(scope="module")
def tables(world):
    return everybody(world)


def fills(rows, **more):
    return chain(rows, **{"closed_pnl": 0.0, "fee": 0.0, **more})


def listed_value(value):
    return None if pd.isna(value) else float(value)


def listed(column):
    return [listed_value(value) for value in column]


@pytest.mark.parametrize("kind", KINDS)
def test_entry_prices_are_truncated(kind):
    """301 / 3 = 100.333.., counted as 100.3; sold 1; a flip opens its rest at its own price."""
    rows = [("B", 2, 100.0), ("B", 1, 101.0), ("A", 1, 101.0), ("A", 3, 100.0), ("B", 1, 99.0)]
    result = positions(as_numbers(fills(rows), kind), SIZES)
    assert listed(result["position"]) == [2, 3, 2, -1, 0]
    assert listed(result["entry_px"]) == [100.0, 100.3, 100.3, 100.0, None]
    assert listed(result["expected_closed_pnl"]) == pytest.approx([0, 0, 0.7, -0.6, 1.0])
    assert listed(result["change"]) == [2, 1, -1, -3, 1]


def test_address_case_is_ignored(engine):
    """One account that is written in two ways: one chain, one position, one trip, one lot."""
    result = fills([("B", 2, 100.0), ("A", 1, 110.0), ("A", 1, 120.0)])
    result["user"] = pd.array([OTHER, OTHER.lower(), OTHER], dtype="str")
    result["closed_pnl"] = [0.0, 10.0, 20.0]
    frame = engine.give(result)
    rows = engine.take(positions(frame, SIZES))
    assert [row["user"] for row in rows] == [OTHER.lower()] * 3
    assert [row["expected_closed_pnl"] for row in rows] == [0, 10, 20]
    assert [row["gross"] for row in engine.take(round_trips(frame))] == [30]
    assert [row["realised"] for row in engine.take(lots(frame))] == [10, 20]
    assert engine.take(unrealised(frame, {"BTC": 1.0}, SIZES, at=MONDAY + 10 * HOUR)) == []


def test_entry_price_is_unknown_until_flip():
    rows = [("B", 1, 100.0), ("A", 3, 100.0), ("B", 1, 90.0), ("A", 1, 95.0)]
    result = positions(fills(rows, start=2.0), SIZES)
    assert listed(result["entry_px"]) == [None, None, 90.0, None]
    broken = positions(fills(rows).drop(index=1), SIZES)
    assert broken["chain_break"].tolist() == [False, True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_unrealised_by_hand(kind):
    """Long 3 from 100.3 at 110, and what was open an hour earlier."""
    result = as_numbers(fills([("B", 2, 100.0), ("B", 1, 101.0)]), kind)
    row = unrealised(result, {"BTC": 110.0}, SIZES).iloc[0]
    assert float(row["unrealized_pnl"]) == pytest.approx(29.1)
    assert float(row["position_value"]) == 330
    before = unrealised(result, {"BTC": 110.0}, SIZES, at=MONDAY).iloc[0]
    assert float(before["unrealized_pnl"]) == 20
    nobody = unrealised(result, {"ETH": 1.0}, SIZES).iloc[0]
    assert pd.isna(nobody["unrealized_pnl"])
    assert float(nobody["szi"]) == 3


def mixed_fills():
    """Two accounts: a missing fill, a short, spot tokens, an unknown coin, a late history."""
    held = [("B", 2, 100.0), ("B", 1, 100.5), ("A", 1, 101.0), ("A", 2, 102.0), ("A", 4, 99.0)]
    rows = [
        fills([("A", 3, 7.0), ("B", 1, 6.0)]).assign(coin="ETH", closed_pnl=[0.0, 1.5], user=OTHER),
        fills(held).drop(index=1).assign(user=OTHER),
        fills([("B", 10.5, 2.0), ("A", 4, 3.0), ("A", 6, 5.0)]).assign(coin="@107", user=ME),
        fills([("B", 1, 9.0)]).assign(coin="NEW", user=ME),
        fills([("B", 1, 6.0)], start=2.0).assign(coin="ETH", user=ME),
    ]
    return pd.concat(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_positions_of_mixed_fills_by_hand(kind):
    result = positions(as_numbers(mixed_fills(), kind), SIZES)
    columns = ["start_position", "change", "position", "entry_px", "px", "closed_pnl"]
    columns += ["expected_closed_pnl", "gap"]
    nothing = None
    assert [
        (user[2], coin, str(time)[11:13], *map(listed_value, numbers), broken)
        for user, coin, time, *numbers, broken in result[
            ["user", "coin", "time", *columns, "chain_break"]
        ].itertuples(index=False)
    ] == [
        ("a", "@107", "00", 0, 10.5, 10.5, 2, 2, 0, 0, 0, False),
        ("a", "@107", "01", 10.5, -4, 6.5, 2, 3, 0, 4, 0, False),
        ("a", "@107", "02", 6.5, -6, 0.5, 2, 5, 0, 18, 0, False),
        ("a", "ETH", "00", 2, 1, 3, nothing, 6, 0, nothing, 0, False),
        ("a", "NEW", "00", 0, 1, 1, nothing, 9, 0, nothing, 0, False),
        ("b", "BTC", "00", 0, 2, 2, 100, 100, 0, 0, 0, False),
        ("b", "BTC", "02", 3, -1, 2, nothing, 101, 0, nothing, 1, True),
        ("b", "BTC", "03", 2, -2, 0, nothing, 102, 0, nothing, 0, False),
        ("b", "BTC", "04", 0, -4, -4, 99, 99, 0, 0, 0, False),
        ("b", "ETH", "00", 0, -3, -3, 7, 7, 0, 0, 0, False),
        ("b", "ETH", "01", -3, 1, -2, 7, 6, 1.5, 1, 0, False),
    ]
    money = as_numbers(pd.DataFrame({"n": [1.5]}), kind)["n"].dtype
    assert (result[columns].dtypes == money).all()
    facts = result.attrs["toolkit"]
    assert (facts["helper"], list(facts["inputs"])) == ("pnl.positions", ["fills"])
    unknown = fills([("B", 1, 2.0)], start=5.0).assign(coin="@107")
    assert listed(positions(as_numbers(unknown, kind), SIZES)["entry_px"]) == [None]
    whole = fills([("B", 2, 7.0), ("A", 1, 9.0)]).assign(closed_pnl=[0.0, 1.98765], user=OTHER)
    some = positions(as_numbers(whole, kind), SIZES)
    assert listed(some["expected_closed_pnl"]) == [0, 2]
    assert some["user"].tolist() == [OTHER.lower()] * 2
    with pytest.raises(MissingColumns, match=r"^fills: the frame lacks the column px"):
        positions(whole.drop(columns="px"), SIZES)
    with pytest.raises(MissingColumns, match=r"^fills: column px is String"):
        positions(whole.assign(px="1"), SIZES)
    nothing = pd.array([None] * 2, dtype="str")  # perps need no directions: no warning
    assert len(positions(as_numbers(whole, kind).assign(dir=nothing), SIZES)) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_unrealised_of_mixed_fills_by_hand(kind):
    rows = as_numbers(mixed_fills(), kind)
    names = ["user", "coin", "szi", "entry_px", "mark_px", "position_value", "unrealized_pnl"]
    marks = pd.DataFrame({"name": ["BTC", "ETH", "SOL", "NO"], "mark_px": [97.25, 5.125, 0, None]})

    def found(result):
        assert list(result.columns) == names
        return [
            (user[2], coin, *map(listed_value, numbers))
            for user, coin, *numbers in result.itertuples(index=False)
        ]

    assert found(unrealised(rows, marks, SIZES)) == [
        ("a", "ETH", 3, None, 5.125, 15.375, None),
        ("a", "NEW", 1, None, None, None, None),
        ("b", "BTC", -4, 99, 97.25, 389, 7),
        ("b", "ETH", -2, 7, 5.125, 10.25, 3.75),
    ]
    last = unrealised(rows, marks, SIZES)
    money = as_numbers(pd.DataFrame({"n": [1.5]}), kind)["n"].dtype
    assert (last[names[2:]].dtypes == money).all()
    facts = last.attrs["toolkit"]
    assert (facts["helper"], list(facts["inputs"])) == ("pnl.unrealised", ["fills"])
    early = pd.Timestamp(MONDAY, unit="ms", tz="UTC")
    unknown = [("a", coin, size, *[None] * 4) for coin, size in (("ETH", 3), ("NEW", 1))]
    wanted = [*unknown, ("b", "BTC", 2, 100, 97.5, 195, -5)]
    for at in (early, MONDAY):
        some = unrealised(rows, {"BTC": 97.5}, SIZES, at=at)
        assert found(some) == [*wanted, ("b", "ETH", -3, 7, None, None, None)]
    with pytest.raises(MissingColumns, match=r"^marks: column mark_px is String"):
        unrealised(rows, marks.assign(mark_px="1"), SIZES)
    with pytest.raises(MissingColumns, match=r"^marks: the frame lacks the column mark_px"):
        unrealised(rows, marks[["name"]], SIZES)


@pytest.mark.parametrize("kind", KINDS)
def test_position_without_size_decimals_is_kept(engine, kind):
    """3 flx:TSLA short are worth 720, at an entry price that is not known; spot has no row."""
    rows = pd.concat(
        [fills([("B", 2, 100.0)]), fills([("A", 3, 250.0)]).assign(coin="flx:TSLA"),
         fills([("B", 5, 10.0)]).assign(coin="@107")], ignore_index=True,
    )  # fmt: skip
    marks = {"BTC": 110.0, "flx:TSLA": 240.0, "@107": 11.0}
    made = engine.take(unrealised(engine.give(as_numbers(rows, kind)), marks, SIZES))
    names = ["szi", "entry_px", "mark_px", "position_value", "unrealized_pnl"]
    found = {row["coin"]: [listed_value(row[name]) for name in names] for row in made}
    assert found == {"BTC": [2, 100, 110, 220, 20], "flx:TSLA": [-3, None, 240, 720, None]}


def test_several_mark_prices_are_refused():
    marks = pd.DataFrame({"name": ["BTC", "BTC"], "mark_px": [1.0, 2.0]})
    with pytest.raises(MissingColumns, match="BTC has several mark prices"):
        unrealised(fills([("B", 2, 100.0)]), marks, SIZES)
    with pytest.raises(ValueError, match="time zone"):
        unrealised(fills([("B", 2, 100.0)]), {"BTC": 1.0}, SIZES, at="2025-09-01")


def test_positions_equal_the_states(tables):
    """Size, entry price and unrealised PnL of every open position, to the last digit."""
    result = positions(tables.fills, tables.contexts)
    perps = result[~result["coin"].str.contains("^@|/|^#")]
    assert (perps["closed_pnl"] == perps["expected_closed_pnl"]).all()
    assert not perps["chain_break"].any()
    found = unrealised(tables.fills, tables.contexts, tables.contexts)
    both = found.merge(
        tables.states.positions, on=["user", "coin"], suffixes=("", "_state"), how="outer"
    )
    assert len(both) == len(found) == len(tables.states.positions) > 100
    for name in ("szi", "entry_px", "position_value", "unrealized_pnl"):
        assert (both[name] == both[name + "_state"]).all(), name


# ---------------------------------------------------------------- round trips


FLIP = [("B", 2, 100.0), ("A", 3, 110.0), ("B", 1, 105.0), ("A", 1, 100.0)]
PAID = pd.DataFrame(
    {
        "user": [ME, ME, ME, OTHER],
        "coin": "BTC",
        # At the very time of the flip, of the end, after all; and somebody else's.
        "time": times([MONDAY + HOUR, MONDAY + 2 * HOUR, MONDAY + 9 * HOUR, MONDAY + HOUR]),
        "usdc": [-1.0, 0.25, 7.0, 100.0],
    }
)


def round_fills():
    """Two accounts: a flip, spot tokens, a position that stays open, a late and a broken one."""
    held = [("B", 2, 100.0), ("B", 1, 103.0), ("A", 1, 110.0), ("A", 5, 90.0), ("B", 3, 80.0)]
    gap = fills([("B", 1, 5.0), ("B", 2, 9.0), ("A", 2, 6.0)]).drop(index=1)
    spot = fills([("B", 10, 2.0), ("A", 4, 3.0), ("A", 6, 5.0)])
    rows = [
        fills([("A", 3, 7.0)]).assign(coin="ETH", user=OTHER, fee=0.03),
        gap.assign(coin="SOL", user=OTHER, fee=[0.01, 0.02], closed_pnl=[0.0, 0.5]),
        fills(held).assign(
            user=ME, fee=[0.2, 0.1, 0.1, 0.5, 0.3], closed_pnl=[0.0, 0.0, 9.0, -22.0, 30.0]
        ),
        fills([("A", 2, 6.0)], start=2.0).assign(coin="ETH", user=ME, fee=-0.04, closed_pnl=1.0),
        spot.assign(coin="@107", user=ME, fee=[0.0, 0.1, 0.3], closed_pnl=[0.0, 4.0, 18.0]),
    ]
    return pd.concat(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_trips_of_mixed_fills_by_hand(kind):
    """The flip closes 2 of 3 at 90 after 1 at 110, and pays 2 of its 5 parts of the fee."""
    hours = [1, 3, 4, 0]
    paid = pd.DataFrame(
        {
            "user": ME,
            "coin": ["BTC", "BTC", "BTC", "ETH"],
            "time": times(MONDAY + HOUR * hour for hour in hours),
            "usdc": [-1.0, 0.25, 0.5, 8.0],
        }
    )
    result = round_trips(as_numbers(round_fills(), kind), as_numbers(paid, kind))
    ends = [
        [None if pd.isna(time) else time.hour for time in row]
        for row in result[["opened", "closed"]].itertuples(index=False)
    ]
    texts = result[["user", "coin", "side", "status"]].to_numpy().tolist()
    numbers = ["duration_hours", "fills", "size", "entry_px", "exit_px", "gross", "fees"]
    numbers += ["funding", "net", "return_"]
    found = [
        (
            user[2],
            *rest,
            *end,
            *(None if v is None else round(v, 9) for v in map(listed_value, row)),
        )
        for (user, *rest), end, row in zip(
            texts, ends, result[numbers].itertuples(index=False), strict=True
        )
    ]
    lost, won = round(-14.35 / 303, 9), round(29.9 / 270, 9)
    out, no = round(290 / 3, 9), None
    assert found == [
        ("a", "@107", "long", "closed", 0, 2, 2, 3, 10, 2, 4.2, 22, -0.4, 0, 21.6, 1.08),
        ("a", "BTC", "long", "closed", 0, 3, 3, 4, 3, 101, out, -13, -0.6, -0.75, -14.35, lost),
        ("a", "BTC", "short", "closed", 3, 4, 1, 2, 3, 90, 80, 30, -0.6, 0.5, 29.9, won),
        ("a", "ETH", "long", "late", no, 0, no, 1, 2, no, 6, 1, 0.04, 8, 9.04, no),
        ("b", "ETH", "short", "open", 0, no, no, 1, 3, 7, no, 0, -0.03, no, -0.03,
         round(-0.03 / 21, 9)),
        ("b", "SOL", "long", "broken", 0, no, no, 1, 1, no, no, 0, -0.01, no, -0.01, no),
        ("b", "SOL", "long", "broken", no, no, no, 1, 3, no, 6, 0.5, -0.02, no, 0.48, no),
    ]  # fmt: skip
    assert not result[["forced", "at_par"]].any(axis=None)
    alone = round_trips(as_numbers(round_fills(), kind))
    assert alone["funding"].isna().all()
    assert listed(alone["net"])[1:3] == pytest.approx([-13.6, 29.4])
    few = round_trips(as_numbers(round_fills().iloc[:0], kind), as_numbers(paid.iloc[:0], kind))
    assert list(few.dtypes) == list(result.dtypes)


@pytest.mark.parametrize("kind", KINDS)
def test_trips_by_hand(kind):
    """The flip's fee of 0.3 is split 2 to 1; funding at its time belongs to what it closed."""
    outcome = fills(FLIP, user=ME, closed_pnl=[0.0, 20.0, 5.0, 0.0], fee=[0.1, 0.3, 0.1, 0.5])
    result = round_trips(as_numbers(outcome, kind), as_numbers(PAID, kind))
    assert result["side"].tolist() == ["long", "short", "short"]
    assert result["status"].tolist() == ["closed", "closed", "open"]
    assert listed(result["gross"]) == [20, 5, 0]
    assert listed(result["fees"]) == pytest.approx([-0.3, -0.2, -0.5])
    assert listed(result["funding"]) == [-1, 0.25, 7]
    assert listed(result["net"]) == pytest.approx([18.7, 5.05, 6.5])
    assert listed(result["entry_px"]) == [100, 110, 100]
    assert listed(result["exit_px"]) == [110, 105, None]
    assert listed(result["return_"]) == pytest.approx([18.7 / 200, 5.05 / 110, 6.5 / 100])
    assert listed(result["duration_hours"]) == [1, 1, None]
    assert listed(result["size"]) == [2, 1, 1]
    assert result["fills"].tolist() == [2, 2, 1]


@pytest.mark.parametrize("kind", ["float", "exact"])
def test_funding_outside_trips_is_excluded(kind):
    """Two payments a day after the last fill, for a coin that these fills do not show."""
    outcome = fills(FLIP, user=ME)
    day = pd.Timedelta(days=1)
    later = PAID[PAID["user"] == ME].iloc[:2]
    later = later.assign(time=later["time"] + day, coin="ETH", usdc=-50.0)
    more = pd.concat([PAID, later], ignore_index=True)
    with pytest.warns(HistoryWarning, match=r"^funding: 2 rows lie outside the time of the fills"):
        result = round_trips(as_numbers(outcome, kind), as_numbers(more, kind))
    plain = round_trips(as_numbers(outcome, kind), as_numbers(PAID, kind))
    assert listed(result["funding"]) == listed(plain["funding"])
    assert result.attrs["toolkit"]["funding_outside"] == 2
    assert plain.attrs["toolkit"]["funding_outside"] == 0


def test_fills_without_time_are_refused(engine):
    """Beside funding: of which time they are decides what counts."""
    result = fills(FLIP, user=ME)
    result["time"] = result["time"].where([True, False, True, True])
    for helper in (round_trips, attribution):
        with pytest.raises(MissingColumns, match=r"^fills: column time has 1 missing value"):
            helper(engine.give(result), engine.give(PAID[PAID["user"] == ME]))


def test_funding_of_trips_without_payments_is_missing():
    result = fills(FLIP[:2], user=ME, fee=0.25)
    row = round_trips(result).iloc[0]
    assert pd.isna(row["funding"])
    assert row["net"] == row["gross"] + row["fees"]
    strangers = PAID[PAID["user"] == OTHER]
    assert round_trips(result, strangers)["funding"].isna().all()


def test_late_and_broken_trips_are_labelled():
    late = round_trips(fills(FLIP[:1] + FLIP[1:2], start=1.0))
    assert late["status"].tolist() == ["late"]
    assert late["opened"].isna().all()
    assert late[["entry_px", "return_"]].isna().all(axis=None)
    rows = [("B", 1, 1.0), ("B", 1, 1.0), ("B", 1, 1.0), ("A", 3, 2.0), ("B", 1, 1.0)]
    broken = round_trips(fills(rows).drop(index=1))
    assert broken["status"].tolist() == ["broken", "broken", "open"]
    assert broken["closed"].isna().tolist() == [True, False, True]


def test_perp_fee_in_other_token_is_refused():
    with pytest.raises(MissingColumns, match="HYPE"):
        round_trips(fills(FLIP, fee=1.0, fee_token="HYPE"))


def test_only_forced_ends_are_liquidations(engine):
    """A liquidation in part, which the account then closes itself, is no end by liquidation."""
    rows = [("B", 2, 100.0), ("A", 1, 90.0), ("A", 1, 95.0), ("A", 1, 90.0), ("B", 1, 99.0)]
    long, short = "Liquidated Cross Long", "Liquidated Isolated Short"
    words = ["Open Long", long, "Close Long", "Open Short", short]
    result = fills(rows, dir=words)
    seen = engine.take(round_trips(engine.give(result)))
    assert [row["status"] for row in seen] == ["closed", "liquidated"]
    bare = engine.take(round_trips(engine.give(result.drop(columns="dir"))))
    assert [row["status"] for row in bare] == ["closed", "closed"]
    late = engine.take(round_trips(engine.give(result[4:])))
    assert [row["status"] for row in late] == ["late"]


@given(trades)
def test_trips_sum_to_fills(rows):
    signed = [("B" if change > 0 else "A", abs(change), px) for change, px in rows]
    pnl = [0.5 * n for n in range(len(rows))]
    outcome = fills(signed, closed_pnl=pnl, fee=[0.001 * px for _, px in rows])
    result = round_trips(as_numbers(outcome, "exact"))
    whole = attribution(as_numbers(outcome, "exact")).iloc[0]
    assert result["gross"].sum() == whole["closed_pnl"]
    assert result["net"].sum() == whole["net"]
    flat = sum(1 for status in result["status"] if status == "closed")
    position = flips = 0
    for change, _ in rows:
        after = position + change
        flips += bool(position) and after * position <= 0
        position = after
    assert flat == flips


def test_simulated_trips_add_up(tables):
    """Gross, fees and funding over all trips of everybody, to the last digit."""
    paid = tables.fills[
        tables.fills["coin"].str.contains(":") | (tables.fills["fee_token"] == "USDC")
    ]
    result = round_trips(tables.fills, tables.funding)
    assert result["gross"].sum() == tables.fills["closed_pnl"].sum()
    assert result["fees"].sum() == -paid["fee"].sum()
    assert result["funding"].sum() == tables.funding["usdc"].sum()
    perps = result[~result["coin"].str.contains("^@|/|^#")]
    assert set(perps["status"]) == {"closed", "liquidated", "open"}
    assert (perps["status"] == "open").sum() == len(tables.states.positions)
    assert len(perps) < len(result)
    assert isinstance(result["net"].iloc[0], Decimal)
