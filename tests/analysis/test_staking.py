"""Staking: examples by hand, scipy, and the simulated exchange with its known commissions."""

from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats

import toolkit as tk
from toolkit import staking
from toolkit.simulation.output.profiles import COMMISSIONS

from .examples import DAY, MONDAY, times

WEEK = 7 * DAY


def history(aprs, fee=0.1):
    rows = [(name, week, net) for name, nets in aprs.items() for week, net in enumerate(nets)]
    frame = pd.DataFrame(rows, columns=["validator", "week", "net_apr"])
    frame["week"] = times(MONDAY + WEEK * frame["week"])
    return frame.assign(gross_apr=frame["net_apr"] / (1 - fee))


def at(weeks):
    return MONDAY + WEEK * weeks


@pytest.fixture(scope="module")
def simulated():
    session = tk.local(seed=7, size="tiny", default=False)
    validators = session.world["validators"]
    return tk.many(tk.validator_apr_history, validators, session=session), validators


def test_weekly_fees_by_hand():
    """3.65 % a year is 0.07 % a week: 1.0007 ** (365 / 7) - 1 = 3.7161 %."""
    result = staking.implied_fee(history({"v": [0.0365, 0.073]}), now=at(1) + 3 * DAY, by="week")
    assert result["whole"].tolist() == [True, False]
    assert result["earned"].tolist() == pytest.approx([0.0007, 0.0014])
    assert result["apy"].iloc[0] == pytest.approx(1.0007 ** (365 / 7) - 1)
    assert result["fee"].tolist() == pytest.approx([0.1, 0.1])


def test_running_and_first_week_are_partial():
    rows = history({"v": [0.02, 0.03, 0.9]})
    assert staking.apy(rows, now=at(3) - 1)[["n", "partial"]].values.tolist() == [[2, 1]]
    assert staking.apy(rows, now=at(3))[["n", "partial"]].values.tolist() == [[3, 0]]
    none = staking.apy(rows, now=at(0)).iloc[0]
    assert none["n"] == 0
    assert pd.isna(none[["apr", "apy", "low", "high"]]).all()
    first = history({"v": [0.02]}).assign(week=times([1_753_660_800_000]))
    assert not staking.implied_fee(first, now=at(3), by="week")["whole"].item()


def test_yield_and_interval_by_hand():
    nets = [0.02, 0.025, 0.018, 0.022]
    row = staking.apy(history({"v": nets}), now=at(4), level=0.9).iloc[0]
    assert row["apr"] == pytest.approx(0.02125)
    grown = np.prod([1 + net * 7 / 365 for net in nets])
    assert row["apy"] == pytest.approx(grown ** (365 / 28) - 1)
    logs = np.log1p(np.array(nets) * 7 / 365)
    low, high = stats.t.interval(0.9, 3, logs.mean(), stats.sem(logs))
    assert row["low"] == pytest.approx(np.exp(low * 365 / 7) - 1)
    assert row["high"] == pytest.approx(np.exp(high * 365 / 7) - 1)


def test_low_end_of_yield_is_no_loss():
    """Two weeks of 1 % and 5 %: exp((log(1 + 1 % * 7 / 365) + ...) / 2 * 365 / 7) - 1 = 3.04 %."""
    row = staking.apy(history({"v": [0.01, 0.05]}), now=at(2)).iloc[0]
    grown = (1 + 0.01 * 7 / 365) * (1 + 0.05 * 7 / 365)
    assert row["apy"] == pytest.approx(grown ** (365 / 14) - 1)
    assert row["low"] == 0
    assert row["high"] > row["apy"]


def test_fee_and_lag_behind_best_by_hand():
    """b earns 18 and a earns 20: b is 10 % behind, although both have a fee of a tenth."""
    result = staking.implied_fee(history({"a": [0.2, 0.2], "b": [0.18, 0.18]}), now=at(2))
    assert result["fee"].tolist() == pytest.approx([0.1, 0.1])
    assert result["behind_best"].tolist() == pytest.approx([0.0, 0.1])
    changed = history({"a": [0.09, 0.08]})
    changed["gross_apr"] = 0.1
    row = staking.implied_fee(changed, now=at(2)).iloc[0]
    assert [row["low"], row["fee"], row["high"]] == pytest.approx([0.1, 0.15, 0.2])
    nothing = history({"v": [0.0, 0.0]})
    row = staking.implied_fee(nothing, now=at(2)).iloc[0]
    assert row["n"] == 0
    assert row[["fee", "low", "high"]].isna().all()
    assert staking.apy(nothing, now=at(2))["apy"].item() == 0.0


WEEKS = st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(lambda row: len(set(row)) > 1)


@settings(max_examples=40)
@given(st.lists(WEEKS, min_size=2, max_size=6))
def test_ranks_against_scipy(weeks):
    """W is Friedman's statistic over weeks * (validators - 1); correlations are spearmanr's."""
    aprs = {f"v{k}": [0.01 * week[k] for week in weeks] for k in range(4)}
    result = staking.rank_stability(history(aprs), now=at(len(weeks)))
    if len(weeks) >= 3:
        friedman = stats.friedmanchisquare(*np.array(weeks).T).statistic
        assert result["concordance"] == pytest.approx(friedman / (len(weeks) * 3))
    pairs = [stats.spearmanr(a, b).statistic for a, b in pairwise(weeks)]
    assert result["next_week"] == pytest.approx(np.mean(pairs))


def test_validator_without_every_week_is_unranked():
    rows = history({"a": [3, 3], "b": [2, 2], "new": [9, 9]}).drop(index=4)
    result = staking.rank_stability(rows, now=at(2))
    assert (result.left_out, set(result.ranks["validator"])) == (1, {"a", "b"})
    rows = history({"a": [3, 3, 1], "b": [2, 2, 5], "c": [np.nan, 4, 4]})
    unknown = staking.rank_stability(rows, now=at(2))  # the third week is running
    assert (unknown.n, unknown.left_out, unknown["next_week"]) == (2, 1, pytest.approx(1.0))
    assert unknown.ranks["rank"].tolist() == [1, 1, 2, 2]


def test_ranks_with_ties_by_hand():
    """Ranks 1 2 3, 1 2.5 2.5, 2 2 2 and 1.5 1.5 3: sums 5.5, 8 and 10.5; ties 6, 24 and 6."""
    rows = history({"a": [9, 9, 4, 6], "b": [5, 2, 4, 6], "c": [2, 2, 4, 1]})
    result = staking.rank_stability(rows, now=at(4))
    assert result["concordance"] == pytest.approx(12 * 12.5 / (16 * 24 - 4 * 36))
    assert result["next_week"] == pytest.approx(1.5 / np.sqrt(2 * 1.5))  # of the first two weeks
    equal = staking.rank_stability(history({"a": [2, 2], "b": [2, 2]}), now=at(2))
    assert np.isnan(equal.params["estimate"]).all()
    alone = staking.rank_stability(history({"a": [2, 3, 1]}), now=at(3))
    assert np.isnan(alone.params["estimate"]).all()
    two = staking.rank_stability(history({"a": [2, 2, 1], "b": [1, 1, 2]}), now=at(3))
    assert (two["concordance"], two["next_week"]) == pytest.approx((1 / 9, 0))


def test_rank_interval_by_hand():
    """Orders abc abc acb abc: without one week each, the means are 0.5, 0.5, 1 and 0.75."""
    rows = history({"a": [9, 9, 9, 9], "b": [5, 5, 2, 5], "c": [2, 2, 5, 2]})
    params = staking.rank_stability(rows, now=at(4), level=0.5).params.set_index("name")
    assert params.attrs["toolkit"]["level"] == 0.5
    half = np.sqrt(3 / 4 * 0.171875) * 0.7648923  # Student's t of 3 degrees at 75 %
    assert params.loc["next_week", "estimate"] == pytest.approx(2 / 3)
    assert params.loc["next_week", "low"] == pytest.approx(2 / 3 - half)
    assert params.loc["next_week", "high"] == pytest.approx(2 / 3 + half)
    two = staking.rank_stability(rows[rows["week"] < times([at(2)])[0]], now=at(4)).params
    assert two[["low", "high"]].isna().all(axis=None)


def test_history_without_validator_is_one_group():
    """The frame states its time, its rows are in any order, and the last row of a week counts."""
    rows = history({"": [0.02, 0.09, 0.04]}).drop(columns="validator")
    again = rows.iloc[[1]].assign(net_apr=0.03, gross_apr=0.04)
    rows = pd.concat([rows.iloc[[2, 1, 0]], again])
    rows.attrs["toolkit"] = {"asked_at": "2025-09-18T00:00:00Z"}
    result = staking.implied_fee(rows, by="week")
    assert result["validator"].tolist() == [""] * 3
    assert result["net_apr"].tolist() == [0.02, 0.03, 0.04]
    assert result["fee"].tolist() == pytest.approx([0.1, 0.25, 0.1])
    assert result["whole"].tolist() == [True, True, False]
    earned = staking.apy(rows)
    assert earned[["n", "partial"]].values.tolist() == [[2, 1]]
    assert earned["partial"].dtype == "int64"
    assert earned["apr"].item() == pytest.approx(0.025)
    assert staking.implied_fee(rows)["fee"].item() == pytest.approx(1 - 0.05 / (0.02 / 0.9 + 0.04))


def test_fee_equals_simulated_commission(simulated):
    """Each validator's fee is known, up to the rounding of rewards to 1e-8 tokens."""
    rows, validators = simulated
    frame = staking.implied_fee(rows).set_index("validator")
    for validator, commission in zip(validators, COMMISSIONS, strict=True):
        truth = commission / 10_000
        assert frame.loc[validator, "fee"] == pytest.approx(truth, abs=1e-9)
        assert frame.loc[validator, "low"] == pytest.approx(truth, abs=1e-8)
    assert (frame["n"] == 8).all()  # ten weeks, of which the first and the running one are partial


def test_rank_stability_html_is_escaped():
    result = staking.rank_stability(history({"<b>": [3, 3, 3], "b": [2, 2, 1]}), now=at(3))
    shown = result._repr_html_()
    assert "concordance" in shown
    assert "<b>" not in shown


def test_wrong_arguments_are_named():
    rows = history({"v": [0.1]})
    ranks = staking.rank_stability(history({"a": [3, 3], "b": [2, 2]}), now=at(2))
    for error, named, call in (
        (KeyError, "'concordance', 'next_week'", lambda: ranks["nonsense"]),
        (ValueError, "^history: .*now=", lambda: staking.apy(rows)),
        (ValueError, "'month'", lambda: staking.implied_fee(rows, now=at(2), by="month")),
        (ValueError, "level", lambda: staking.apy(rows, now=at(2), level=95)),
    ):
        with pytest.raises(error, match=named):
            call()
