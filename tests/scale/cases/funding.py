"""Cases of ``tk.funding``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, same


def payments(n):
    """Return hourly payments: row k is of coin k mod 3, with +1, -2, +3 hundredths in turn."""
    k = np.arange(n)
    return {
        "funding": pd.DataFrame(
            {
                "user": pd.array(np.array(["0xa", "0xb"])[k % 2], dtype="str"),
                "coin": pd.array(np.array(["BTC", "ETH", "flx:TSLA"])[k % 3], dtype="str"),
                "time": times(MONDAY + HOUR * k),
                "usdc": np.array([0.01, -0.02, 0.03])[k % 3],
            }
        )
    }


def sums_at_scale(frames, result):
    n = len(frames["funding"])
    rows = result.set_index("coin")
    for place, (coin, each) in enumerate((("BTC", 0.01), ("ETH", -0.02), ("flx:TSLA", 0.03))):
        count = (n - place + 2) // 3
        assert rows.loc[coin, "payments"] == count
        assert abs(rows.loc[coin, "net"] - each * count) < 1e-6


def hours(n):
    """Return rows: row k is of hour k div 2 and account k mod 2, long 2 or short 3 at 100 USD.

    The rate is 1e-5, every third hour 4e-5.
    """
    k = np.arange(n)
    rate = np.where(k // 2 % 3 == 2, 4e-5, 1e-5)
    szi = np.where(k % 2 == 0, 2.0, -3.0)
    return {
        "funding": pd.DataFrame(
            {
                "user": pd.array(np.array(["0xa", "0xb"])[k % 2], dtype="str"),
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "time": times(MONDAY + HOUR * (k // 2)),
                "usdc": (-szi * 100 * rate).round(6),
                "szi": szi,
                "funding_rate": rate,
            }
        )
    }


def accrual_at_scale(frames, result):
    """Each hour adds 1e-3 USD, every third hour 4e-3."""
    count = len(frames["funding"]) // 2
    assert len(result) == count
    assert abs(result["total"].iloc[-1] - 1e-3 * (count + 3 * (count // 3))) < 1e-9


def oracle_at_scale(frames, result):
    assert len(result) == len(frames["funding"]) // 2
    assert np.allclose(result["oracle_px"], 100)
    assert result["agree"].all()


def check_at_scale(frames, result):
    assert len(result) == len(frames["funding"]) // 2
    assert np.allclose(result["oracle_px"], 100)
    assert result["agrees"].all()


def checked(n):
    """Return the payments of `hours`, every second one of three samples, and hourly fills."""
    k = np.arange(n)
    rows = hours(n)["funding"]
    samples = np.where(k // 2 % 2 == 0, 1, 3)
    rows["usdc"] = (rows["usdc"] * samples).round(6)
    rows["n_samples"] = pd.array(samples, dtype="Int64")
    fills = pd.DataFrame(
        {
            "coin": pd.array(["XYZ"] * n, dtype="str"),
            "px": np.where(k % 2 == 0, 99.0, 101.0),
            "sz": 2.0,
            "side": pd.array(["B"] * n, dtype="str"),
            "time": times(MONDAY + HOUR * (k // 2) + 1 + k % 2),
            "dir": pd.array(["Open Long"] * n, dtype="str"),
            "tid": 1 + k,
        }
    )
    return {"funding": rows, "fills": fills}


def annualised_at_scale(frames, result):
    """The mean is 2e-5, the median 1e-5.

    The trimmed mean is ((2/3 - 0.1) * 1e-5 + (1/3 - 0.1) * 4e-5) / 0.8 = 1.875e-5.
    """
    found = result.set_index("statistic")["estimate"] / 8760
    wanted = [2e-5, 1.875e-5, 1e-5]
    assert np.allclose(found[["mean", "trimmed", "median"]], wanted, rtol=1e-3)
    assert (result["missing"] == 0).all()


def carried(n):
    """Return the rates of `hours`, and samples that cost 11 bps at 100,000 USD."""
    usd = np.array([1e3, 1e4, 1e5, 1e6])
    k = np.arange(32 if n else 0)
    bps = (1 + 10 * np.sqrt(usd[k % 4] / 1e5)).round(2)
    samples = pd.DataFrame(
        {
            "timestamp": times(MONDAY + 12 * HOUR * (k // 4)),
            "coin": pd.array(["XYZ"] * len(k), dtype="str"),
            "half_spread_bps": 1.0,
            "amount_usd": usd[k % 4],
            "buy_slippage_bps": bps,
            "sell_slippage_bps": bps,
        }
    )
    return {**hours(n), "samples": samples}


def carry_at_scale(frames, result):
    """240 hours at 2e-5 are 48 bps, less 11 bps twice and 1 bps twice."""
    assert np.allclose(result["net_bps"], 48 - 24, atol=0.1)


def contexts(n):
    """Return hourly contexts: 10 and 30 bps above the oracle in turn, with a rate of 1e-5."""
    k = np.arange(n)
    return {
        "contexts": pd.DataFrame(
            {
                "name": pd.array(["XYZ"] * n, dtype="str"),
                "mark_px": np.where(k % 2 == 0, 100.1, 100.3),
                "oracle_px": 100.0,
                "funding": 1e-5,
                "open_interest": 2.0,
                "time": times(MONDAY + HOUR * k),
            }
        )
    }


def basis_at_scale(frames, result):
    assert result["n"].eq(len(frames["contexts"])).all()
    assert np.allclose(result["estimate"], [20, -1, 0], atol=1e-3)


CASES = [
    Case(
        helper="funding.sums",
        frames=payments,
        at_scale=sums_at_scale,
        needed={"funding": ("coin", "time", "usdc")},
        doubled=same,
    ),
    Case(
        helper="funding.sums",
        note="by day and dex",
        arguments={"by": ["day", "dex"]},
        frames=payments,
        at_scale=lambda frames, result: _all_rows(frames["funding"], result),
        needed={"funding": ("coin", "time", "usdc")},
        doubled=same,
    ),
    Case(
        helper="funding.accrual",
        frames=hours,
        at_scale=accrual_at_scale,
        needed={"funding": ("coin", "time", "usdc")},
        doubled=same,
    ),
    Case(
        helper="funding.implied_oracle",
        frames=hours,
        at_scale=oracle_at_scale,
        needed={"funding": ("coin", "time", "usdc", "szi", "funding_rate")},
        doubled=same,
    ),
    Case(
        helper="funding.oracle_check",
        frames=checked,
        at_scale=check_at_scale,
        needed={
            "funding": ("coin", "time", "usdc", "szi", "funding_rate"),
            "fills": ("coin", "px", "sz", "time"),
        },
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="funding.annualised",
        frames=hours,
        arguments={"draws": 99},
        at_scale=annualised_at_scale,
        needed={"funding": ("coin", "time", "funding_rate")},
        doubled=same,
        gives="pandas",
        rows=120,
    ),
    Case(
        helper="funding.carry",
        frames=carried,
        arguments={"usd": 1e5, "days": 10, "fee_bps": 1.0, "draws": 99},
        at_scale=carry_at_scale,
        needed={
            "funding": ("coin", "time", "funding_rate"),
            "samples": (
                "timestamp",
                "coin",
                "amount_usd",
                "half_spread_bps",
                "buy_slippage_bps",
                "sell_slippage_bps",
            ),
        },
        doubled=same,
        gives="pandas",
        rows=120,
    ),
    Case(
        helper="funding.basis",
        frames=contexts,
        arguments={"draws": 19},
        at_scale=basis_at_scale,
        needed={"contexts": ("name", "mark_px", "oracle_px", "funding", "open_interest", "time")},
        doubled=same,
        gives="pandas",
        has_identity=False,
        table=lambda result: result.params,
        rows=120,
    ),
]


def _all_rows(rows, result):
    assert result["payments"].sum() == len(rows)
