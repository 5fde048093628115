"""Cases of ``tk.funding``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, table, trades

USERS = np.array(["0xa", "0xb"])


def payments(n):
    """Return hourly payments: row k is of coin k mod 3, with +1, -2, +3 hundredths in turn."""
    k = np.arange(n)
    rows = table(
        n,
        user=USERS[k % 2],
        coin=np.array(["BTC", "ETH", "flx:TSLA"])[k % 3],
        time=times(MONDAY + HOUR * k),
        usdc=np.array([0.01, -0.02, 0.03])[k % 3],
    )
    return {"funding": rows}


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
    rows = table(
        n,
        user=USERS[k % 2],
        coin="XYZ",
        time=times(MONDAY + HOUR * (k // 2)),
        usdc=(-szi * 100 * rate).round(6),
        szi=szi,
        funding_rate=rate,
    )
    return {"funding": rows}


def accrual_at_scale(frames, result):
    """Each hour adds 1e-3 USD, every third hour 4e-3."""
    count = len(frames["funding"]) // 2
    assert len(result) == count
    assert abs(result["total"].iloc[-1] - 1e-3 * (count + 3 * (count // 3))) < 1e-9


def checked(n):
    """Return the payments of `hours`, every second one of three samples, and hourly fills."""
    k = np.arange(n)
    rows = hours(n)["funding"]
    samples = np.where(k // 2 % 2 == 0, 1, 3)
    rows["usdc"] = (rows["usdc"] * samples).round(6)
    rows["n_samples"] = pd.array(samples, dtype="Int64")
    at, px = MONDAY + HOUR * (k // 2) + 1 + k % 2, np.where(k % 2 == 0, 99.0, 101.0)
    fills = trades(n, at, px=px, dir="Open Long")
    return {"funding": rows, "fills": fills}


def carried(n):
    """Return the rates of `hours`, and samples that cost 11 bps at 100,000 USD."""
    few = 32 if n else 0
    k = np.arange(few)
    usd = np.array([1e3, 1e4, 1e5, 1e6])[k % 4]
    bps = (1 + 10 * np.sqrt(usd / 1e5)).round(2)
    samples = table(
        few,
        timestamp=times(MONDAY + 12 * HOUR * (k // 4)),
        coin="XYZ",
        half_spread_bps=1.0,
        amount_usd=usd,
        buy_slippage_bps=bps,
        sell_slippage_bps=bps,
    )
    return {**hours(n), "samples": samples}


def contexts(n):
    """Return hourly contexts: 10 and 30 bps above the oracle in turn, with a rate of 1e-5."""
    k = np.arange(n)
    rows = table(
        n,
        name="XYZ",
        mark_px=np.where(k % 2 == 0, 100.1, 100.3),
        oracle_px=100.0,
        funding=1e-5,
        open_interest=2.0,
        time=times(MONDAY + HOUR * k),
    )
    return {"contexts": rows}


PAID = "coin time usdc"
PRICED = f"{PAID} szi funding_rate"
RATES = "coin time funding_rate"
SAMPLES = "timestamp coin amount_usd half_spread_bps buy_slippage_bps sell_slippage_bps"
CASES = [
    Case("funding.sums", payments, {"funding": PAID}, at_scale=sums_at_scale),
    Case(
        "funding.sums",
        payments,
        {"funding": PAID},
        note="by day and dex",
        arguments={"by": ["day", "dex"]},
    ),
    Case("funding.accrual", hours, {"funding": PAID}, at_scale=accrual_at_scale),
    Case("funding.implied_oracle", hours, {"funding": PRICED}),
    Case("funding.oracle_check", checked, {"funding": PRICED, "fills": "coin px sz time"}),
    Case("funding.annualised", hours, {"funding": RATES}, arguments={"draws": 99}, rows=120),
    Case(
        "funding.carry",
        carried,
        {"funding": RATES, "samples": SAMPLES},
        arguments={"usd": 1e5, "days": 10, "fee_bps": 1.0, "draws": 99},
        rows=120,
    ),
    Case(
        "funding.hedged_carry",
        carried,
        {"funding": RATES, "samples": SAMPLES},
        arguments={
            "usd": 1e5,
            "days": 10,
            "fee_bps": 1.0,
            "spot_bps": 2.0,
            "spot_fee_bps": 1.0,
            "draws": 99,
        },
        rows=120,
    ),
    Case(
        "funding.basis",
        contexts,
        {"contexts": "name mark_px oracle_px funding open_interest time"},
        arguments={"draws": 19},
        has_identity=False,
        rows=120,
    ),
]
