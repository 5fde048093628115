"""Both sides of trades, toxic flow, copies of an account: hand-worked values and intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit as tk
from toolkit.analysis.common.shrinkage import shrink_estimates

A, B, C = ("0x" + letter * 40 for letter in "abc")


def at(*ms: int) -> pd.DatetimeIndex:
    return pd.to_datetime(list(ms), unit="ms", utc=True)


def mids(*rows: tuple[int, float], coin: str = "XYZ") -> pd.DataFrame:
    times, px = zip(*rows, strict=True)
    return pd.DataFrame({"coin": coin, "time": at(*times), "mid_px": px})


def fills_of(*rows: tuple[object, ...]) -> pd.DataFrame:
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
    def test_gain_has_sign_of_taker(self) -> None:
        pairs = tk.execution.counterparties(TRADES, MIDS, "1m")
        rows = pairs.set_index(["taker", "maker"])
        assert rows.loc[(A, B), "gain_usd"] == 6.0
        assert rows.loc[(A, C), "gain_usd"] == 2.0
        assert rows.loc[(A, B), "gain_bps"] == pytest.approx(200.0)
        assert pairs["volume_usd"].tolist() == [300.0, 104.0]

    def test_names_replace_addresses(self) -> None:
        pairs = tk.execution.counterparties(TRADES, MIDS, "1m", by={A.upper(): "me", B: "them"})
        assert pairs[["taker", "maker"]].values.tolist() == [["me", "them"], ["me", C]]

    def test_missing_side_is_kept(self) -> None:
        makers = TRADES[~TRADES["crossed"]]
        pairs = tk.execution.counterparties(makers, MIDS, "1m")
        assert pairs["taker"].isna().all()
        # The gain stays that of the taker.
        assert pairs.set_index("maker")["gain_usd"].to_dict() == {B: 6.0, C: 2.0}

    def test_fills_without_trade_id_stay_apart(self) -> None:
        fills = TRADES.assign(tid=0)
        pairs = tk.execution.counterparties(fills, MIDS, "1m")
        assert pairs["trades"].sum() == 4

    def test_equal_ids_of_two_coins_are_two_trades(self) -> None:
        both = pd.concat([TRADES, TRADES.assign(coin="ABC")])
        pairs = tk.execution.counterparties(both, MIDS, "1m")
        assert pairs["trades"].tolist() == [2, 2]
        assert pairs["priced"].tolist() == [1, 1]

    def test_sums_equal_markouts_of_takers(self) -> None:
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


class TestToxicity:
    def test_maker_side_has_opposite_sign(self) -> None:
        takers = tk.execution.toxicity(TRADES, MIDS, "1m")
        makers = tk.execution.toxicity(TRADES, MIDS, "1m", liquidity="maker")
        assert takers[["name", "gain_usd"]].values.tolist() == [[A, 8.0]]
        assert makers.set_index("name")["gain_usd"].to_dict() == {B: -6.0, C: -2.0}

    def test_error_of_clusters_by_hand(self) -> None:
        # Gains of 1 and 3 on 100 in two hours: ratio 2 %, misses -1 and 1, error sqrt(2 * 2) / 200.
        fills = fills_of(
            (A, "B", True, 100.0, 1.0, 1_000, 1), (A, "B", True, 100.0, 1.0, 3_700_000, 2)
        )
        prices = mids((50_000, 101.0), (3_750_000, 103.0))
        row = tk.execution.toxicity(fills, prices, "1m", min_clusters=2).iloc[0]
        assert row["gain_bps"] == pytest.approx(200.0)
        assert row["error_bps"] == pytest.approx(1e4 * 2 / 200)

    def test_unknown_side_raises(self) -> None:
        with pytest.raises(ValueError, match="'taker' or 'maker'"):
            tk.execution.toxicity(TRADES, MIDS, liquidity="both")  # type: ignore[arg-type]  # wrong on purpose

    def test_intervals_hold_planted_toxicity(self) -> None:
        """60 markets of 12 takers with planted gains: the intervals hold 92 to 98 % of them."""
        rng = np.random.default_rng(11)
        held = []
        for _ in range(60):
            truth = 2.0 + 3.0 * rng.normal(size=12)
            n, hours = 12, 30
            k, hour = np.divmod(np.arange(n * hours), hours)
            gain = truth[k] + 12.0 * rng.normal(size=n * hours)
            side = rng.choice([-1.0, 1.0], n * hours)
            ms = 1_000 + 3_600_000 * hour + 200_000 * k
            coin = [f"c{each}" for each in k]
            fills = pd.DataFrame(
                {"user": coin, "coin": coin, "px": 100.0, "sz": 1.0, "crossed": True,
                 "side": np.where(side > 0, "B", "A"), "time": at(*ms)}
            )  # fmt: skip
            prices = pd.DataFrame(
                {"coin": coin, "time": at(*(ms + 50_000)), "mid_px": 100 + side * gain / 100}
            )
            found = tk.execution.toxicity(fills, prices, "1m").set_index("name")
            found = found.loc[[f"c{each}" for each in range(n)]]
            held += list((found["low"].to_numpy() <= truth) & (truth <= found["high"].to_numpy()))
        assert 0.92 <= np.mean(held) <= 0.98


class TestCopyTrading:
    def test_sell_is_copied_with_its_sign(self) -> None:
        # Sold 3 at 100, the copy sells at 98 and pays 10 bps, the last mid is 106.
        row = tk.execution.copy_trading(TRADES.iloc[:1], MIDS, ["1m"], slippage_bps=10.0).iloc[0]
        assert row["own_usd"] == -18.0
        assert row["delay_usd"] == -6.0
        assert row["slippage_usd"] == pytest.approx(-3 * 98 * 1e-3)
        assert row["copied_usd"] == pytest.approx(-24.294)
        assert row["cost_bps"] == pytest.approx(1e4 * 6.294 / 300)

    def test_two_coins_and_delays_by_hand(self) -> None:
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
        rows = found.drop(columns=["low", "high", "clusters"]).to_numpy().tolist()
        assert [row[0] for row in rows] == [row[0] for row in wanted]
        for row, expected in zip(rows, wanted, strict=True):
            assert row[1:] == pytest.approx(expected[1:])
        assert found["clusters"].tolist() == [1] * 4
        facts = found.attrs["toolkit"]
        assert facts["helper"] == "execution.copy_trading"
        assert list(facts["inputs"]) == ["fills", "prices"]

    def test_stale_price_copies_nothing(self) -> None:
        row = tk.execution.copy_trading(TRADES.iloc[:1], MIDS, ["10m"]).iloc[0]
        assert (row["fills"], row["priced"]) == (1, 0)
        assert np.isnan(row["copied_usd"])

    def test_slippage_of_unknown_coin_raises(self) -> None:
        with pytest.raises(ValueError, match="no value for XYZ"):
            tk.execution.copy_trading(TRADES, MIDS, slippage_bps={"ABC": 1.0})

    def test_negative_slippage_raises(self) -> None:
        with pytest.raises(ValueError, match="0 or more"):
            tk.execution.copy_trading(TRADES, MIDS, slippage_bps=-1.0)


class TestShrinkage:
    def test_equal_errors_by_hand(self) -> None:
        # Five values with error 1: mean 2, sum of squares 10, so spread**2 = 10 / 4 - 1 = 1.5.
        found = shrink_estimates(np.arange(5.0), np.ones(5), 0.95)
        assert found.mean[0] == pytest.approx(2.0)
        assert found.spread[0] == pytest.approx(np.sqrt(1.5))
        # The shrinkage is (5 - 3) / (5 - 1) * 1 / 2.5 = 0.2.
        assert found.values == pytest.approx([0.4, 1.2, 2.0, 2.8, 3.6])

    def test_few_estimates_stay_unknown(self) -> None:
        found = shrink_estimates(np.arange(4.0), np.ones(4), 0.95)
        assert np.isnan(found.values).all()
        assert np.isnan(found.spread[0])

    @given(
        st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 5)), min_size=5, max_size=12),
        st.floats(-100, 100),
    )
    def test_shift_moves_all_values(self, rows: list[tuple[float, float]], shift: float) -> None:
        values, errors = (np.array(column) for column in zip(*rows, strict=True))
        plain = shrink_estimates(values, errors, 0.9)
        moved = shrink_estimates(values + shift, errors, 0.9)
        assert moved.values == pytest.approx(plain.values + shift, abs=1e-4)
        assert (plain.low <= plain.values).all()
        inside = (plain.values >= values.min() - 1e-9) & (plain.values <= values.max() + 1e-9)
        assert inside.all()

    @pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
    def test_intervals_hold_truth(self, spread: float) -> None:
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
