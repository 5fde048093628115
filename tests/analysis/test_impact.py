"""Price impact: by hand, a planted law and kernel, what belongs to an order."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.interval_coverage import KERNEL, hold_share, impact_tape

SECOND = 1_000


def at(*seconds: float) -> pd.DatetimeIndex:
    return pd.to_datetime([int(SECOND * each) for each in seconds], unit="ms", utc=True)


def fills_of(oids: list[int], seconds: list[float], **columns: object) -> pd.DataFrame:
    rows = pd.DataFrame(
        {"oid": oids, "coin": "XYZ", "px": 100.0, "sz": 1.0, "side": "B", "crossed": True,
         "time": at(*seconds)}
    )  # fmt: skip
    return rows.assign(**columns)


def mids(*rows: tuple[float, float]) -> pd.DataFrame:
    seconds, px = zip(*rows, strict=True)
    return pd.DataFrame({"coin": "XYZ", "time": at(*seconds), "mid_px": px})


class TestParents:
    prices = mids((0, 100.0), (14, 100.1), (24, 100.3), (34, 100.6))

    def test_fills_of_one_order_are_one_parent(self) -> None:
        rows = fills_of([7, 7], [5, 20], sz=[2.0, 3.0])
        parents = tk.execution.impact(rows, self.prices, volume={"XYZ": 1e4}).parents
        assert parents[["parent", "fills", "usd", "share"]].values.tolist() == [[7, 2, 500, 0.05]]
        # From the mid before second 5 to the one of second 24, after the last fill.
        assert parents["impact_bps"].tolist() == pytest.approx([30.0])

    def test_slices_of_twap_are_one_parent(self) -> None:
        rows = fills_of([7, 8], [5, 20], twap_id=[3, 3])
        parents = tk.execution.impact(rows, self.prices).parents
        assert parents[["kind", "parent", "fills"]].values.tolist() == [["twap", 3, 2]]

    def test_sale_counts_with_other_sign(self) -> None:
        parents = tk.execution.impact(fills_of([7], [5], side="A"), self.prices).parents
        assert parents["impact_bps"].tolist() == pytest.approx([-10.0])

    def test_maker_fills_do_not_count(self) -> None:
        rows = fills_of([7, 8], [5, 20], crossed=[False, True])
        assert tk.execution.impact(rows, self.prices).parents["parent"].tolist() == [8]

    def test_unnamed_order_counts(self) -> None:
        rows = fills_of([7, 8, 9], [5, 13, 50], user=["0xa", None, None])
        found = tk.execution.impact(rows, self.prices)
        assert found.parents["user"].tolist() == ["0xa", "", ""]
        assert found.params[["n", "missing"]].iloc[0].tolist() == [2, 1]

    def test_price_from_before_last_fill_is_missing(self) -> None:
        found = tk.execution.impact(fills_of([7], [36]), self.prices)
        assert found.parents["impact_bps"].isna().all()
        assert found.params["missing"].tolist() == [1] * 3

    def test_prices_of_trades_are_refused(self) -> None:
        rows = fills_of([7], [5])
        with pytest.raises(ValueError, match="bid or an ask"):
            tk.execution.impact(rows, rows[["coin", "time", "px"]])


class TestResponse:
    def test_response_by_hand(self) -> None:
        """Buy, buy, sell at mids 100, 101, 103.02: changes of +1 % and +2 %."""
        rows = fills_of([1, 2, 3], [1, 2, 3], side=["B", "B", "A"])
        prices = mids((0, 100.0), (1.5, 101.0), (2.5, 103.02))
        lags = tk.execution.impact(rows, prices, lags=2, horizon=0.1).lags
        assert lags["response_bps"].tolist() == pytest.approx([150.0, 350.0])
        assert lags["autocorrelation"].tolist() == pytest.approx([0.0, -1.0])
        assert lags["n"].tolist() == [2, 1]

    def test_coins_are_apart(self) -> None:
        rows, prices = impact_tape(np.random.default_rng(3), days=4)
        other = [frame.assign(coin="ABC") for frame in (rows, prices)]
        other[0]["oid"] += 10**6
        both = tk.execution.impact(pd.concat([rows, other[0]]), pd.concat([prices, other[1]]))
        alone = tk.execution.impact(rows, prices)
        assert both.lags["n"].tolist() == (2 * alone.lags["n"]).tolist()
        names = ["response_bps", "autocorrelation", "kernel_bps"]
        pd.testing.assert_frame_equal(both.lags[names], alone.lags[names])

    def test_kernel_times_sides_is_response(self) -> None:
        """R(l) = G(l) + sum of C(n) * (G(l - n) or G(l + n) - G(n)): Bouchaud et al. (2004)."""
        rows, prices = impact_tape(np.random.default_rng(4))
        lags = tk.execution.impact(rows, prices, lags=60).lags
        kernel = np.diff(lags["kernel_bps"], prepend=0.0)
        sides = np.concatenate([[1.0], lags["autocorrelation"]])
        places = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
        made = np.cumsum(sides[places] @ kernel)
        assert lags["response_bps"].tolist() == pytest.approx(made.tolist())

    def test_planted_kernel_comes_back(self) -> None:
        rows, prices = impact_tape(np.random.default_rng(5), days=60)
        lags = tk.execution.impact(rows, prices, lags=8).lags
        wanted = np.cumsum([*KERNEL, 0.0, 0.0, 0.0, 0.0])
        assert np.allclose(lags["kernel_bps"], wanted, atol=0.35)
        assert (lags["response_bps"] > lags["kernel_bps"]).iloc[1:].all()  # sides persist

    def test_equal_sides_have_no_kernel(self) -> None:
        rows = fills_of([1, 2, 3], [1, 2, 3])
        prices = mids((0, 100.0), (1.5, 101.0), (2.5, 103.0))
        assert tk.execution.impact(rows, prices, lags=2).lags["kernel_bps"].isna().all()


@pytest.mark.parametrize("exponent", [0.3, 0.5, 1.0])
def test_planted_exponent_comes_back(exponent: float) -> None:
    rows, prices = impact_tape(np.random.default_rng(6), exponent=exponent)
    found = tk.execution.impact(rows, prices, volume={"XYZ": 1e6}, draws=199)
    row = found.params.set_index("name").loc["exponent"]
    assert row["low"] <= exponent <= row["high"]
    assert row["high"] - row["low"] < 0.2
    assert found["impact_bps"] == pytest.approx(10, rel=0.1)


def test_scale_of_prices_means_nothing() -> None:
    rows, prices = impact_tape(np.random.default_rng(7), days=4)
    plain = tk.execution.impact(rows, prices).params
    scaled = tk.execution.impact(
        rows.assign(px=7 * rows["px"]), prices.assign(mid_px=7 * prices["mid_px"])
    ).params
    pd.testing.assert_frame_equal(plain, scaled, rtol=1e-6)


def test_prices_without_impact_have_no_law() -> None:
    rows, prices = impact_tape(np.random.default_rng(8), days=4)
    found = tk.execution.impact(rows, prices.assign(mid_px=100.0))
    assert np.isnan(found["exponent"])
    assert found["root_bps"] == 0


def test_intervals_hold_planted_law_and_kernel() -> None:
    assert hold_share("impact", 12) >= 0.88
