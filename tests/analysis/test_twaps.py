"""TWAP orders: examples by hand, a second computation, and the simulated exchange."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import toolkit as tk
from toolkit import twaps
from toolkit.errors import MissingColumns

from .examples import MONDAY, times

NAN = float("nan")
SECOND = 1000


def tape_of(*trades):
    frame = pd.DataFrame(list(trades), columns=["second", "px", "sz"], dtype="float64")
    frame.insert(0, "coin", "BTC")
    frame["time"] = times((MONDAY + SECOND * frame.pop("second")).astype("int64"))
    return frame


def mids_of(*rows):
    """Return mids of BTC from (second, price)."""
    second, px = zip(*rows, strict=True)
    at = times(MONDAY + SECOND * np.array(second))
    return pd.DataFrame({"coin": "BTC", "time": at, "mid_px": px})


def quality(fills, tape, **options):
    """Return the quality of orders; the mid of BTC is 100 at the start."""
    return twaps.quality(fills, tape, mids_of((0, 100.0)), **options)


def order(rows, side="B", twap_id=1):
    return rows.assign(side=side, twap_id=twap_id)


def snapshot(**more):
    row = {"market": "BTC", "address": "0xAA", "twap_id": 7, "is_buy": True, "total_sz": 10.0}
    row |= {"executed_sz": 3.0, "remaining_sz": 7.0, "executed_ntl": 306.0, "duration_secs": 600}
    row |= {"slice_number": 6, "waiting": False, **more}
    return pd.DataFrame([row]).assign(start_time_ms=times([MONDAY]))


def test_quality_by_hand():
    """Two accounts, two coins and equal TWAP ids; the rows are in no order.

    BTC: 100 (1), 110 (1), 120 (2) at 0, 10, 40 s. ETH: 50 (4) at 5 s and 60 (1) at 25 s.
    Between 10 and 40 s the tape of BTC is 110 (1), 120 (2): 350 / 3 on average; 110 stood all the
    time; 100 was there before, 10 seconds old.
    """
    tape = tape_of((0, 100, 1), (10, 110, 1), (40, 120, 2))
    other = tape_of((5, 50, 4), (25, 60, 1)).assign(coin="ETH")
    fills = pd.concat(
        [
            order(tape.iloc[[2, 1]].assign(sz=[1.0, 0.5]), "B", 2).assign(user="0xb"),
            order(tape.iloc[1:2], "A", 2).assign(user="0xa"),
            order(other.assign(sz=0.5), "A", 2).assign(user="0xb"),
            order(tape.iloc[:1], "B", 1).assign(user="0xb"),
            order(tape.iloc[:1], "B", 9).assign(user=None),
        ]
    )
    fills["user"] = fills["user"].astype("category")
    found = quality(fills, pd.concat([other, tape]))
    assert found.iloc[:4, :6].to_numpy().tolist() == [
        ["0xa", "BTC", 2, "A", 1, 1.0],
        ["0xb", "BTC", 1, "B", 1, 1.0],
        ["0xb", "BTC", 2, "B", 2, 1.5],
        ["0xb", "ETH", 2, "A", 2, 1.0],
    ]
    # An order without an account is an order, too.
    assert found["twap_id"].tolist() == [2, 1, 2, 2, 9]
    assert found["user"].isna().tolist() == [False] * 4 + [True]
    assert str(found["user"].dtype) == "str"
    px = 175 / 1.5
    assert found["px"].tolist() == pytest.approx([110, 100, px, 55, 100])
    assert found["vwap"].tolist() == pytest.approx([110, 100, 350 / 3, 52, 100])
    assert found["twap"].tolist() == pytest.approx([110, 100, 110, 50, 100])
    assert found["arrival_px"].tolist()[::2] == [100, 100, pytest.approx(np.nan, nan_ok=True)]
    assert found["share"].tolist() == pytest.approx([1, 1, 0.5, 0.2, 1])
    assert found["vs_vwap_usd"].tolist() == pytest.approx([0, 0, 1.5 * (350 / 3 - px), 3, 0])
    assert found["vs_twap_usd"].tolist() == pytest.approx([0, 0, 1.5 * (110 - px), 5, 0])
    assert found["vs_arrival_usd"].tolist()[:3:2] == pytest.approx([10, 1.5 * (100 - px)])
    assert found["vs_twap_bps"].tolist()[3] == pytest.approx(1000)
    assert found["arrival_age_secs"].tolist()[:3:2] == [10, 10]
    assert found["vs_arrival_bps"].tolist()[:3:2] == pytest.approx([1000, 1e4 * (100 - px) / 100])
    assert found["vs_vwap_bps"].tolist()[3] == pytest.approx(1e4 * 3 / 52)
    assert list(found["first"]) == list(times(MONDAY + SECOND * np.array([10, 0, 10, 5, 0])))
    assert list(found["last"]) == list(times(MONDAY + SECOND * np.array([10, 0, 40, 25, 0])))
    unnamed = quality(fills.iloc[:2].assign(user=None), tape)
    assert (str(unnamed["user"].dtype), unnamed["fills"].tolist()) == ("str", [2])


def test_unpriced_fill_leaves_quality_missing():
    tape = tape_of((0, 100, 1), (10, 110, 1), (40, 120, 2))
    unpriced = quality(order(tape.iloc[1:].assign(px=[110.0, NAN], sz=1.0)), tape).iloc[0]
    assert (unpriced["fills"], unpriced["sz"], unpriced["share"]) == (2, 2.0, 2 / 3)
    assert pd.isna(unpriced[["px", "vs_vwap_bps", "vs_twap_usd", "vs_arrival_usd"]]).all()
    unsized = quality(order(tape.iloc[1:].assign(sz=[1.0, NAN])), tape).iloc[0]
    assert pd.isna(unsized[["px", "sz", "share", "vs_vwap_usd"]]).all()


def test_tape_rows_without_price_are_skipped():
    """Without the row, 100 applies until 40 s, then 2 at 120; the price is not 0 in between."""
    orders = order(tape_of((10, 110, 1), (40, 120, 1)))
    tape = tape_of((0, 100, 1), (10, 110, 1), (40, 120, 2)).assign(px=[100.0, NAN, 120.0])
    row = quality(orders, tape).iloc[0]
    assert (row["vwap"], row["twap"], row["arrival_px"]) == (120.0, 100.0, 100.0)
    assert row["share"] == 1.0
    # A row of size 0 is no trade. A perp's row without a direction is one, without a warning.
    empty = tape_of((0, 100, 1), (10, 110, 0), (40, 120, 2))
    empty["dir"] = pd.array([None] * 3, dtype="str")
    pd.testing.assert_series_equal(quality(orders, empty).iloc[0], row)


def test_old_price_is_not_arrival():
    tape = tape_of((0, 100, 1), (400, 110, 1), (410, 110, 1))
    row = quality(order(tape.iloc[1:]), tape).iloc[0]
    assert pd.isna(row[["arrival_px", "arrival_age_secs", "vs_arrival_bps"]]).all()
    assert quality(order(tape.iloc[1:]), tape, max_age_secs=400)["arrival_px"].item() == 100


def test_arrival_is_a_mid():
    """Takers buy at 100.01 and sell at 99.99 in turn; the order starts after a buy.

    Against the buy it would gain 1 bp by buying at 100. The mid is 100.
    """
    n = np.arange(20)
    tape = tape_of(*((second, 100.0, 1) for second in n)).assign(crossed=True)
    tape["side"] = np.where(n % 4 < 2, "B", "A")
    tape["px"] += np.where(n % 4 < 2, 0.01, -0.01)
    fills = order(tape_of((17.5, 100.0, 1)))
    row = twaps.quality(fills, tape).iloc[0]
    assert (row["arrival_px"], row["arrival_age_secs"]) == (pytest.approx(100), 0.5)
    assert row["vs_arrival_bps"] == pytest.approx(0, abs=1e-3)
    assert twaps.quality(fills, tape.drop(columns="crossed"))["arrival_px"].isna().all()
    with pytest.warns(UserWarning, match=r"^tape: column crossed"):
        assert twaps.quality(fills, tape.assign(crossed=None))["arrival_px"].isna().all()
    with pytest.raises(ValueError, match="bid or an ask"):
        twaps.quality(fills, tape, tape)


def test_quality_without_tape_is_missing():
    tape = tape_of((0, 100, 1), (10, 110, 1))
    for other in (tape.assign(coin="ETH"), tape.iloc[:0]):
        row = quality(order(tape), other).iloc[0]
        assert pd.isna(row[["vwap", "twap", "arrival_px", "share", "vs_vwap_bps"]]).all()
    later = quality(order(tape), tape.iloc[1:]).iloc[0]
    assert pd.isna(later["twap"])  # the first price is not known
    assert later["vwap"] == 110


def test_both_sides_are_one_trade():
    tape = tape_of((0, 100, 1), (10, 110, 1)).assign(tid=[5, 6])
    both = pd.concat([tape.assign(dir="Open Long"), tape.assign(dir="Open Short")])
    one, two = (quality(order(tape.assign(sz=0.5)), item) for item in (tape, both))
    pd.testing.assert_frame_equal(one, two)
    assert one["share"].item() == 0.5


def test_rows_without_trade_id_stay_apart():
    """A trade id of 0, or none, is no id: all rows count, in the order and on the tape."""
    tape = tape_of((0, 100, 1), (10, 110, 1), (10, 120, 1))
    for ids in (0, None):
        rows = tape.assign(tid=pd.array([ids] * 3, dtype="Int64"))
        row = quality(order(rows.iloc[1:]), rows).iloc[0]
        assert (row["fills"], row["px"], row["vwap"], row["share"]) == (2, 115.0, 115.0, 1.0)


def test_conversions_are_no_market_volume():
    """A conversion at 0.5 and a settlement at 1 change neither benchmark."""
    tape = tape_of((0, 0.30, 2.0), (1_000, 0.40, 1.0)).assign(dir="Buy")
    odd = tape_of((500, 0.5, 70.0), (900, 1.0, 9.0)).assign(dir=["Split Outcome", "Settlement"])
    fills = order(tape)
    plain = quality(fills, tape)
    pd.testing.assert_frame_equal(quality(fills, pd.concat([tape, odd])), plain)
    assert plain["vwap"].item() == pytest.approx(1.0 / 3.0)


def test_fills_without_twap_are_excluded():
    tape = tape_of((0, 100, 1), (10, 110, 1))
    mixed = pd.concat([order(tape), order(tape, twap_id=NAN)])
    assert quality(mixed, tape)["fills"].tolist() == [2]


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_benchmarks_equal_loop_over_seconds(trades):
    """A loop over seconds, in whole numbers and without running sums, gives the same."""
    tape = tape_of(*((t, 100 + p, s) for t, p, s, _ in trades))
    mine = np.array([own for *_, own in trades])
    if not mine.any():
        assert quality(order(tape.iloc[:0]), tape).empty
        return
    row = quality(order(tape[mine]), tape).iloc[0]
    moments = [t for t, *_, own in trades if own]
    first, last = min(moments), max(moments)
    inside = [(p + 100, s) for t, p, s, _ in trades if first <= t <= last]
    assert row["vwap"] == pytest.approx(sum(p * s for p, s in inside) / sum(s for _, s in inside))

    def stood(second):
        latest = max(t for t, *_ in trades if t <= second)
        parts = [(100 + p, s) for t, p, s, _ in trades if t == latest]
        return sum(p * s for p, s in parts) / sum(s for _, s in parts)

    steps = [stood(second) for second in range(first, last)] or [stood(first)]
    assert row["twap"] == pytest.approx(np.mean(steps))


def test_adherence_by_hand():
    """After 300 of 600 s, 3 of 10 are executed at 306 / 3: 20 % or 2 behind, 10 slices due."""
    row = twaps.adherence(snapshot(), at=MONDAY + 300 * SECOND).iloc[0]
    assert (row["elapsed"], row["progress"]) == (0.5, 0.3)
    assert row["behind"] == pytest.approx(0.2)
    assert row["behind_sz"] == pytest.approx(2.0)
    assert (row["left_secs"], row["slices_due"], row["slice_number"]) == (300, 10, 6)
    assert row["avg_px"] == 102.0


def test_waiting_order_has_no_adherence():
    waits = twaps.adherence(snapshot(waiting=True, executed_sz=0.0), at=MONDAY).iloc[0]
    assert pd.isna(waits[["elapsed", "behind", "behind_sz", "left_secs", "avg_px"]]).all()
    assert waits["progress"] == 0.0


def test_order_after_its_duration_started_later():
    """It waited for its trigger, and 6 of 20 slices are 180 s of 600 s: 420 s are left.

    The rest is 7 at 100: 700 USD in 420 s are 6,000 an hour. Without its slices nobody knows.
    """
    at = MONDAY + 10_000 * SECOND
    late = twaps.adherence(snapshot(), at=at).iloc[0]
    assert (late["elapsed"], late["behind"], late["left_secs"]) == (0.3, 0.0, 420.0)
    marks = pd.DataFrame({"name": ["BTC"], "mark_px": [100.0]})
    found = twaps.pressure(snapshot(), marks, at=at)
    assert found["net_usd_per_hour"].item() == pytest.approx(6000)
    unknown = twaps.pressure(snapshot().drop(columns="slice_number"), marks, at=at).iloc[0]
    assert unknown["net_usd"] == 700.0
    assert pd.isna(unknown["net_usd_per_hour"])


def test_saved_snapshot_is_not_of_today():
    """The next slice was due after 150 s: a quarter of 600 s, whenever the frame is read."""
    rows = snapshot(executed_sz=2.5).assign(
        asked_at=times([MONDAY + 10**9]), next_slice_time=times([MONDAY + 150 * SECOND])
    )
    row = twaps.adherence(rows).iloc[0]
    assert (row["elapsed"], row["behind"]) == (0.25, 0.0)
    stated = twaps.adherence(rows, at=MONDAY + 300 * SECOND)
    assert stated["elapsed"].item() == 0.5


def test_size_still_to_trade_is_not_negative():
    rows = snapshot(executed_sz=10.5, remaining_sz=-0.5)
    marks = pd.DataFrame({"name": ["BTC"], "mark_px": [100.0]})
    found = twaps.pressure(rows, marks, at=MONDAY + 300 * SECOND).iloc[0]
    assert found[["buy_sz", "net_sz", "net_usd", "net_usd_per_hour"]].tolist() == [0.0] * 4


def test_pressure_by_hand():
    """7 to buy, 2 to sell: at 100 the net is 500 in the last 5 minutes, or 6,000 an hour."""
    rows = pd.concat(
        [
            snapshot(),
            snapshot(is_buy=False, remaining_sz=2.0, twap_id=8),
            snapshot(waiting=True, remaining_sz=50.0, twap_id=9),
            snapshot(market="flx:X", twap_id=10),
        ]
    )
    marks = pd.DataFrame({"name": ["BTC", "BTC"], "mark_px": [100.0, 100.0]})
    frame = twaps.pressure(rows, marks, at=MONDAY + 300 * SECOND).set_index("market")
    row = frame.loc["BTC"]
    assert (row["orders"], row["waiting"], row["unpriced"]) == (2, 1, 0)
    assert (row["buy_sz"], row["sell_sz"], row["net_sz"]) == (7.0, 2.0, 5.0)
    assert (row["net_usd"], row["net_usd_per_hour"]) == (500.0, 6000.0)
    other = frame.loc["flx:X"]
    assert pd.isna(other[["buy_usd", "sell_usd", "net_usd", "net_usd_per_hour"]]).all()
    assert other["unpriced"] == 1
    total = twaps.pressure(rows, marks, by=None, at=MONDAY + 300 * SECOND).iloc[0]
    assert (total["orders"], total["net_usd"], total["unpriced"]) == (3, 500.0, 1)
    by_dex = twaps.pressure(rows.assign(dex="x"), marks, by="dex", at=MONDAY)
    assert by_dex["dex"].tolist() == ["flx", "hyperliquid"]
    # 7 at 100 within 30 s are 84,000 an hour, not infinity.
    late = twaps.pressure(snapshot(), marks[:1], at=MONDAY + 600 * SECOND).iloc[0]
    assert late["net_usd_per_hour"] == pytest.approx(700 * 120)


def test_linked_fills_by_hand():
    """3 are executed for 306; the frame has fills of 2 for 203; a later fill does not count."""
    rows = order(tape_of((30, 101, 1), (60, 102, 1), (90, 103, 1)), twap_id=7).assign(user="0xaa")
    result = twaps.linked(snapshot(), rows, at=MONDAY + 60 * SECOND).iloc[0]
    assert (result["fills"], result["filled_sz"], result["filled_ntl"]) == (2, 2.0, 203.0)
    assert (result["missing_sz"], result["missing_ntl"], result["whole"]) == (1.0, 103.0, False)
    whole = twaps.linked(snapshot(), rows, at=MONDAY + 90 * SECOND).iloc[0]
    assert (whole["missing_sz"], whole["whole"]) == (0.0, True)
    alone = twaps.linked(snapshot(), rows.iloc[:0], at=MONDAY).iloc[0]
    assert (alone["fills"], alone["filled_sz"], alone["whole"]) == (0, 0.0, False)


def test_linked_fills_are_of_named_account():
    rows = order(tape_of((30, 101, 3)), twap_id=7)
    result = twaps.linked(snapshot(), rows, at=MONDAY + 60 * SECOND, account="0xAA")
    assert result["fills"].item() == 1


@pytest.fixture(scope="module")
def simulated():
    session = tk.local(seed=7, size="tiny", default=False)
    rows = tk.perp_twap_snapshots(["ALL:ALL_DEXES"], session=session)
    users = session.world["users"]
    return session, rows, tk.many(tk.user_fills_by_time, users, 0, session=session)


def test_simulated_orders_sum_their_fills(simulated):
    _, rows, fills = simulated
    result = twaps.linked(rows, fills)
    assert result["whole"].all()
    assert (result["missing_ntl"].abs() < 1e-6).all()
    assert (result["fills"] > 0).sum() >= 4
    one = result[result["fills"] > 0].iloc[0]
    its = (fills["user"] == one["address"]) & (fills["twap_id"] == one["twap_id"])
    lost = twaps.linked(rows, fills.drop(fills[its].index[0]))
    assert lost.loc[~lost["whole"], "twap_id"].tolist() == [one["twap_id"]]


def test_only_waiting_orders_have_no_schedule(simulated):
    """Orders that never waited are at most a few slices off; waiting orders have no schedule."""
    _, rows, _ = simulated
    adherence = twaps.adherence(rows)
    stated = rows.sort_values(["market", "address", "twap_id"], ignore_index=True)
    assert adherence["elapsed"].isna().tolist() == stated["waiting"].tolist()
    assert np.array(100 * adherence["progress"]) == pytest.approx(stated["progress_pct"])


def test_pressure_and_quality_match_simulation(simulated):
    session, rows, fills = simulated
    marks = tk.meta_and_asset_ctxs(session=session)
    result = twaps.pressure(rows, marks, by=None).iloc[0]
    runs = rows[~rows["waiting"]].merge(marks, left_on="market", right_on="name")
    sign = np.where(runs["is_buy"], 1, -1)
    assert result["net_usd"] == pytest.approx((sign * runs["remaining_sz"] * runs["mark_px"]).sum())
    found = twaps.quality(fills, fills)
    assert len(found) == fills.loc[fills["twap_id"].notna()].groupby(["user", "twap_id"]).ngroups
    assert found["share"].between(0, 1 + 1e-9).all()
    assert found["vs_vwap_bps"].abs().max() < 200


def test_wrong_arguments_are_named():
    fills, marks = order(tape_of((30, 101, 3))), pd.DataFrame({"name": ["BTC"]})
    for error, named, call in (
        (ValueError, "at=", lambda: twaps.adherence(snapshot())),
        (ValueError, "net_sz", lambda: twaps.pressure(snapshot(), by="net_sz", at=MONDAY)),
        (
            MissingColumns,
            "^prices: .*mark_px",
            lambda: twaps.pressure(snapshot(), marks, at=MONDAY),
        ),
        (MissingColumns, "user.*account=", lambda: twaps.linked(snapshot(), fills, at=MONDAY)),
    ):
        with pytest.raises(error, match=named):
            call()
