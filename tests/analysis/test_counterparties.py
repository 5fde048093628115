"""Both sides of trades, toxic flow, copies of an account: hand-worked values and intervals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from toolkit.statistics import shrink_estimates

from .examples import wrong_errors

A, B, C = ("0x" + letter * 40 for letter in "abc")


def at(*ms):
    return pd.to_datetime(list(ms), unit="ms", utc=True)


def mids(*rows, coin="XYZ"):
    times, px = zip(*rows, strict=True)
    return pd.DataFrame({"coin": coin, "time": at(*times), "mid_px": px})


def fills_of(*rows):
    """Return fills from (user, side, crossed, px, sz, ms, tid)."""
    names = ["user", "side", "crossed", "px", "sz", "ms", "tid"]
    frame = pd.DataFrame(rows, columns=names).assign(coin="XYZ")
    return frame.assign(time=pd.to_datetime(frame.pop("ms"), unit="ms", utc=True))


# A sells 3 to B at 100, then buys 1 from C at 104. A minute later the mid is 98, then 106.
TRADES = fills_of(
    (A, "A", True, 100.0, 3.0, 1_000, 1),
    (B, "B", False, 100.0, 3.0, 1_000, 1),
    (A, "B", True, 104.0, 1.0, 120_000, 2),
    (C, "A", False, 104.0, 1.0, 120_000, 2),
)
MIDS = mids((60_000, 98.0), (179_000, 106.0))


class TestCounterparties:
    def test_missing_side_is_kept(self):
        makers = TRADES[~TRADES["crossed"]]
        pairs = tk.execution.counterparties(makers, MIDS, "1m")
        assert pairs["taker"].isna().all()
        # The gain stays that of the taker.
        assert pairs.set_index("maker")["gain_usd"].to_dict() == {B: 6.0, C: 2.0}

    def test_fills_without_trade_id_stay_apart(self):
        for ids in (0, None):
            fills = TRADES.assign(tid=pd.array([ids] * 4, dtype="Int64"))
            pairs = tk.execution.counterparties(fills, MIDS, "1m")
            assert pairs["trades"].sum() == 4

    def test_unknown_taker_has_no_name(self):
        """The flag of one side tells the taker; without both, there is a trade and no taker."""
        for flags in ([True, None], [None, False]):
            fills = TRADES.iloc[:2].assign(crossed=pd.array(flags, dtype="boolean"))
            row = tk.execution.counterparties(fills, MIDS, "1m").iloc[0]
            assert row[["taker", "maker", "gain_usd"]].tolist() == [A, B, 6.0]
        fills = TRADES.iloc[:2].assign(crossed=pd.array([None, None], dtype="boolean"))
        row = tk.execution.counterparties(fills, MIDS, "1m").iloc[0]
        assert row[["taker", "maker", "gain_usd"]].isna().all()
        assert row[["trades", "volume_usd", "priced"]].tolist() == [1, 300.0, 0]

    def test_equal_ids_of_two_coins_are_two_trades(self):
        both = pd.concat([TRADES, TRADES.assign(coin="ABC")])
        pairs = tk.execution.counterparties(both, MIDS, "1m")
        assert pairs["trades"].tolist() == [2, 2]
        assert pairs["priced"].tolist() == [1, 1]

    def test_sums_equal_markouts_of_takers(self):
        session = tk.local(seed=7, size="tiny", default=False)
        users = session.world["users"]
        fills = tk.many(tk.user_fills_by_time, users, start=0, session=session)
        tape = {"max_age": "1h", "cluster": "hour", "draws": 20}
        pairs = tk.execution.counterparties(fills, horizon="10m", **tape)
        takers = tk.execution.markout(fills, horizons=["10m"], **tape).params
        takers = takers[takers["liquidity"] == "taker"].iloc[0]
        seen = pairs[pairs["taker"].notna()]
        assert seen["gain_usd"].sum() == pytest.approx(takers["usd"], rel=1e-9)
        assert seen["priced"].sum() == takers["n"]

    def test_names_and_clusters_by_hand(self):
        """B and D take from C under one name; the last trade comes after the last price.

        B buys 2 at 100 and D sells 1 at 110; the mark is 103, then 108: gains of 6 and 2.
        """
        fills = fills_of(
            (C, "A", False, 100.0, 2.0, 1_000, 1),
            (B, "B", True, 100.0, 2.0, 1_000, 1),
            ("0x" + "d" * 40, "A", True, 110.0, 1.0, 120_000, 2),
            (C, "B", False, 110.0, 1.0, 120_000, 2),
            (None, "B", True, 50.0, 1.0, 900_000, 3),
            (C, "A", False, 50.0, 1.0, 900_000, 3),
        )
        prices = mids((60_000, 1.0), (179_000, 2.0)).assign(mark_px=[103.0, 108.0])
        names = {B: "us", "0x" + "D" * 40: "us"}
        options = {"price": "mark_px", "by": names, "cluster": "user", "seed": 4}
        found = tk.execution.counterparties(fills, prices, "1m", **options)
        assert found["taker"].tolist()[:1] == ["us"]
        assert found["taker"].isna().tolist() == [False, True]
        assert found["maker"].tolist() == [C, C]
        figures = ["trades", "volume_usd", "priced", "gain_usd", "gain_bps", "clusters"]
        assert found.loc[0, figures].tolist() == pytest.approx([2, 310, 2, 8, 8e4 / 310, 2])
        assert found.loc[1, figures[:3]].tolist() == [1, 50, 0]
        assert found.loc[1, ["gain_usd", "gain_bps", "low"]].isna().all()
        assert found.loc[0, "low"] < found.loc[0, "gain_bps"] < found.loc[0, "high"]
        half = tk.execution.counterparties(fills, prices, "1m", **options, level=0.5)
        assert half.loc[0, "low"] > found.loc[0, "low"]
        facts = found.attrs["toolkit"]
        assert (facts["by"], facts["price_source"]) == (["user"], "mark_px")
        assert facts["horizon_seconds"] == 60


class TestToxicity:
    def test_ranks_of_several_names_by_hand(self):
        """Six makers with gains in two hours each; one more has one hour, one has no name.

        A maker with gains a and b on 100 each has (a + b) / 2 percent; the misses are (a - b) / 2.
        """
        gains = {"u": (1.0, 3.0), "v": (-4.0, 2.0), "w": (5.0, 6.0), "x": (0.0, -1.0),
                 "y": (2.0, 2.5), "z": (-7.0, -3.0)}  # fmt: skip
        rows, prices = [], []
        for k, (name, both) in enumerate(gains.items()):
            for hour, gain in enumerate(both):
                ms = 3_600_000 * hour + 300_000 * k + 1_000
                side = "A" if k % 2 else "B"
                rows.append((name, side, False, 100.0, 1.0, ms, 1))
                prices.append((ms + 50_000, 100 + (-gain if k % 2 else gain)))
        late = 3_600_000 + 300_000 * 7
        rows += [("few", "B", False, 100.0, 2.0, late, 1), (None, "B", False, 9.0, 1.0, 9**9, 1)]
        rows += [("other", "B", True, 100.0, 5.0, late, 1), ("odd", "B", None, 1.0, 1.0, late, 1)]
        prices.append((late + 1, 108.0))
        fills, marks = fills_of(*rows), mids(*prices).rename(columns={"mid_px": "mark_px"})
        marks["mid_px"] = 5.0
        found = tk.execution.toxicity(
            fills, marks, "1m", price="mark_px", liquidity="maker", min_clusters=2, level=0.8,
            by={"U": "named"},
        )  # fmt: skip
        # The error of v is the largest, so its value moves up to the mean, above that of x.
        order = ["w", "y", "named", "v", "x", "z"]
        values = {"named" if k == "u" else k: 50 * (a + b) for k, (a, b) in gains.items()}
        errors = {"named" if k == "u" else k: 50 * abs(a - b) for k, (a, b) in gains.items()}
        assert found["name"].tolist()[:7] == [*order, "few"]
        assert found["name"].isna().tolist() == [False] * 7 + [True]
        assert found["rank"].tolist()[:6] == [1, 2, 3, 4, 5, 6]
        assert found["rank"].isna().tolist() == [False] * 6 + [True] * 2
        assert found.index.tolist() == list(range(8))
        six = found.head(6)
        assert six["gain_bps"].tolist() == pytest.approx([values[name] for name in order])
        assert six["error_bps"].tolist() == pytest.approx([errors[name] for name in order])
        names = sorted(order)
        shrunk = shrink_estimates(
            np.array([values[name] for name in names]), np.array([errors[name] for name in names]),
            0.8,
        )  # fmt: skip
        for column in ("values", "low", "high"):
            wanted = dict(zip(names, getattr(shrunk, column), strict=True))
            have = six["shrunk_bps" if column == "values" else column].tolist()
            assert have == pytest.approx([wanted[name] for name in order])
        few, none = found.iloc[6], found.iloc[7]
        figures = ["fills", "volume_usd", "priced", "gain_usd", "gain_bps", "clusters"]
        assert few[figures].tolist() == pytest.approx([1, 200, 1, 16, 800, 1])
        assert none[figures[:3]].tolist() == [1, 9, 0]
        assert none[["gain_usd", "gain_bps", "error_bps", "shrunk_bps", "low"]].isna().all()
        facts = found.attrs["toolkit"]
        assert (facts["liquidity"], facts["horizon_seconds"]) == ("maker", 60)
        assert facts["price_source"] == "mark_px"


class TestCopyTrading:
    def test_two_coins_and_delays_by_hand(self):
        """XYZ ends at 102.5 and ABC at 48; the last fill is a day later, without a price."""
        ms = [1_000, 5_000, 1_000, 90_000_000]
        fills = pd.DataFrame(
            {"coin": ["XYZ", "XYZ", "ABC", "ABC"], "side": ["B", "A", "A", "B"],
             "px": [100.0, 103.0, 50.0, 49.0], "sz": [2.0, 1.0, 4.0, 1.0],
             "time": pd.to_datetime(ms, unit="ms", utc=True)}
        )  # fmt: skip
        ms = [900, 2_000, 6_000, 9_000, 900, 1_500, 9_000]
        mids = pd.DataFrame(
            {"coin": ["XYZ"] * 4 + ["ABC"] * 3, "time": pd.to_datetime(ms, unit="ms", utc=True),
             "mid_px": [100.0, 101.0, 104.0, 102.5, 50.2, 49.5, 48.0]}
        )  # fmt: skip
        bps = {"XYZ": 10.0, "ABC": 20.0}
        found = tk.execution.copy_trading(fills, mids, ["6s", 1.0], slippage_bps=bps, by="coin")
        wanted = [
            ("ABC", 1, 2, 249, 1, 8, -2, -0.396, 5.604, 119.8),
            ("ABC", 6, 2, 249, 1, 8, -2, -0.396, 5.604, 119.8),
            ("XYZ", 1, 2, 303, 2, 5.5, -1, -0.306, 4.194, 1e4 * 1.306 / 303),
            ("XYZ", 6, 2, 303, 2, 5.5, -8.5, -0.3105, -3.3105, 1e4 * 8.8105 / 303),
        ]
        rows = found.drop(columns=["low", "high", "clusters", "age_seconds"]).to_numpy().tolist()
        assert [row[0] for row in rows] == [row[0] for row in wanted]
        for row, expected in zip(rows, wanted, strict=True):
            assert row[1:] == pytest.approx(expected[1:])
        assert found["clusters"].tolist() == [1] * 4
        assert found.attrs["toolkit"]["by"] == ["coin"]
        assert found.index.tolist() == [0, 1, 2, 3]
        days = tk.execution.copy_trading(fills, mids, ["6s"], by="day")
        assert days["fills"].tolist() == [3, 1]
        assert str(days["day"].dtype) == "datetime64[ms, UTC]"

    def test_both_sides_are_one_copy(self):
        """The taker's buy at 100 gains 4; a second later the copier pays 101 and gains 3."""
        fills = fills_of(
            (A, "B", True, 100.0, 1.0, 1_000, 7), (B, "A", False, 100.0, 1.0, 1_000, 7)
        )
        prices = mids((2_000, 101.0), (9_000, 104.0))
        found = tk.execution.copy_trading(fills, prices, ["1s"]).iloc[0]
        assert found[["fills", "own_usd", "copied_usd"]].tolist() == [1, 4, 3]

    def test_interval_of_three_days_by_hand(self):
        """Bought 1 at 100 on three days; the copies pay 1, 2 and 6 more: 300 bps on average."""
        day = 86_400_000
        fills = fills_of(*((A, "B", True, 100.0, 1.0, day * k + 1_000, k) for k in (1, 2, 3)))
        prices = mids(
            (day + 2_000, 101.0), (2 * day + 2_000, 102.0), (3 * day + 2_000, 106.0),
            (3 * day + 9_000, 110.0),
        ).assign(mark_px=1.0)  # fmt: skip
        options = {"seed": 3, "draws": 300}
        found = tk.execution.copy_trading(fills, prices, ["1s"], **options)
        row = found.iloc[0]
        figures = ["own_usd", "delay_usd", "slippage_usd", "copied_usd", "cost_bps", "clusters"]
        assert row[figures].tolist() == pytest.approx([30, -9, 0, 21, 300, 3])
        assert row["low"] < 300 < row["high"]
        other = tk.execution.copy_trading(fills, prices, ["1s"], seed=4, draws=300).iloc[0]
        assert other["low"] != row["low"]
        half = tk.execution.copy_trading(fills, prices, ["1s"], **options, level=0.5).iloc[0]
        assert row["low"] < half["low"] < half["high"] < row["high"]
        assert found.attrs["toolkit"]["price_source"] == "mid_px"
        marks = tk.execution.copy_trading(fills, prices, ["1s"], price="mark_px").iloc[0]
        assert marks["copied_usd"] == 0
        weeks = tk.execution.copy_trading(fills, prices, ["1s"], cluster="week").iloc[0]
        assert weeks["clusters"] == 1

    def test_fill_without_amount_is_not_copied(self):
        """The fills without a price or a size count, and add nothing to the figures."""
        rows = [(A, "B", True, 100.0, 3.0, 1_000, 1), (A, "B", True, np.nan, 3.0, 2_000, 2),
                (A, "B", True, 100.0, np.nan, 3_000, 3)]  # fmt: skip
        found = tk.execution.copy_trading(fills_of(*rows), MIDS, ["1m"]).iloc[0]
        figures = ["fills", "volume_usd", "priced", "own_usd", "delay_usd"]
        assert found[figures].tolist() == [3, 300, 1, 18, 6]


def test_errors_of_three_helpers():
    pairs, ranks = tk.execution.counterparties, tk.execution.toxicity
    copies = partial(tk.execution.copy_trading, TRADES, MIDS)
    more = {name: TRADES.assign(**{name: 1}) for name in ("delay", "cost_bps")}
    table = [
        *((partial(helper, TRADES, MIDS, **options), named)
          for helper in (pairs, ranks)
          for options, named in (({"max_age": 0}, "max_age"), ({"horizon": "soon"}, "horizon"),
                                 ({"level": 95}, "level"))),
        *((partial(tk.execution.copy_trading, rows, MIDS, by=name), f"'{name}'")
          for name, rows in more.items()),
        (partial(ranks, TRADES, MIDS, liquidity="both"), "'taker' or 'maker'"),
        (partial(copies, ["soon"]), "each of delays"),
        (partial(copies, max_age=0), "max_age"),
        (partial(copies, level=95), "level"),
        (partial(copies, slippage_bps={"ABC": 1.0}), "XYZ"),
        (partial(copies, slippage_bps=-1.0), "0 or more"),
    ]  # fmt: skip
    assert wrong_errors((call, ValueError, named) for call, named in table) == []


class TestShrinkage:
    def test_shrinkage_with_equal_errors_by_hand(self):
        # Five values with error 1: mean 2, sum of squares 10, so spread**2 = 10 / 4 - 1 = 1.5.
        found = shrink_estimates(np.arange(5.0), np.ones(5), 0.95)
        assert found.mean[0] == pytest.approx(2.0)
        assert found.spread[0] == pytest.approx(np.sqrt(1.5))
        # The shrinkage is (5 - 3) / (5 - 1) * 1 / 2.5 = 0.2.
        assert found.values == pytest.approx([0.4, 1.2, 2.0, 2.8, 3.6])

    def test_four_estimates_are_not_shrunk(self):
        found = shrink_estimates(np.arange(4.0), np.ones(4), 0.95)
        assert np.isnan(found.values).all()
        assert np.isnan(found.spread[0])

    @given(
        st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5)), min_size=5, max_size=12),
        st.floats(-100, 100),
    )
    def test_shift_moves_all_values(self, rows, shift):
        values, errors = (np.array(column) for column in zip(*rows, strict=True))
        plain = shrink_estimates(values, errors, 0.9)
        moved = shrink_estimates(values + shift, errors, 0.9)
        assert moved.values == pytest.approx(plain.values + shift, abs=1e-4)
        assert (plain.low <= plain.values).all()
        inside = (plain.values >= values.min() - 1e-9) & (plain.values <= values.max() + 1e-9)
        assert inside.all()

    @pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
    def test_shrinkage_intervals_contain_truth(self, spread):
        """The model's own truth is inside its intervals as often as stated, or more often."""
        rng = np.random.default_rng(5)
        held, means, spreads = [], [], []
        for _ in range(300):
            errors = rng.uniform(0.5, 2.0, 20)
            truth = 0.4 + spread * rng.normal(size=20)
            found = shrink_estimates(truth + errors * rng.normal(size=20), errors, 0.95)
            held.append(np.mean((found.low <= truth) & (truth <= found.high)))
            means.append(found.mean[1] <= 0.4 <= found.mean[2])
            spreads.append(found.spread[1] <= spread <= found.spread[2])
        # Without spread all values are equal, and the intervals of Morris are too long.
        assert 0.92 <= np.mean(held) <= (1.0 if spread == 0 else 0.98)
        assert 0.91 <= np.mean(means) <= 0.99
        assert 0.91 <= np.mean(spreads) <= 0.99
