"""Basis and funding across dexes: by hand, and the persistence that the exchange plants."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.interval_coverage import START, hold_share, premium_contexts


def contexts(bps: list[float], hours: list[float] | None = None, **columns: object) -> pd.DataFrame:
    at = START + pd.to_timedelta(range(len(bps)) if hours is None else hours, unit="h")
    rows = pd.DataFrame(
        {"name": "XYZ", "mark_px": 100 * (1 + np.array(bps) / 1e4), "oracle_px": 100.0,
         "funding": 1e-5, "open_interest": 50.0, "time": at}
    )  # fmt: skip
    return rows.assign(**columns)


def figures(rows: pd.DataFrame) -> pd.DataFrame:
    return tk.funding.basis(rows, draws=99).params.set_index("name")


class TestHalfLife:
    def test_exact_decay_by_hand(self) -> None:
        """Each hour 0.8 of the deviation remains; 47 pairs add a correction of 3.4 / 47."""
        found = figures(contexts([100 * 0.8**hour for hour in range(48)]))
        persistence = 0.8 + 3.4 / 47
        assert found.loc["persistence", "estimate"] == pytest.approx(persistence)
        assert found.loc["persistence", "low"] == pytest.approx(persistence)
        wanted = np.log(0.5) / np.log(persistence)
        assert found.loc["half_life_hours", "estimate"] == pytest.approx(wanted)

    def test_alternating_basis_has_no_half_life(self) -> None:
        found = figures(contexts([1.0, 3.0] * 20))
        assert found.loc["mean_bps", "estimate"] == pytest.approx(2.0)
        assert found.loc["half_life_hours", "estimate"] == 0.0

    def test_growing_deviation_is_infinite(self) -> None:
        found = figures(contexts([1.2**hour for hour in range(20)]))
        assert np.isinf(found.loc["half_life_hours", "estimate"])

    def test_last_row_of_hour_counts(self) -> None:
        found = figures(contexts([5.0, 1.0, 2.0], [0.1, 0.9, 1.5]))
        assert found.loc["mean_bps", ["estimate", "n"]].tolist() == pytest.approx([1.5, 2])

    def test_gaps_make_no_pairs(self) -> None:
        decay = [100 * 0.8**hour for hour in range(40)]
        rows = contexts(decay)
        found = figures(rows.drop(index=rows.index[20]))
        assert found["missing"].tolist() == [1] * 3
        assert found.loc["persistence", "estimate"] == pytest.approx(0.8 + 3.4 / 37)

    def test_few_hours_have_no_half_life(self) -> None:
        found = figures(contexts([3.0, 2.0, 1.0]))
        assert found.loc["half_life_hours", ["estimate", "low", "high"]].isna().all()

    def test_missing_oracle_is_not_zero(self) -> None:
        rows = contexts([2.0] * 4)
        rows.loc[1, "oracle_px"] = np.nan
        assert figures(rows).loc["mean_bps", ["estimate", "missing"]].tolist() == pytest.approx(
            [2.0, 1]
        )


class TestRates:
    def test_weights_by_hand(self) -> None:
        """Rates of 1e-5 on 3,000 USD and 5e-5 on 1,000 USD: 2e-5 together."""
        rows = pd.concat(
            [
                contexts([0.0] * 3, open_interest=30.0, name="flx:XYZ"),
                contexts([0.0] * 3, open_interest=10.0, name="eqx:XYZ", funding=5e-5),
            ]
        )
        rates = tk.funding.basis(rows).rates.set_index(["asset", "dex"])
        assert rates.loc[("XYZ", "all"), "estimate"] == pytest.approx(2e-5 * 8760)
        assert rates.loc[("all", "all"), "estimate"] == pytest.approx(2e-5 * 8760)
        assert rates.loc[("XYZ", "eqx"), "estimate"] == pytest.approx(5e-5 * 8760)
        assert rates.loc[("XYZ", "flx"), ["open_interest_usd", "share"]].tolist() == [3000, 0.75]

    def test_dex_may_be_own_column(self) -> None:
        rows = contexts([0.0] * 3, dex="flx")
        assert tk.funding.basis(rows).rates["dex"].tolist() == ["flx", "flx", "all"]
        assert set(tk.funding.basis(rows).params["coin"]) == {"flx:XYZ"}

    def test_whole_is_weighted_mean_of_dexes(self) -> None:
        rates = tk.funding.basis(premium_contexts(2, 60), draws=9).rates
        whole = rates[rates["asset"] == "all"].set_index("dex")
        parts = whole.drop(index="all")
        assert parts["share"].sum() == pytest.approx(1)
        assert (parts["estimate"] * parts["share"]).sum() == pytest.approx(
            whole.loc["all", "estimate"]
        )


def test_intervals_hold_planted_persistence() -> None:
    assert hold_share("basis", 3) >= 0.87
