"""Positions and round trips: by hand, as identities, and on the simulated exchange."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from toolkit.errors import HistoryWarning, MissingColumns
from toolkit.pnl import attribution, positions, round_trips, unrealised

from .examples import HOUR, ME, MONDAY, OTHER, times
from .test_lots import chain, trades
from .test_round_trips import listed_rows

SIZES = {"BTC": 5, "ETH": 4}
NO = None


def fills(rows, **more):
    return chain(rows, **{"fee": 0.0, **more})


def listed(column):
    return [value for (value,) in listed_rows(column.to_frame())]


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


def test_positions_of_mixed_fills_by_hand():
    result = positions(mixed_fills(), SIZES)
    columns = ["start_position", "change", "position", "entry_px", "px", "closed_pnl"]
    columns += ["expected_closed_pnl", "gap"]
    me, other = ME, OTHER.lower()
    assert listed_rows(result[["user", "coin", "time", *columns, "chain_break"]]) == [
        (me, "@107", 0, 0, 10.5, 10.5, 2, 2, 0, 0, 0, False),
        (me, "@107", 1, 10.5, -4, 6.5, 2, 3, 0, 4, 0, False),
        (me, "@107", 2, 6.5, -6, 0.5, 2, 5, 0, 18, 0, False),
        (me, "ETH", 0, 2, 1, 3, NO, 6, 0, NO, 0, False),
        (me, "NEW", 0, 0, 1, 1, NO, 9, 0, NO, 0, False),
        (other, "BTC", 0, 0, 2, 2, 100, 100, 0, 0, 0, False),
        (other, "BTC", 2, 3, -1, 2, NO, 101, 0, NO, 1, True),
        (other, "BTC", 3, 2, -2, 0, NO, 102, 0, NO, 0, False),
        (other, "BTC", 4, 0, -4, -4, 99, 99, 0, 0, 0, False),
        (other, "ETH", 0, 0, -3, -3, 7, 7, 0, 0, 0, False),
        (other, "ETH", 1, -3, 1, -2, 7, 6, 1.5, 1, 0, False),
    ]
    assert (result[columns].dtypes == "float64").all()
    facts = result.attrs["toolkit"]
    assert (facts["helper"], list(facts["inputs"])) == ("pnl.positions", ["fills"])
    unknown = fills([("B", 1, 2.0)], start=5.0).assign(coin="@107")
    assert listed(positions(unknown, SIZES)["entry_px"]) == [NO]
    whole = fills([("B", 2, 7.0), ("A", 1, 9.0)], closed_pnl=[0.0, 1.98765])
    nothing = pd.array([None] * 2, dtype="str")  # perps need no directions: no warning
    assert listed(positions(whole.assign(dir=nothing), SIZES)["expected_closed_pnl"]) == [0, 2]


MARKS = pd.DataFrame({"name": ["BTC", "ETH", "SOL", "NO"], "mark_px": [97.25, 5.125, 0, None]})


def test_unrealised_of_mixed_fills_by_hand():
    names = ["user", "coin", "szi", "entry_px", "mark_px", "position_value", "unrealized_pnl"]
    me, other = ME, OTHER.lower()
    last = unrealised(mixed_fills(), MARKS, SIZES)
    assert list(last.columns) == names
    assert listed_rows(last) == [
        (me, "ETH", 3, NO, 5.125, 15.375, NO),
        (me, "NEW", 1, NO, NO, NO, NO),
        (other, "BTC", -4, 99, 97.25, 389, 7),
        (other, "ETH", -2, 7, 5.125, 10.25, 3.75),
    ]
    assert (last[names[2:]].dtypes == "float64").all()
    facts = last.attrs["toolkit"]
    assert (facts["helper"], list(facts["inputs"])) == ("pnl.unrealised", ["fills"])
    for at in (times([MONDAY])[0], MONDAY):
        assert listed_rows(unrealised(mixed_fills(), {"BTC": 97.5, "NEW": 8}, SIZES, at=at)) == [
            (me, "ETH", 3, NO, NO, NO, NO),
            (me, "NEW", 1, NO, 8, 8, NO),
            (other, "BTC", 2, 100, 97.5, 195, -5),
            (other, "ETH", -3, 7, NO, NO, NO),
        ]


def test_wrong_frames_of_positions_are_named():
    rows = fills([("B", 2, 100.0), ("A", 1, 110.0)], user=ME)
    timeless = rows.assign(time=rows["time"].where([True, False]))
    double = pd.concat([MARKS, MARKS])
    for call, named in (
        (lambda: unrealised(rows, double, SIZES), "marks: BTC"),
        (lambda: round_trips(timeless, PAID), "fills: .*time is missing in 1"),
        (lambda: attribution(timeless, PAID[:3]), "fills: .*time is missing in 1"),
        (lambda: round_trips(rows.assign(fee=1.0, fee_token="HYPE")), ".*HYPE"),
    ):
        with pytest.raises(MissingColumns, match=f"^{named}"):
            call()
    with pytest.raises(ValueError, match="time zone"):
        unrealised(rows, {"BTC": 1.0}, SIZES, at="2025-09-01")


def test_positions_equal_the_states(tables):
    """Size, entry price and unrealised PnL of every open position."""
    result = positions(tables.fills, tables.contexts)
    perps = result[~result["coin"].str.contains("^@|/|^#")]
    closed, expected = (perps[n].astype(float) for n in ("closed_pnl", "expected_closed_pnl"))
    assert np.allclose(closed, expected, rtol=1e-12, atol=1e-9)
    assert not perps["chain_break"].any()
    found = unrealised(tables.fills, tables.contexts, tables.contexts)
    both = found.merge(
        tables.states.positions, on=["user", "coin"], suffixes=("", "_state"), how="outer"
    )
    assert len(both) == len(found) == len(tables.states.positions) > 100
    for name in ("szi", "entry_px", "position_value", "unrealized_pnl"):
        ours, stated = (both[column].astype(float) for column in (name, name + "_state"))
        assert np.allclose(ours, stated, rtol=1e-12, atol=1e-9), name


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


def test_trips_of_mixed_fills_by_hand():
    """The flip closes 2 of 3 at 90 after 1 at 110, and pays 2 of its 5 parts of the fee."""
    rows = [("BTC", 1, -1.0), ("BTC", 2, 0.0), ("BTC", 3, 0.25), ("BTC", 4, 0.5), ("ETH", 0, 8.0)]
    paid = pd.DataFrame(rows, columns=["coin", "time", "usdc"]).assign(user=ME)
    paid["time"] = times(MONDAY + HOUR * paid["time"])
    result = round_trips(round_fills(), paid)
    names = ["user", "coin", "side", "status", "opened", "closed", "duration_hours", "fills"]
    names += ["size", "entry_px", "exit_px", "gross", "fees", "funding", "net", "return_"]
    lost, won = round(-14.35 / 303, 9), round(29.9 / 270, 9)
    out, me, other = round(290 / 3, 9), ME, OTHER.lower()
    assert listed_rows(result[names]) == [
        (me, "@107", "long", "closed", 0, 2, 2, 3, 10, 2, 4.2, 22, -0.4, 0, 21.6, 1.08),
        (me, "BTC", "long", "closed", 0, 3, 3, 4, 3, 101, out, -13, -0.6, -0.75, -14.35, lost),
        (me, "BTC", "short", "closed", 3, 4, 1, 2, 3, 90, 80, 30, -0.6, 0.5, 29.9, won),
        (me, "ETH", "long", "late", NO, 0, NO, 1, 2, NO, 6, 1, 0.04, 8, 9.04, NO),
        (other, "ETH", "short", "open", 0, NO, NO, 1, 3, 7, NO, 0, -0.03, NO, -0.03,
         round(-0.03 / 21, 9)),
        (other, "SOL", "long", "broken", 0, NO, NO, 1, 1, NO, NO, 0, -0.01, NO, -0.01, NO),
        (other, "SOL", "long", "broken", NO, NO, NO, 1, 3, NO, 6, 0.5, -0.02, NO, 0.48, NO),
    ]  # fmt: skip
    assert not result[["forced", "at_par"]].any(axis=None)
    alone = round_trips(round_fills())
    assert alone["funding"].isna().all()
    assert listed(alone["net"])[1:3] == pytest.approx([-13.6, 29.4])
    few = round_trips(round_fills().iloc[:0], paid.iloc[:0])
    assert list(few.dtypes) == list(result.dtypes)


def test_funding_outside_trips_is_excluded():
    """Two payments a day after the last fill, for a coin that these fills do not show.

    Of the open trip, one of six hours is paid.
    """
    rows = fills(FLIP, user=ME)
    later = PAID.iloc[:2].assign(coin="ETH", usdc=-50.0)
    later["time"] += pd.Timedelta(days=1)
    plain = round_trips(rows, PAID)
    with pytest.warns(HistoryWarning, match=r"^funding: 2 rows"):
        result = round_trips(rows, pd.concat([PAID, later]))
    assert listed(result["funding"]) == listed(plain["funding"]) == [-1, 0.25, None]
    assert result.attrs["toolkit"]["funding_outside"] == 2
    assert plain.attrs["toolkit"]["funding_outside"] == 0
    strangers = PAID[PAID["user"] == OTHER]
    assert round_trips(rows[:2], strangers)["funding"].isna().all()


def test_only_forced_ends_are_liquidations():
    """A liquidation in part, which the account then closes itself, is no end by liquidation."""
    rows = [("B", 2, 100.0), ("A", 1, 90.0), ("A", 1, 95.0), ("A", 1, 90.0), ("B", 1, 99.0)]
    long, short = "Liquidated Cross Long", "Liquidated Isolated Short"
    result = fills(rows, dir=["Open Long", long, "Close Long", "Open Short", short])
    assert round_trips(result)["status"].tolist() == ["closed", "liquidated"]
    assert round_trips(result.drop(columns="dir"))["status"].tolist() == ["closed", "closed"]
    assert round_trips(result[4:])["status"].tolist() == ["late"]


@settings(max_examples=15)
@given(trades)
def test_trips_sum_to_fills(rows):
    signed = [("B" if change > 0 else "A", abs(change), px) for change, px in rows]
    pnl = [0.5 * n for n in range(len(rows))]
    outcome = fills(signed, closed_pnl=pnl, fee=[0.125 * px for _, px in rows])
    result, whole = round_trips(outcome), attribution(outcome).iloc[0]
    assert result["gross"].sum() == whole["closed_pnl"]
    assert result["net"].sum() == pytest.approx(whole["net"])
    flat = sum(1 for status in result["status"] if status == "closed")
    position = flips = 0
    for change, _ in rows:
        after = position + change
        flips += bool(position) and after * position <= 0
        position = after
    assert flat == flips


def test_simulated_trips_add_up(tables):
    """Gross, fees and funding over all trips of everybody."""
    paid = tables.fills[
        tables.fills["coin"].str.contains(":") | (tables.fills["fee_token"] == "USDC")
    ]
    result = round_trips(tables.fills, tables.funding)
    sums = [float(result[name].sum()) for name in ("gross", "fees", "funding")]
    parts = (tables.fills["closed_pnl"], -paid["fee"], tables.funding["usdc"])
    assert sums == pytest.approx([float(part.sum()) for part in parts])
    perps = result[~result["coin"].str.contains("^@|/|^#")]
    assert set(perps["status"]) == {"closed", "liquidated", "open"}
    assert (perps["status"] == "open").sum() == len(tables.states.positions)
    assert len(perps) < len(result)
