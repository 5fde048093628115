"""Cases of ``tk.execution``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import DAY, MONDAY, times
from tests.scale.case import Case, same

NEEDED = {
    "fills": ("coin", "px", "sz", "side", "time", "crossed"),
    "prices": ("coin", "time", "mid_px"),
}


def trades(n):
    """Return an hourly buy of 2 at 101, with mid 100 a second before and 102 a minute after."""
    at = MONDAY + 3_600_000 * np.arange(n)
    around = np.concatenate([at - 1000, at + 60_000])
    return {
        "fills": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "px": 101.0,
                "sz": 2.0,
                "side": pd.array(["B"] * n, dtype="str"),
                "time": times(at),
                "crossed": np.arange(n) % 2 == 0,
                "tid": 1 + np.arange(n),
            }
        ),
        "prices": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * 2 * n, dtype="str"),
                "time": times(around),
                "mid_px": np.repeat([100.0, 102.0], n),
            }
        ),
    }


def quality_at_scale(frames, result):
    """Each fill loses 1 USD for each of 2: 100 bps."""
    assert result["improvement_usd"].sum() == -2.0 * len(frames["fills"])
    assert np.allclose(result["improvement_bps"], -100)
    assert (result["covered"] == 1).all()


def markout_at_scale(frames, result):
    """The markout is (102 - 101) / 101 after a minute and missing after ten seconds."""
    assert result["n"].tolist() == [0, len(frames["fills"]) // 2] * 2
    assert np.allclose(result["estimate"].dropna(), 1e4 / 101)
    assert result["clusters"].max() == 1 + (len(frames["fills"]) - 1) * 3_600_000 // DAY


def spreads_at_scale(frames, result):
    assert result["name"].tolist() == ["effective", "realised", "impact"] * 2
    assert np.allclose(result["estimate"], [100, -100, 200] * 2)


def tape(n):
    """Return a trade of 2 every second: two buys at 100.01, two sells at 99.99, and so on."""
    bought = np.arange(n) % 4 < 2
    return {
        "fills": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "px": np.where(bought, 100.01, 99.99),
                "sz": 2.0,
                "side": pd.array(np.where(bought, "B", "A"), dtype="str"),
                "time": times(MONDAY + 1000 * np.arange(n)),
                "crossed": True,
                "tx_index": 3,
                "tid": 1 + np.arange(n),
            }
        )
    }


def both_sides(n):
    """Return trades of 1: taker k % 6 buys from one maker at 100; a minute later the mid is 101."""
    k = np.arange(n) // 2
    taken = np.arange(n) % 2 == 0
    user = np.where(taken, k % 6, 9)
    at = MONDAY + 7_200_000 * k
    count = -(-n // 2)
    return {
        "fills": pd.DataFrame(
            {
                "user": pd.array([f"0x{each:040x}" for each in user], dtype="str"),
                "coin": pd.array(["XYZ"] * n, dtype="str"),
                "px": 100.0,
                "sz": 1.0,
                "side": pd.array(np.where(taken, "B", "A"), dtype="str"),
                "time": times(at),
                "crossed": taken,
                "tid": 1 + k,
                "oid": 1 + np.arange(n),
            }
        ),
        "prices": pd.DataFrame(
            {
                "coin": pd.array(["XYZ"] * count, dtype="str"),
                "time": times(MONDAY + 7_200_000 * np.arange(count) + 60_000),
                "mid_px": 101.0 + 0.01 * (np.arange(count) % 5),
            }
        ),
    }


def pairs_at_scale(frames, result):
    assert len(result) == 6
    assert result["trades"].sum() == len(frames["fills"]) // 2
    assert (result["maker"] == f"0x{9:040x}").all()
    assert np.allclose(result["gain_bps"], 102, atol=0.5)


def toxicity_at_scale(frames, result):
    assert len(result) == 6
    assert result["fills"].sum() == len(frames["fills"]) // 2
    assert np.allclose(result["shrunk_bps"], 102, atol=0.5)
    assert (result["clusters"] == result["fills"]).all()


def copies_at_scale(frames, result):
    """The fill costs 101, the copy a minute later 102, the last mid is 102."""
    n = len(frames["fills"])
    assert result["priced"].tolist() == [0, n]
    assert np.isclose(result["own_usd"].iloc[1], 2.0 * n)
    assert np.isclose(result["delay_usd"].iloc[1], -2.0 * n)
    assert np.isclose(result["slippage_usd"].iloc[1], -2.04 * n)


def parents(n):
    """Return orders to buy 2 at a mid of 100: 1 is filled at 102 after a mid of 101, then canceled.

    The mid at the end is 104. The fee is 0.5.
    """
    at = MONDAY + 600_000 * np.arange(n)
    orders = {
        "oid": np.repeat(np.arange(n), 2),
        "coin": pd.array(["XYZ"] * 2 * n, dtype="str"),
        "side": pd.array(["B"] * 2 * n, dtype="str"),
        "orig_sz": 2.0,
        "sz": 1.0,
        "status": pd.array(["open", "canceled"] * n, dtype="str"),
        "timestamp": times(np.repeat(at, 2)),
        "status_timestamp": times(np.repeat(at, 2) + np.tile([0, 90_000], n)),
    }
    fills = {
        "oid": np.arange(n),
        "coin": pd.array(["XYZ"] * n, dtype="str"),
        "px": 102.0,
        "sz": 1.0,
        "side": pd.array(["B"] * n, dtype="str"),
        "time": times(at + 60_000),
        "crossed": True,
        "fee": 0.5,
        "tid": 1 + np.arange(n),
    }
    mids = {
        "coin": pd.array(["XYZ"] * 3 * n, dtype="str"),
        "time": times(np.repeat(at, 3) + np.tile([-1000, 50_000, 89_000], n)),
        "mid_px": np.tile([100.0, 101.0, 104.0], n),
    }
    frames = {"orders": orders, "fills": fills, "prices": mids}
    return {name: pd.DataFrame(columns) for name, columns in frames.items()}


def shortfall_at_scale(frames, result):
    n = len(frames["fills"])
    assert result["name"].tolist() == ["delay", "trading", "opportunity", "fees", "total"]
    assert np.allclose(result["usd"], np.array([-1.0, -1.0, -4.0, -0.5, -6.5]) * n)
    assert np.allclose(result["estimate"], [-50.0, -50.0, -200.0, -25.0, -325.0])


def sized_orders(n):
    """Return orders of 1, 4 and 16 in turn; they move the price by 1, 2 and 4 bps of 100."""
    k = np.arange(n)
    at = MONDAY + 3_600_000 * k
    moved = 2.0 ** (k % 3)
    fills = {
        "oid": 1 + k,
        "coin": pd.array(["XYZ"] * n, dtype="str"),
        "px": 100.0,
        "sz": 4.0 ** (k % 3),
        "side": pd.array(np.where(k % 5 < 2, "B", "A"), dtype="str"),
        "time": times(at),
        "crossed": True,
        "tid": 1 + k,
    }
    sign = np.where(k % 5 < 2, 1, -1)
    mids = {
        "coin": pd.array(["XYZ"] * 2 * n, dtype="str"),
        "time": times(np.repeat(at, 2) + np.tile([-1000, 2000], n)),
        "mid_px": np.stack([np.full(n, 100.0), 100.0 + sign * moved / 100], axis=1).ravel(),
    }
    return {"fills": pd.DataFrame(fills), "prices": pd.DataFrame(mids)}


def impact_at_scale(frames, result):
    """The exponent is 1/2, and an order of 10,000 USD, 1 % of a volume of a million, 10 bps."""
    assert result["n"].eq(len(frames["fills"])).all()
    assert np.allclose(result["estimate"], [0.5, 10.0, 10.0], rtol=1e-3)


def tape_as(name):
    def made(n):
        return {name: tape(n)["fills"]}

    return made


def quotes_at_scale(frames, result):
    assert len(result) == len(frames["tape"])
    assert np.allclose(result["mid_px"], 100, rtol=0, atol=1e-6)
    assert np.allclose(result["ask_px"], 100.01, rtol=0, atol=1e-6)
    assert result["sell_age_seconds"].max() == 2


def tape_at_scale(frames, result):
    """The half spread is 1 bps, all of it transitory."""
    assert result["n"].tolist() == [len(frames["fills"]) - 1] * 3
    assert np.allclose(result["estimate"], [1, 1, 0], rtol=0, atol=1e-6)


TAPE = ("coin", "px", "sz", "side", "time", "crossed")
CASES = [
    Case(
        helper="execution.quotes",
        frames=tape_as("tape"),
        at_scale=quotes_at_scale,
        needed={"tape": TAPE},
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="execution.spreads",
        frames=tape_as("fills"),
        at_scale=tape_at_scale,
        needed={"fills": TAPE},
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        note="of the tape",
    ),
    Case(
        helper="execution.fill_quality",
        frames=trades,
        at_scale=quality_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="execution.markout",
        frames=trades,
        arguments={"horizons": ["10s", "1m"]},
        at_scale=markout_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
    ),
    Case(
        helper="execution.spreads",
        frames=trades,
        arguments={"horizon": "1m"},
        at_scale=spreads_at_scale,
        needed=NEEDED,
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
    ),
    Case(
        helper="execution.counterparties",
        frames=both_sides,
        arguments={"horizon": "1m", "draws": 20},
        at_scale=pairs_at_scale,
        needed={"fills": (*NEEDED["fills"], "tid", "user"), "prices": NEEDED["prices"]},
        doubled=same,
        gives="pandas",
        most=100_000,
    ),
    Case(
        helper="execution.toxicity",
        frames=both_sides,
        arguments={"horizon": "1m"},
        at_scale=toxicity_at_scale,
        needed={"fills": (*NEEDED["fills"], "user"), "prices": NEEDED["prices"]},
        doubled=same,
        gives="pandas",
        rows=160,
        most=100_000,
    ),
    Case(
        helper="execution.copy_trading",
        frames=trades,
        arguments={"delays": ["10s", "1m"], "slippage_bps": 100.0, "draws": 20},
        at_scale=copies_at_scale,
        needed={"fills": NEEDED["fills"][:-1], "prices": NEEDED["prices"]},
        doubled=same,
        gives="pandas",
    ),
    Case(
        helper="execution.shortfall",
        frames=parents,
        arguments={"draws": 20},
        at_scale=shortfall_at_scale,
        needed={
            "orders": ("oid", "coin", "side", "orig_sz", "timestamp", "status_timestamp"),
            "fills": ("oid", "coin", "px", "sz", "side", "time", "crossed", "fee"),
            "prices": NEEDED["prices"],
        },
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        most=100_000,
    ),
    Case(
        helper="execution.impact",
        frames=sized_orders,
        arguments={"volume": {"XYZ": 1e6}, "draws": 20, "lags": 3},
        at_scale=impact_at_scale,
        needed={
            "fills": ("oid", "coin", "px", "sz", "side", "time", "crossed"),
            "prices": NEEDED["prices"],
        },
        doubled=same,
        gives="pandas",
        table=lambda result: result.params,
        most=100_000,
    ),
]
