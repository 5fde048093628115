"""Figures of funding rows that sum several payments: docs/live_service.md, section 5."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import HOUR, ME, MONDAY, times
from tests.analysis.test_slippage_fit import samples_of
from toolkit.funding import annualised, implied_oracle, oracle_check

RECORDING = Path(__file__).parents[3] / "shared" / "recordings" / "userFunding.json"
OLD = 1_682_899_200_000  # 2023-05-01


def hourly_payments(rates, samples, hours, start=MONDAY):
    """Return payments on a long of 2 at an oracle price of 100."""
    count = [1 if number is None else number for number in samples]
    usdc = [-2 * 100 * rate * n for rate, n in zip(rates, count, strict=True)]
    return pd.DataFrame(
        {
            "coin": pd.array(["XYZ"] * len(rates), dtype="str"),
            "time": times(start + HOUR * hour for hour in hours),
            "usdc": usdc,
            "szi": 2.0,
            "funding_rate": rates,
            "n_samples": pd.array(samples, dtype="Int64"),
        }
    )


def test_oracle_price_uses_samples(examples):
    """2.9 / (0.1 * 0.0003333 * 3) = 29,002.90; 0.044263 / (30 * 0.0000369155) = 39.9679."""
    rows = tk.frame("userFunding", examples["5_funding"])
    assert rows["n_samples"].tolist() == [3, pd.NA]
    for given in (rows, rows.assign(user=ME)):
        found = implied_oracle(given).set_index("coin")["oracle_px"]
        assert found["BTC"] == pytest.approx(29_002.9003)
        assert found["HYPE"] == pytest.approx(39.9679, abs=1e-4)


def test_eight_hour_rates_become_hourly():
    """Each payment of 8 hours has 0.0008, three in a row: 0.0001 an hour."""
    rows = hourly_payments([8e-4] * 3, [3] * 3, [0, 24, 48], OLD)
    found = annualised(rows, draws=19).set_index("statistic")
    assert found.loc["mean", "estimate"] == pytest.approx(1e-4 * 8760)
    assert found.loc["mean", ["n", "missing"]].tolist() == [72, 0]
    alone = annualised(rows.iloc[:1], draws=19)
    assert alone["estimate"].tolist() == pytest.approx([1e-4 * 8760] * 3)
    told = annualised(rows, draws=19, interval_hours=4)
    assert told["estimate"].iloc[0] == pytest.approx(2e-4 * 8760)
    with pytest.raises(ValueError, match="interval_hours"):
        annualised(rows, interval_hours=0)
    hourly = hourly_payments([1e-4] * 3, [None] * 3, [0, 1, 2], OLD)
    assert annualised(hourly, draws=19)["estimate"].iloc[0] == pytest.approx(1e-4 * 8760)


def test_intervals_of_2023_are_those_of_coin_and_time():
    """BTC has 0.0008 for 8 hours each; hourly rows of another coin or time change nothing."""
    old = hourly_payments([8e-4] * 4, [None] * 4, [0, 8, 16, 24], OLD)
    late = hourly_payments([1e-4] * 2, [None] * 2, [24 * 200, 24 * 200 + 1], OLD)
    for rows in (old, pd.concat([old, late.assign(coin="ABC")]), pd.concat([late, old])):
        found = annualised(rows, draws=19).set_index(["coin", "statistic"])
        assert found.loc[("XYZ", "mean"), "estimate"] == pytest.approx(0.876)
    alone = annualised(old.iloc[:1], draws=19)
    assert alone["estimate"].tolist() == pytest.approx([0.876] * 3)


def test_sum_of_payments_does_not_prove_its_price():
    """Sizes 60 and -20 at 1e-5 and 2e-5 and a price of 10: the means 20 and 1.5e-5 imply 3.3."""
    moved = hourly_payments([1.5e-5], [2], [0]).assign(szi=20.0, usdc=-10 * (6e-4 - 4e-4))
    row = implied_oracle(moved).iloc[0]
    assert row["oracle_px"] == pytest.approx(10 / 3)
    assert pd.isna(row["agree"])
    single = hourly_payments([1e-5], [1], [0])
    assert implied_oracle(single)["agree"].tolist() == [True]
    assert implied_oracle(pd.concat([single, moved]))["agree"].tolist() == [False]


def test_carry_uses_hourly_rate():
    bps = [2.0, 4.16, 11.0, 32.6]
    samples = samples_of([0] * 4, [1e3, 1e4, 1e5, 1e6], bps, bps)
    rows = hourly_payments([8e-4] * 3, [3] * 3, [0, 24, 48], OLD)
    result = tk.funding.carry(rows, samples, 1e5, days=1, fee_bps=0.0, draws=19)
    assert result["funding_bps"].item() == pytest.approx(24.0)  # 24 hours of 1 bp


def test_oracle_check_by_hand():
    """ABC pays at hours 9 and 12, XYZ at 12 for three hours; the fills are at any time.

    XYZ: from hour 9 to 13 at a mean of (40 * 1 + 44 * 3) / 4 = 43, and an oracle price of 43.
    ABC at 12: from hour 11 on alone, 5 at 10. ABC at 9: 10 hours and 1 ms early, so no fill.
    """
    hours = np.array([12, 12, 9])
    rows = pd.DataFrame(
        {"coin": ["XYZ", "ABC", "ABC"], "time": times(MONDAY + HOUR * hours + 5), "szi": -2.0,
         "funding_rate": [1e-4, -1e-3, 1e-3], "n_samples": [3.0, np.nan, 1.0]}
    )  # fmt: skip
    rows["usdc"] = [3 * 43 * 2e-4, -5 * 2e-3, 2e-3 * 2.4]
    trades = [
        ("XYZ", 40.0, 1.0, 9 * HOUR), ("XYZ", 44.0, 3.0, 13 * HOUR),
        ("XYZ", 90.0, 7.0, 9 * HOUR - 1), ("XYZ", 90.0, 7.0, 13 * HOUR + 1),
        ("ABC", 10.0, 5.0, 11 * HOUR), ("ABC", 99.0, 5.0, 11 * HOUR - 1),
        ("ABC", np.nan, 5.0, 12 * HOUR), ("@ABC", 99.0, 5.0, 12 * HOUR),
    ]  # fmt: skip
    fills = pd.DataFrame(trades, columns=["coin", "px", "sz", "time"])
    fills = fills.assign(time=times(MONDAY + fills["time"])).iloc[::-1]
    found = oracle_check(rows, fills, tolerance=0.2)
    assert {name: str(dtype) for name, dtype in found.dtypes.items()} == {
        "coin": "str", "hour": "datetime64[ms, UTC]", "oracle_px": "float64", "fill_px": "float64",
        "fills": "int64", "ratio": "float64", "off_by": "float64", "agrees": "boolean",
    }  # fmt: skip
    assert found["coin"].tolist() == ["ABC", "ABC", "XYZ"]
    assert list(found["hour"]) == list(times(MONDAY + HOUR * np.array([9, 12, 12])))
    assert found["oracle_px"].tolist() == pytest.approx([2.4, 5.0, 43.0])
    assert found["fills"].tolist() == [0, 1, 2]
    assert found["fill_px"].tolist()[1:] == pytest.approx([10.0, 43.0])
    assert found["ratio"].tolist()[1:] == pytest.approx([0.5, 1.0])
    assert found["off_by"].tolist()[1:] == pytest.approx([0.5, 1.0])
    assert found["agrees"].tolist()[1:] == [False, True]
    assert found.loc[0, ["fill_px", "ratio", "off_by", "agrees"]].isna().all()
    # Of 2.5 no whole number is within a tenth: the ratio itself is the answer.
    wide = rows.assign(usdc=2.5 * rows["usdc"])
    assert oracle_check(wide, fills)["off_by"].iloc[2] == pytest.approx(2.5)
    # Hours 5 to 13 have ABC at 10 and 99, 54.5 on average: 9.08 times an oracle price of 6.
    near = oracle_check(wide, fills, window_hours=4)
    assert near["off_by"].iloc[0] == pytest.approx(1 / 9)
    facts = found.attrs["toolkit"]
    assert (facts["helper"], facts["tolerance"]) == ("funding.oracle_check", 0.2)
    assert list(facts["inputs"]) == ["funding", "fills"]
    for wrong in ("tolerance", "window_hours"):
        with pytest.raises(ValueError, match=wrong):
            oracle_check(rows, fills, **{wrong: 0})
    with pytest.raises(tk.errors.MissingColumns, match=r"^fills: .*sz"):
        oracle_check(rows, fills.drop(columns="sz"))


def test_wrong_signs_imply_negative_price():
    """A long that receives a positive rate implies a price below 0, wrong by the factor -1."""
    rows = hourly_payments([1e-5, -3e-5], [None, 2], [0, 4]).assign(usdc=[0.002, -0.012])
    assert implied_oracle(rows)["oracle_px"].tolist() == pytest.approx([-100.0, -100.0])
    fills = pd.DataFrame({"coin": "XYZ", "px": [101.0], "sz": 3.0, "time": times([MONDAY])})
    checked = oracle_check(rows, fills, window_hours=6)
    assert checked["off_by"].tolist() == [-1.0, -1.0]
    assert not checked["agrees"].any()
    mixed = pd.concat([hourly_payments([1e-5], [None], [0]), rows.head(1)])
    assert not implied_oracle(mixed)["agree"].item()


def test_simulated_samples_imply_oracle():
    """Rows that sum three hours also imply a price near that of the fills."""
    session = tk.local(seed=7, size="tiny", default=False)
    builders = [session.world["examples"]["BUILDER"]]
    rows = tk.many(tk.builder_approved_funding_by_time, builders, "30d", session=session)
    users = session.world["users"]
    fills = tk.many(tk.user_fills_by_time, users, "30d", session=session)
    checked = oracle_check(rows, fills, window_hours=2)
    assert checked["agrees"].dropna().all()
    assert checked["agrees"].notna().sum() > 20


def test_recorded_rows_imply_market_price():
    """For one account in April and May 2023, bitcoin cost between 27,000 and 30,000 USD."""
    if not RECORDING.exists():
        pytest.skip("no recordings")
    rows = tk.frame("userFunding", json.loads(RECORDING.read_text())["response"])
    found = implied_oracle(rows)
    bitcoin = found[found["coin"] == "BTC"]["oracle_px"]
    assert bitcoin.between(27_000, 30_000).all()
    assert len(bitcoin) == 16
    mean = annualised(rows, draws=19).set_index(["coin", "statistic"]).loc[("BTC", "mean")]
    # Fifteen rows of three payments and one row of one payment, each for eight hours.
    assert mean["n"] == 15 * 24 + 8
    mine = rows[rows["coin"] == "BTC"]
    weight = mine["n_samples"].astype("float64")
    wanted = 8760 * (mine["funding_rate"] / 8 * weight).sum() / weight.sum()
    assert mean["estimate"] == pytest.approx(wanted)
