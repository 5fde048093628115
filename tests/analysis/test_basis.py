"""Basis and funding across dexes: by hand, and the persistence that the exchange plants."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import toolkit as tk
from tests.analysis.interval_coverage import START, hold_share
from toolkit.errors import MissingColumns

DEXES = ("", "eqx")


def contexts(bps, hours=None, **columns):
    at = START + pd.to_timedelta(range(len(bps)) if hours is None else hours, unit="h")
    rows = pd.DataFrame(
        {"name": "XYZ", "mark_px": 100 * (1 + np.array(bps) / 1e4), "oracle_px": 100.0,
         "funding": 1e-5, "open_interest": 50.0, "time": at}
    )  # fmt: skip
    return rows.assign(**columns)


def figures(rows):
    return tk.funding.basis(rows, draws=99).params.set_index("name")


class TestHalfLife:
    def test_exact_decay_by_hand(self):
        """Each hour 0.8 of the deviation remains; 47 pairs add a correction of 3.4 / 47."""
        found = figures(contexts([100 * 0.8**hour for hour in range(48)]))
        persistence = 0.8 + 3.4 / 47
        assert found.loc["persistence", "estimate"] == pytest.approx(persistence)
        assert found.loc["persistence", "low"] == pytest.approx(persistence)
        wanted = np.log(0.5) / np.log(persistence)
        assert found.loc["half_life_hours", "estimate"] == pytest.approx(wanted)

    def test_alternating_basis_has_no_half_life(self):
        found = figures(contexts([1.0, 3.0] * 20))
        assert found.loc["mean_bps", "estimate"] == pytest.approx(2.0)
        assert found.loc["half_life_hours", "estimate"] == 0.0

    def test_growing_deviation_has_infinite_half_life(self):
        found = figures(contexts([1.2**hour for hour in range(20)]))
        assert np.isinf(found.loc["half_life_hours", "estimate"])

    def test_last_row_of_hour_counts(self):
        found = figures(contexts([5.0, 1.0, 2.0], [0.1, 0.9, 1.5]))
        assert found.loc["mean_bps", ["estimate", "n"]].tolist() == pytest.approx([1.5, 2])

    def test_gaps_make_no_pairs(self):
        decay = [100 * 0.8**hour for hour in range(40)]
        rows = contexts(decay)
        found = figures(rows.drop(index=rows.index[20]))
        assert found["missing"].tolist() == [1] * 3
        assert found.loc["persistence", "estimate"] == pytest.approx(0.8 + 3.4 / 37)

    def test_few_hours_have_no_half_life(self):
        found = figures(contexts([3.0, 2.0, 1.0]))
        assert found.loc["half_life_hours", ["estimate", "low", "high"]].isna().all()

    def test_missing_oracle_is_not_zero(self):
        rows = contexts([2.0] * 4)
        rows.loc[1, "oracle_px"] = np.nan
        assert figures(rows).loc["mean_bps", ["estimate", "missing"]].tolist() == pytest.approx(
            [2.0, 1]
        )

    def test_interval_of_persistence_by_hand(self):
        """Eleven pairs: the slope and its error are those of least squares, robust as of White."""
        bps = [4.0, 3.0, 3.5, 1.0, 2.0, 2.5, 0.5, 1.5, 3.0, 2.0, 1.0, 2.0]
        rows = contexts(bps)
        found = tk.funding.basis(rows, level=0.9, draws=99).params.set_index("name")
        x = sm.add_constant(np.array(bps[:-1]))
        fitted = sm.OLS(bps[1:], x).fit(cov_type="HC1")
        middle = fitted.params[1] + (1 + 3 * fitted.params[1]) / 11
        half = stats.t.ppf(0.95, 9) * fitted.bse[1]
        figures = ["estimate", "low", "high"]
        wanted = [middle, middle - half, middle + half]
        assert found.loc["persistence", figures].tolist() == pytest.approx(wanted)
        # Nothing is left at the lower end, which is below 0; at the upper end more than half.
        lives = found.loc["half_life_hours", figures].tolist()
        assert wanted[0] > 0 > wanted[1]
        assert lives == pytest.approx(
            [np.log(0.5) / np.log(wanted[0]), 0.0, np.log(0.5) / np.log(wanted[2])]
        )
        assert np.isnan(found.loc["mean_bps", "low"])  # of one day
        ten = tk.funding.basis(rows.iloc[:11], draws=9).params.set_index("name")
        assert ten.loc["persistence", "estimate"] > 0
        nine = tk.funding.basis(rows.iloc[:10], draws=9).params.set_index("name")
        assert np.isnan(nine.loc["persistence", "estimate"])


class TestRates:
    def test_mixed_contexts_by_hand(self):
        """ABC has two dexes and three days, XYZ one dex; an empty dex is the exchange's own.

        Open interest at the oracle price of 100: flx 1,000, then 3,000 and 1,000; own 5,000.
        Coins without a row in an hour keep the mean of their own hours.
        """
        days = [2.0, 26.0, 50.0]
        rows = pd.concat(
            [
                contexts([3.0], [1.0], name="XYZ", dex=None, funding=-2e-5, open_interest=7.0),
                contexts([1.0, 2.0, 6.0], days, name="ABC", dex="flx", funding=[1e-5, 3e-5, 6e-5],
                         open_interest=[10.0, 30.0, 10.0]),
                contexts([5.0], [2.0], name="ABC", dex="", funding=4e-5),
                contexts([9.0], [3.0], name="ABC", dex="", funding=np.nan),
                contexts([8.0], [4.0], name="ABC", dex="", open_interest=0.0),
            ]
        )  # fmt: skip
        options = {"draws": 300, "seed": 5}
        found = tk.funding.basis(rows.iloc[::-1], **options)
        rates = found.rates
        own, mean = "hyperliquid", 5000 / 3
        total = mean + 5700
        flx = (1e-5 * 1000 + 3e-5 * 3000 + 6e-5 * 1000) / 5000
        wanted = [
            ("ABC", "flx", flx, mean, mean / total, 3, 3),
            ("ABC", own, 4e-5, 5000, 5000 / total, 1, 1),
            ("XYZ", own, -2e-5, 700, 700 / total, 1, 1),
            ("ABC", "all", (5000 * flx + 0.2) / 1e4, mean + 5000, (mean + 5000) / total, 4, 3),
            ("all", "flx", flx, mean, mean / total, 3, 3),
            ("all", own, (0.2 - 0.014) / 5700, 5700, 5700 / total, 2, 1),
            ("all", "all", (5000 * flx + 0.2 - 0.014) / 10_700, total, 1.0, 5, 3),
        ]
        assert rates[["asset", "dex"]].to_numpy().tolist() == [list(row[:2]) for row in wanted]
        assert rates["estimate"].tolist() == pytest.approx([8760 * row[2] for row in wanted])
        figures = ["open_interest_usd", "share", "n", "days"]
        for have, row in zip(rates[figures].to_numpy().tolist(), wanted, strict=True):
            assert have == pytest.approx(row[3:])
        assert rates["low"].isna().tolist() == [False, True, True, False, False, True, False]
        ends = rates[rates["low"].notna()]
        assert (ends["low"] < ends["estimate"]).all()
        assert (ends["estimate"] < ends["high"]).all()
        assert ends["high"].max() < 8760 * 1e-3
        assert found.params["coin"].tolist() == ["ABC"] * 3 + ["XYZ"] * 3 + ["flx:ABC"] * 3
        means = found.params[found.params["name"] == "mean_bps"]
        assert means["estimate"].tolist() == pytest.approx([22 / 3, 3, 3])
        assert means[["n", "missing"]].to_numpy().tolist() == [[3, 0], [1, 0], [3, 46]]
        assert means["low"].isna().tolist() == [True, True, False]
        assert means["low"].iloc[2] < 3 < means["high"].iloc[2]
        assert (found.n, found.level) == (7, 0.95)
        assert found.method.endswith("bootstrap by day")
        hours = found.hours
        assert hours["coin"].tolist() == ["ABC"] * 3 + ["XYZ"] + ["flx:ABC"] * 3
        assert list(hours["time"]) == list(START + pd.to_timedelta([2, 3, 4, 1, *days], unit="h"))
        assert hours["open_interest_usd"].tolist() == [5000, 5000, 0, 700, 1000, 3000, 1000]
        assert hours["rate"].isna().tolist() == [False, True, *[False] * 5]
        other = tk.funding.basis(rows, draws=300, seed=6)
        assert other.rates.loc[0, "low"] != rates.loc[0, "low"]
        assert other.params["low"].dropna().tolist() != found.params["low"].dropna().tolist()
        half = tk.funding.basis(rows, **options, level=0.5).rates
        assert half.loc[0, "low"] > rates.loc[0, "low"]


def test_intervals_hold_planted_persistence():
    assert hold_share("basis", 3) >= 0.87


@pytest.fixture(scope="module")
def fetched():
    with tk.local(seed=7, size="tiny", default=False) as session:
        return tk.concat(tk.meta_and_asset_ctxs(dex=dex, session=session) for dex in DEXES)


class TestSnapshot:
    """A fetched snapshot has no column of times; it counts at the time of its fetch."""

    def test_rows_without_time_use_fetch_time(self, fetched):
        found = tk.funding.basis(fetched, draws=9)
        at = pd.Timestamp(tk.provenance(fetched)["asked_at"])
        timed = tk.funding.basis(fetched.assign(time=at), draws=9)
        for name in ("params", "rates", "hours"):
            pd.testing.assert_frame_equal(getattr(found, name), getattr(timed, name))
        assert found.hours["time"].unique().tolist() == [at.floor("h")]
        assert {"hyperliquid", "eqx", "all"} <= set(found.rates["dex"])

    def test_several_snapshots_need_times(self, fetched):
        both = pd.concat([fetched, fetched.assign(mark_px=1.0)])
        both.attrs = fetched.attrs
        with pytest.raises(MissingColumns, match="several snapshots"):
            tk.funding.basis(both)

    def test_unknown_fetch_needs_times(self):
        with pytest.raises(MissingColumns, match="the time of the fetch"):
            tk.funding.basis(contexts([1.0]).drop(columns="time"))
