"""Execution: examples by hand, identities, old prices, and intervals."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from toolkit.errors import MissingColumns, MissingDirections
from toolkit.execution import fill_quality, markout, spreads

from .examples import DAY, HOUR, MONDAY, times, wrong_errors

SECOND = 1000


def fills(rows, coin="XYZ"):
    frame = pd.DataFrame(rows, columns=["second", "side", "px", "sz", "crossed"])
    frame["time"] = times(MONDAY + (SECOND * frame["second"]).astype("int64"))
    return frame.drop(columns="second").assign(coin=coin)


def mids(rows, coin="XYZ"):
    frame = pd.DataFrame(rows, columns=["second", "mid_px"])
    frame["time"] = times(MONDAY + (SECOND * frame["second"]).astype("int64"))
    return frame.drop(columns="second").assign(coin=coin)


def test_fill_quality_of_mixed_fills():
    """Prices of the own millisecond do not count, and those of 60 s before still do."""
    rows = [(61, "A", 103, 1, False), (61.001, "A", 99, 1, True), (1, "B", 100.1, 2, True)]
    other = fills(
        [(10, "A", 50, 4, False), (11, "B", np.nan, 1, False), (12, "A", 9, 9, False)], "C"
    )
    trades = pd.concat([fills(rows), other.assign(dir=["Sell", "Buy", "Settlement"])])
    trades["dir"] = trades["dir"].fillna("Close Long").astype("str")
    prices = pd.concat([mids([(1, 101.0), (0, 100.0)]), mids([(4, 49.5)], "C")])
    result = fill_quality(trades, prices, by="coin")
    assert result.to_dict("list") == {
        "coin": ["C", "XYZ"],
        "fills": [2, 3],
        "volume_usd": [200, pytest.approx(402.2)],
        "priced": [1, 2],
        "covered": [1, pytest.approx(303.2 / 402.2)],
        "improvement_usd": [2, pytest.approx(-0.2 + 2)],
        "improvement_bps": pytest.approx([2 / 198 * 1e4, 1.8 / 301 * 1e4]),
        "age_seconds": [6, 30.5],
        "oldest_seconds": [6, 60],
    }
    whole = fill_quality(trades.iloc[::-1], prices, by=None)
    assert list(whole.columns) == list(result.columns)[1:]
    assert whole[["fills", "priced", "oldest_seconds"]].to_numpy().tolist() == [[5, 3, 60]]
    assert fill_quality(trades, prices, by=["hour", "liquidity"])["fills"].tolist() == [3, 2]
    late = trades.assign(time=trades["time"] + pd.Timedelta("90min"))
    by_hour = fill_quality(late, prices, by=["hour", "liquidity"])
    assert by_hour["liquidity"].tolist() == ["maker", "taker"]
    assert list(by_hour["hour"]) == list(times([MONDAY + HOUR] * 2))


def test_incomplete_fills_are_not_measured():
    """Only the complete fill counts: 10 bps effective, 10 bps realised, no impact."""
    trades = fills([(1, "B", 100.1, 2, True), (2, "B", np.nan, 2, True), (3, "B", 100, None, True)])
    prices = mids([(0, 100.0), (40, 100.0)])
    quality = fill_quality(trades, prices, by=None).iloc[0]
    assert (quality["fills"], quality["priced"], quality["covered"]) == (3, 1, 1)
    assert quality["improvement_bps"] == pytest.approx(-10)
    nothing = fill_quality(trades, prices, max_age=0.5, by=None).iloc[0]
    assert nothing["priced"] == 0
    assert nothing[["improvement_usd", "improvement_bps", "age_seconds"]].isna().all()
    found = spreads(trades, prices, "1m", by=None).params
    assert found["n"].tolist() == [1, 1, 1]
    assert found["missing"].tolist() == [2, 2, 2]
    assert found["estimate"].tolist() == pytest.approx([10, 10, 0])
    assert markout(trades, prices, ["1m"], by=None).params["n"].tolist() == [1]


def test_quote_of_same_moment_is_ignored():
    """The price before a fill is from an earlier moment; prices of one moment are averaged."""
    tape = fills([(0, "B", 100, 1, True), (5, "B", 102, 3, True), (5, "B", 106, 1, True)])
    prices = tape.rename(columns={"px": "mid_px"})
    result = fill_quality(tape, prices, by=None).iloc[0]
    assert result["priced"] == 2
    assert result["improvement_usd"] == -2 * 3 - 6 * 1
    later = markout(tape.head(1), prices, ["5s"]).params.iloc[0]
    assert later["estimate"] == pytest.approx(((102 * 3 + 106) / 4 - 100) / 100 * 1e4)


def test_old_price_is_missing():
    trade = fills([(100, "B", 100, 1, True)])
    before = mids([(99, 100.0)])
    assert markout(trade, before, ["1s"]).params["missing"].tolist() == [1]
    # A price of the fill's own millisecond may show it already: it is none from before.
    same = mids([(100, 100.5)])
    assert markout(trade, same, ["1s"])["markout"] == pytest.approx(50)
    assert fill_quality(trade, same)["priced"].tolist() == [0]
    after = mids([(130, 100.0)])
    result = markout(trade, after, ["30s", "60s", "2m"], max_age="45s").params
    assert result["n"].tolist() == [1, 1, 0]
    assert np.isnan(result["estimate"].iloc[2])
    assert result["age_seconds"].tolist()[:2] == [0, 30]
    other = mids([(110, 100.0)], coin="ABC")
    assert markout(trade, other, ["30s"]).params["n"].tolist() == [0]


def test_quotes_hold_until_the_next_one():
    """The bid and ask of a quiet book hold: its mid counts, however long ago it changed.

    A minute after the last quote nobody knows it. Polls show their own moment alone.
    """
    trades = fills([(100, "B", 100.1, 1, True), (320, "A", 99.9, 1, True)])
    polls = mids([(90, 100.0), (310, 100.0), (330, 100.2)])
    book = polls.assign(bid_px=polls["mid_px"] - 0.1, ask_px=polls["mid_px"] + 0.1)
    found = markout(trades, book, ["3m"], by="side").params
    assert found[["side", "n", "missing"]].to_numpy().tolist() == [["A", 0, 1], ["B", 1, 0]]
    assert found["usd"].tolist()[1] == pytest.approx(-0.1)
    assert found["age_seconds"].tolist()[1] == 190
    assert markout(trades, polls, ["3m"], by="side").params["n"].tolist() == [0, 0]
    assert spreads(trades, book, "3m", by=None).params["n"].tolist() == [1] * 3


def test_markout_before_the_fill():
    """The mid rises by 1 in the half minute before the buy, and by another 0.5 after it."""
    trade = fills([(100, "B", 101.2, 2, True)])
    prices = mids([(60, 100.0), (99, 101.0), (100, 101.5)])
    found = markout(trade, prices, ["-30s", -0.5, "10s"]).params
    assert found["seconds"].tolist() == [-30, -0.5, 10]
    assert found["usd"].tolist() == pytest.approx([-2.4, -0.4, 0.6])
    assert found["age_seconds"].tolist() == [10, 0.5, 10]


def test_markout_and_spreads_of_mixed_fills():
    """Two coins and both sides in two hours; the last fill of ABC comes after all prices.

    XYZ at 100, then 103; ABC at 50, then 48. Markout: XYZ gains 2 * 1 and -3 * 2, ABC 1 * 3.
    """
    rows = pd.concat(
        [
            fills([(3602, "A", 101, 3, False), (1, "B", 101, 2, True), (2, "B", np.nan, 2, True)]),
            fills([(1, "A", 49, 3, True), (9000, "A", 49, 1, True)], "ABC"),
        ]
    )
    prices = pd.concat(
        [mids([(0, 100), (30, 102), (3600, 100), (3640, 103)]), mids([(0, 50), (50, 48)], "ABC")]
    )
    found = markout(rows.iloc[::-1], prices, ["1m", 30.0], by=["hour", "coin"], max_age="45s")
    table = found.params
    assert list(table.columns) == [
        "hour", "coin", "seconds", "name", "estimate", "low", "high", "usd", "n", "missing",
        "clusters", "age_seconds",
    ]  # fmt: skip
    assert table["coin"].tolist() == ["ABC", "ABC", "XYZ", "XYZ", "XYZ", "XYZ", "ABC", "ABC"]
    assert list(table["hour"]) == list(times(MONDAY + HOUR * np.array([0] * 4 + [1] * 2 + [2] * 2)))
    assert table["seconds"].tolist() == [30, 60] * 4
    figures = ["usd", "n", "missing", "clusters", "age_seconds"]
    assert table.loc[[1, 2, 3, 5], figures].to_numpy().tolist() == [
        [3, 1, 0, 1, 11], [2, 1, 1, 1, 1], [2, 1, 1, 1, 31], [-6, 1, 0, 1, 22],
    ]  # fmt: skip
    wanted = [3 / 147, 2 / 202, 2 / 202, -6 / 303]
    assert table.loc[[1, 2, 3, 5], "estimate"].tolist() == pytest.approx(
        [1e4 * each for each in wanted]
    )
    assert table["n"].tolist() == [0, 1, 1, 1, 0, 1, 0, 0]
    assert table.loc[[0, 4, 6, 7], ["estimate", "usd", "age_seconds"]].isna().all(axis=None)
    assert (found.n, found.level, found.price_source) == (5, 0.95, "mid_px")
    assert (found.max_age_seconds, found.cluster) == (45, "day")
    assert found.method.endswith("bootstrap by day; prices: mid_px")
    split = spreads(rows.iloc[::-1], prices, "1m", by=["hour", "coin"], max_age="45s")
    costs = split.params
    assert costs["name"].tolist() == ["effective", "realised", "impact"] * 4
    assert costs["usd"].tolist()[:9] == [3, -3, 6, 2, -2, 4, -3, 6, -9]
    wanted = [2e2, -2e2, 4e2, 1e2, -1e2, 2e2, -1e2, 2e2, -3e2]
    assert costs["estimate"].tolist()[:9] == pytest.approx(wanted)
    assert costs[["n", "missing"]].to_numpy().tolist()[::3] == [[1, 0], [1, 1], [1, 0], [0, 1]]
    ages = [1, 11, 11, 1, 31, 31, 2, 22, 22]  # before the fill, at the horizon, the older one
    assert costs["age_seconds"].tolist()[:9] == ages
    assert str(costs["hour"].dtype) == "datetime64[ms, UTC]"
    assert (split.n, split.level, split.price_source) == (5, 0.95, "mid_px")
    assert (split.seconds, split.cluster) == (60, "day")
    assert split.method.endswith("bootstrap by day; prices: mid_px")


trades = st.lists(
    st.tuples(
        st.integers(0, 2 * 86_400),
        st.sampled_from(["A", "B"]),
        st.floats(90, 110),
        st.floats(0.1, 9),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=15)
@given(trades, st.integers(0, 5))
def test_spread_parts_add_up(rows, seed):
    rng = np.random.default_rng(seed)
    prices = mids([(600 * n, 100 + rng.normal()) for n in range(300)])
    frame = fills([(float(second), *rest) for second, *rest in rows])
    found = spreads(frame, prices, "10m", max_age="10m", by=None, draws=9).params
    one = found.set_index("name")["usd"]
    if found["n"].iloc[0]:
        assert one["effective"] == pytest.approx(one["realised"] + one["impact"], abs=1e-9)
    quality = fill_quality(frame, prices, by=None, max_age="10m").iloc[0]
    if quality["priced"] == found["n"].iloc[0] > 0:
        assert one["effective"] == pytest.approx(-quality["improvement_usd"], abs=1e-9)


def test_prices_of_the_exchange_are_no_trades():
    """The account buys at 100.02; the exchange deleverages it at 80; it takes over at 130."""
    rows = fills([(1, "B", 100.02, 1, True), (2, "A", 80, 1, False), (3, "A", 130, 1, True)])
    rows["dir"] = ["Open Long", "Auto-Deleveraging", "Liquidated Cross Short"]
    rows["liquidation_method"] = [None, None, "backstop"]
    prices = mids([(0, 100.0), (1.5, 100.0), (10, 100.0)])
    (row,) = fill_quality(rows, prices, by="liquidity").to_dict("records")
    assert (row["liquidity"], row["fills"]) == ("taker", 1)
    assert row["improvement_bps"] == pytest.approx(-2)
    assert spreads(rows, prices, "10s").params["n"].tolist() == [1, 1, 1]
    assert markout(rows, prices, ["10s"]).params["estimate"].tolist() == pytest.approx(
        [-2], rel=1e-3
    )


@pytest.mark.parametrize("known", [(True, False), (True, None), (None, False), (None, None)])
def test_both_sides_of_a_trade_count_once(known):
    """The taker buys at 100.02 against a mid of 100: 2 bps, not 0. One flag tells the other."""
    rows = fills([(1, "B", 100.02, 1, known[0]), (1, "A", 100.02, 1, known[1])])
    rows = rows.assign(tid=7, user=["0xa", "0xb"])
    prices = mids([(0, 100.0), (10, 100.0)])
    (row,) = fill_quality(rows, prices, by="coin").to_dict("records")
    assert (row["fills"], row["volume_usd"]) == (1, 100.02)
    found = spreads(rows, prices, "10s", by="coin").params
    gains = markout(rows, prices, ["10s"], by=None).params
    if known == (None, None):
        assert row["priced"] == 0
        assert set(found["missing"]) == {1} == set(gains["missing"])
        return
    assert row["improvement_bps"] == pytest.approx(-2)
    assert found["estimate"].tolist() == pytest.approx([2, 2, 0])
    assert gains["usd"].tolist() == pytest.approx([-0.02])
    by_user = fill_quality(rows, prices, by="user")
    assert by_user["improvement_bps"].tolist() == pytest.approx([-2, 2])
    sides = fill_quality(rows, prices, by="liquidity")
    assert sides["liquidity"].tolist() == ["maker", "taker"]


def test_intervals_resample_clusters():
    """All fills of a day gain 1 or lose 1 bps: ten days have the error of ten coin tosses."""
    rng = np.random.default_rng(5)
    day = np.repeat(np.arange(10), 50)
    at = MONDAY + DAY * day + HOUR * (np.tile(np.arange(50), 10) % 20)
    gains = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)[day] / 1e4
    rows = pd.DataFrame({"time": times(at), "user": rng.integers(0, 9, 500)})
    rows = rows.assign(coin="XYZ", px=100.0, sz=1.0, side="B", crossed=True)
    prices = pd.DataFrame({"coin": "XYZ", "time": times(at + 60_000), "mid_px": 100 * (1 + gains)})
    prices = prices.drop_duplicates("time")
    by_day = markout(rows, prices, ["1m"]).params.iloc[0]
    assert by_day["clusters"] == 10
    assert by_day["low"] < -0.5 < 0.5 < by_day["high"]
    by_user = markout(rows, prices, ["1m"], cluster="user").params.iloc[0]
    assert by_user["clusters"] == 9
    assert by_user["high"] - by_user["low"] < (by_day["high"] - by_day["low"]) / 2
    one_day = markout(rows.head(50), prices, ["1m"]).params
    assert one_day["estimate"].iloc[0] == pytest.approx(1)
    assert one_day[["low", "high"]].isna().all().all()


def test_price_column_can_be_chosen():
    trade = fills([(1, "B", 100, 1, True)])
    contexts = mids([(0, 101.0)]).rename(columns={"coin": "name"}).assign(mark_px=102.0)
    assert fill_quality(trade, contexts)["improvement_usd"].iloc[0] == 1
    assert fill_quality(trade, contexts, price="mark_px")["improvement_usd"].iloc[0] == 2
    assert len(fill_quality(trade.drop(columns="crossed"), contexts, by="side")) == 1
    assert markout(trade, contexts, [90, "1m"]).params["seconds"].tolist() == [60, 90]


def test_errors_of_execution():
    trade, prices = fills([(1, "B", 100, 1, True)]), mids([(0, 101.0)])
    table = [
        (lambda: fill_quality(trade, prices.drop(columns="time")), MissingColumns, "asked_at"),
        (lambda: fill_quality(trade, prices, price="oracle_px"), MissingColumns, "oracle_px"),
        (lambda: fill_quality(trade, prices, max_age=0), ValueError, "max_age"),
        (lambda: fill_quality(trade, prices, by="fills"), ValueError, "'fills'"),
        (lambda: markout(trade, prices, [0]), ValueError, "each of horizons"),
        (lambda: markout(trade, prices, max_age=0), ValueError, "max_age"),
        (lambda: markout(trade, prices, by="age_seconds"), ValueError, "'age_seconds'"),
        (lambda: spreads(trade, prices, level=1), ValueError, "level"),
        (lambda: spreads(trade, prices, max_age=0), ValueError, "max_age"),
        (lambda: spreads(trade, prices, by="age_seconds"), ValueError, "'age_seconds'"),
        (lambda: spreads(trade, prices, "soon"), ValueError, "horizon"),
    ]
    assert wrong_errors(table) == []


def test_group_columns_are_texts_and_times():
    """Names are texts and hours are times, whatever the fills have."""
    rows = fills([(1, "B", 100, 1, True), (2, "A", 9, 1, None)])
    rows = rows.assign(user=["u", None], dir=["Open Long", None], oid=[7, 8])
    names = ["user", "dir", "side", "coin", "liquidity", "hour", "oid"]
    rows[names[:4]] = rows[names[:4]].astype(object)
    result = fill_quality(rows, mids([(0, 101.0)]), by=names)
    wanted = ["str"] * 5 + ["datetime64[ms, UTC]", "int64"]
    assert [str(dtype) for dtype in result.dtypes[names]] == wanted
    assert result["liquidity"].isna().tolist() == [False, True]


def test_tape_gives_quotes_up_to_an_age():
    signs = [1, 1, -1, -1, 1, -1, 1]
    tape = fills([(n * 1.0, "B" if s > 0 else "A", 100 + s / 99, 2, True)
                  for n, s in enumerate(signs)])  # fmt: skip
    assert fill_quality(tape, max_age=1.5)["priced"].sum() == 6
    assert fill_quality(tape, max_age=0.5)["priced"].sum() == 0
    with pytest.warns(MissingDirections, match=r"^fills: column dir is missing in every row"):
        fill_quality(tape.assign(dir=pd.array([None] * len(tape), dtype="str")))
