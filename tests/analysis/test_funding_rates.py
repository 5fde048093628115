"""Implied oracle prices, yearly rates and carry of funding."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import stats

from tests.analysis.interval_coverage import hold_share
from tests.rules.reference import funding_payment
from toolkit.errors import MissingColumns
from toolkit.funding import annualised, carry, hedged_carry, implied_oracle
from toolkit.funding._rates import trimmed_means
from toolkit.slippage import fit
from toolkit.slippage._cost import expected_cost
from toolkit.statistics import bootstrap_interval, draw_blocks

from .examples import HOUR, ME, MONDAY, times
from .test_slippage_fit import books, samples_of


def rows(usdc, hours, coin="BTC"):
    time = times(MONDAY + HOUR * np.array(hours))
    return pd.DataFrame({"user": ME, "coin": coin, "time": time, "usdc": usdc})


def paid(usdc, szi, rate):
    return rows(usdc, [0] * len(usdc)).assign(szi=szi, funding_rate=rate)


def test_implied_oracle_of_mixed_rows():
    """Two coins and hours, with sums of payments, signs of both kinds, and rows without a figure.

    B, hour 1: paid 0.006 for 3 payments of 2e-5 on 1 and 0.0101 of 1e-4 on 1: 0.0161 / 1.6e-4.
    """
    frame = pd.DataFrame(
        [
            ("B", HOUR + 7, -0.006, 1.0, 2e-5, 3.0),
            ("B", 2 * HOUR - 1, 0.0101, -1.0, 1e-4, None),
            ("B", 2 * HOUR, -0.008, -4.0, -2e-5, 0.0),
            ("A", HOUR, 0.5, 10.0, 1e-4, 1.0),
            ("A", HOUR, 0.7, None, 1e-4, 1.0),
            ("A", HOUR, 0.8, 10.0, None, 1.0),
        ],
        columns=["coin", "ms", "usdc", "szi", "funding_rate", "n_samples"],
    )
    frame = frame.assign(time=times(MONDAY + frame.pop("ms")))
    found = implied_oracle(frame)
    assert list(found.columns) == ["coin", "hour", "oracle_px", "low", "high", "agree", "n"]
    assert found["coin"].tolist() == ["A", "B", "B"]
    assert list(found["hour"]) == list(times(MONDAY + HOUR * np.array([1, 1, 2])))
    assert found["oracle_px"].tolist() == pytest.approx([-500, 0.0161 / 1.6e-4, 100])
    # A digit of a millionth each: three for the sum of three payments.
    assert found["low"].tolist() == pytest.approx([-500.001, 100.99, 99.9875])
    assert found["high"].tolist() == pytest.approx([-499.999, 100.05, 100.0125])
    assert found["agree"].tolist() == [True, False, True]
    assert found["n"].tolist() == [1, 2, 1]
    for wrong in ("coin", "szi"):
        with pytest.raises(MissingColumns, match=rf"^funding: .*{wrong}"):
            implied_oracle(frame.drop(columns=wrong))


def test_empty_payments_imply_no_price():
    nan = float("nan")
    frame = paid([-0.002, 0.0, 0.0, nan], [2, 0, 5, 5], [1e-5, 1e-5, 0, 1e-5])
    assert implied_oracle(frame)["n"].tolist() == [1]
    assert len(implied_oracle(frame.iloc[1:])) == 0


@given(
    st.integers(1, 10**7),
    st.lists(st.integers(-(10**6), 10**6).filter(bool), min_size=1, max_size=6, unique=True),
    st.integers(-50_000, 50_000).filter(bool),
)
def test_rounded_payments_of_one_price_agree(oracle, sizes, rate):
    """Rounded payments (sizes in 0.01, prices in cents, rates in 1e-9) agree."""
    usdc = [funding_payment(szi, oracle, rate, 2 + 2 + 9) / 1e6 for szi in sizes]
    frame = paid(usdc, [szi / 100 for szi in sizes], [rate / 1e9] * len(sizes))
    result = implied_oracle(frame).iloc[0]
    assert result["agree"]
    assert result["low"] <= oracle / 100 * (1 + 1e-12)
    assert oracle / 100 <= result["high"] * (1 + 1e-12)


def test_simulated_payments_agree(world, tables):
    """Payments of all accounts imply the oracle price of each coin and hour."""
    together = tables.funding[tables.funding["user"].isin(world.expected)].reset_index(drop=True)
    result = implied_oracle(together)
    assert result["agree"].all()
    assert result["n"].max() > 3
    assert result["n"].sum() > 0.5 * len(together)
    other = together.copy()
    other.loc[0, "szi"] = other.loc[0, "szi"] * 2
    assert (~implied_oracle(other)["agree"]).sum() == 1


def test_implied_oracle_of_recorded_payments(recorded):
    answer = recorded("userFunding")
    deltas = [row["delta"] for row in answer]
    frame = pd.DataFrame(deltas).rename(columns={"fundingRate": "funding_rate"})
    frame["time"] = times(row["time"] for row in answer)
    result = implied_oracle(frame.astype(dict.fromkeys(["usdc", "szi", "funding_rate"], float)))
    assert result["agree"].all()
    assert (result["low"] <= result["oracle_px"]).all()
    assert (result["oracle_px"] <= result["high"]).all()


def rates(values, coin="XYZ"):
    hours = times(MONDAY + HOUR * np.arange(len(values)))
    return pd.DataFrame({"coin": coin, "time": hours, "funding_rate": values})


def test_annualised_by_hand():
    """Rates of 1 to 10 and 100 (1e-6): the mean is 14.09, the mean of 2 to 10 is 6."""
    frame = annualised(rates(np.array([*range(1, 11), 100]) * 1e-6)).set_index("statistic")
    year = 24 * 365 * 1e-6
    wanted = {"mean": 155 / 11 * year, "trimmed": 6 * year, "median": 6 * year}
    assert frame["estimate"].to_dict() == pytest.approx(wanted)
    assert frame[["low", "high"]].isna().all().all()  # one block of 24 hours
    assert frame["n"].tolist() == [11] * 3


@given(
    st.lists(st.sampled_from([-3e-5, 1.25e-5, 1.3e-5, 4e-5]), min_size=1, max_size=50),
    st.floats(0, 0.49),
    st.integers(1, 9),
)
def test_trimmed_means_equal_sorted_draws(values, trim, block):
    """Sorting the rates of each draw gives the same mean, trimmed mean and median."""
    some, hours = np.array(values), len(values)
    cut = int(trim * hours)
    found = trimmed_means(some, [0, cut, (hours - 1) // 2], block, 20, seed=3)
    places = draw_blocks(np.random.default_rng(3), 20, hours, block)
    rows = np.sort(np.vstack([some, some[places]]), axis=1)
    kept = rows[:, cut : hours - cut]
    wanted = [rows.mean(axis=1), kept.mean(axis=1), np.median(rows, axis=1)]
    assert np.allclose(found, np.stack(wanted, axis=1), rtol=1e-12, atol=1e-19)


def test_annualised_of_mixed_rows_by_hand():
    """Hour 2 has two rates, hours 4 to 6 one row of three samples, and hour 3 none."""
    frame = pd.DataFrame(
        {
            "coin": ["B", "A", "A", "A", "A", "A", "A"],
            "time": times(MONDAY + HOUR * np.array([5, 2, 6, 0, 2, 1, 7]) + 1),
            "funding_rate": [-2e-5, 1e-5, 4e-5, 3e-5, 5e-5, -6e-5, np.nan],
            "n_samples": [1.0, 1.0, 3.0, np.nan, 1.0, 1.0, 1.0],
        }
    )
    options = {"block_hours": 2, "level": 0.8, "draws": 60, "seed": 3}
    result = annualised(frame, trim=0.2, **options)
    hourly = np.array([3e-5, -6e-5, 3e-5, 4e-5, 4e-5, 4e-5])
    assert result["coin"].tolist() == ["A"] * 3 + ["B"] * 3
    assert result["statistic"].tolist() == ["mean", "trimmed", "median"] * 2
    assert result["n"].tolist() == [6] * 3 + [1] * 3
    assert result["missing"].tolist() == [1] * 3 + [0] * 3
    assert result["covered"].tolist() == [6 / 7] * 3 + [1] * 3
    estimates = np.array([12e-5 / 6, 14e-5 / 4, 3.5e-5, -2e-5, -2e-5, -2e-5]) * 8760
    assert result["estimate"].tolist() == pytest.approx(estimates, rel=1e-12)
    draws = trimmed_means(hourly, [0, 1, 2], 2, 60, 3)[1:].T
    ends = [bootstrap_interval(each, 3, 0.8) for each in draws]
    wanted = np.array(ends) * 8760
    assert result[["low", "high"]].to_numpy()[:3] == pytest.approx(wanted, rel=1e-12)
    assert result[["low", "high"]].iloc[3:].isna().all(axis=None)
    assert result.attrs["toolkit"]["level"] == 0.8
    eight = annualised(rates([8e-5] * 2).iloc[::2], interval_hours=8, **options)
    assert eight["n"].tolist() == [8] * 3
    few = trimmed_means(hourly, [0, 2], 2, 7, 3)
    assert few.shape == (8, 2)
    assert len(annualised(frame, trim=0)) == 6


COSTS = fit(books(6, half=1.0, a=10.0, k=0.5), draws=99)
SEVERAL = books(6, sigma=0.1)
NOISY = fit(SEVERAL, draws=99)


@pytest.mark.parametrize(("side", "sign", "legs"), [
    ("short", 1, ("sell", "buy")), ("long", -1, ("buy", "sell")),
])  # fmt: skip
def test_carry_equals_formula_in_each_draw(side, sign, legs):
    """Net = funding of all hours less both orders and both fees, also in each draw."""
    values = 2e-5 + 1e-5 * np.sin(np.arange(96.0))
    result = carry(
        rates(values), NOISY, 2e5, days=3, fee_bps=1.5, side=side, block_hours=12, level=0.8,
        draws=99, seed=5,
    )  # fmt: skip
    mean = trimmed_means(values, [0], 12, 99, 6)[:, 0]
    earned = sign * mean * 72 * 1e4
    costs = [expected_cost(NOISY.means["XYZ", leg], 2e5) for leg in legs]
    orders = [-bps for bps, _, _ in costs]
    net = earned + orders[0] + orders[1] - 3
    low, high = bootstrap_interval(net[1:], min(8, costs[0][1]), 0.8)
    assert low < high
    costs = 3 - orders[0][0] - orders[1][0]
    hourly = earned[0] / 72
    wanted = {
        "coin": "XYZ", "side": side, "amount_usd": 2e5, "hours": 72, "funding_bps": earned[0],
        "entry_bps": orders[0][0], "exit_bps": orders[1][0], "fees_bps": -3, "net_bps": net[0],
        "low": low, "high": high, "net_usd": net[0] * 20, "net_annual": net[0] / 1e4 / 72 * 8760,
        "break_even_hours": costs / hourly if sign > 0 else float("nan"), "range": "between",
        "n": 96,
    }  # fmt: skip
    found = result.iloc[0].to_dict()
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        exact = isinstance(value, str)
        assert found[name] == (value if exact else pytest.approx(value, rel=1e-12, nan_ok=True))
    assert result.attrs["toolkit"]["level"] == 0.8
    free = carry(rates(values), NOISY, 2e5, days=3, fee_bps=-500, side=side, draws=99)
    assert free["break_even_hours"].tolist() == [0]
    fee = (0.5 + orders[0][0] + orders[1][0]) / 2
    cheap = carry(rates(values), NOISY, 2e5, days=3, fee_bps=fee, side=side, draws=99)
    soon = cheap["break_even_hours"].tolist()
    assert soon == pytest.approx([0.5 / hourly if sign > 0 else float("nan")], nan_ok=True)
    none = carry(rates(values * 0), NOISY, 2e5, days=3, fee_bps=1, side=side, draws=99)
    assert none["break_even_hours"].isna().all()


def test_carry_interval_coverage():
    """The planted net lies in the interval; rates and costs err by about as much."""
    samples = 60
    hits = round(samples * hold_share("carry", samples, seed=3))
    low, high = stats.binom.ppf([0.001, 0.999], samples, 0.95)
    assert low <= hits <= high, hits


def test_carry_exits_on_other_side():
    """At 1e5 a buy costs 11 bps and a sale 31 bps: a short sells first, a long buys first."""
    usd = np.array([1e3, 1e4, 1e5, 1e6])
    buy, sell = ((1 + a * (usd / 1e5) ** 0.5).round(4) for a in (10, 30))
    samples = samples_of([0] * 4, usd, buy, sell)
    hours = rates([1e-4] * 48)
    for side, wanted in (("short", [24, -31, -11]), ("long", [-24, -11, -31])):
        result = carry(hours, samples, 1e5, days=1, fee_bps=0, side=side, draws=19).iloc[0]
        parts = result[["funding_bps", "entry_bps", "exit_bps"]].tolist()
        assert parts == pytest.approx(wanted, abs=0.05)
        assert result["range"] == "sampled"
    of_samples, of_fit = (
        carry(hours, each, 0.5, days=1, fee_bps=0, draws=19, seed=3)
        for each in (SEVERAL, fit(SEVERAL, draws=19, seed=3))
    )
    pd.testing.assert_frame_equal(of_samples, of_fit)
    assert of_samples["low"].notna().all()


def test_wrong_arguments_of_rates_are_named():
    frame = rates([1e-5])
    for wrong in (
        {"interval_hours": 0}, {"trim": -0.1}, {"trim": 0.5}, {"block_hours": 0}, {"level": 0},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            annualised(frame, **wrong)
    for missing in (frame.assign(funding_rate="1"), rows([1.0], [0])):
        with pytest.raises(MissingColumns, match=r"^funding: .*funding_rate"):
            annualised(missing)
    for wrong in ({"side": "up"}, {"days": 0}, {"usd": -1}, {"draws": 9}):
        arguments = {"usd": 1e5, "days": 1, "fee_bps": 1.0, "draws": 99} | wrong
        with pytest.raises(ValueError, match=next(iter(wrong))):
            carry(frame, COSTS, **arguments)


def test_hedged_carry_adds_the_spot_leg():
    """Carry less two spot orders of 6 bps and two fees of 7, on 1e5 of spot and 2e4 of margin."""
    both = pd.concat([rates([1e-4] * 48), rates([1e-4] * 48, "ABC")])
    options = {"days": 10, "fee_bps": 4.5, "draws": 99}
    perp = carry(both, COSTS, 1e5, **options).set_index("coin").loc["XYZ"]
    basis = {"XYZ": 5.0}  # ABC has none
    made = hedged_carry(
        both, COSTS, 1e5, spot_bps=6.0, spot_fee_bps=7.0, basis_bps=basis, leverage=5, **options
    )
    row = made.set_index("coin").loc["XYZ"]
    parts = ["funding_bps", "basis_bps", "perp_bps", "spot_bps", "fees_bps"]
    assert row[parts].tolist() == pytest.approx(
        [240, 5, perp["entry_bps"] + perp["exit_bps"], -12, -23]
    )
    assert row["net_bps"] == pytest.approx(row[parts].sum())
    assert [row["low"], row["high"]] == pytest.approx([perp["low"] - 21, perp["high"] - 21])
    assert row["capital_usd"] == pytest.approx(1.2e5)
    assert row["net_usd"] == pytest.approx(row["net_bps"] * 10)
    assert row["net_annual"] == pytest.approx(row["net_usd"] / 1.2e5 * 36.5)
    assert row["break_even_hours"] == pytest.approx(240 - row["net_bps"])  # funding is 1 bp an hour
    assert made.set_index("coin").loc["ABC", ["basis_bps", "net_bps"]].isna().all()
    with pytest.raises(ValueError, match="leverage"):
        hedged_carry(both, COSTS, 1e5, spot_bps=6.0, spot_fee_bps=7.0, leverage=0, **options)
