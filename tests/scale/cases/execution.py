"""Cases of ``tk.execution``."""

from functools import partial

import numpy as np

from tests.analysis.examples import HOUR, MONDAY, times
from tests.scale.case import Case, addresses, table, trades


def hourly(n):
    """Return an hourly buy of 2 at 101, with mid 100 a second before and 102 a minute after."""
    at = MONDAY + HOUR * np.arange(n)
    fills = trades(n, at, px=101.0, crossed=np.arange(n) % 2 == 0)
    around = times(np.concatenate([at - 1000, at + 60_000]))
    mids = table(2 * n, coin="XYZ", time=around, mid_px=np.repeat([100.0, 102.0], n))
    return {"fills": fills, "prices": mids}


def quality_at_scale(frames, result):
    """Each fill loses 1 USD for each of 2: 100 bps."""
    assert result["improvement_usd"].sum() == -2.0 * len(frames["fills"])
    assert np.allclose(result["improvement_bps"], -100)
    assert (result["covered"] == 1).all()


def tape(n, name):
    """Return a trade of 2 every second: two buys at 100.01, two sells at 99.99, and so on."""
    bought = np.arange(n) % 4 < 2
    rows = trades(
        n,
        MONDAY + 1000 * np.arange(n),
        px=np.where(bought, 100.01, 99.99),
        side=np.where(bought, "B", "A"),
        crossed=True,
        tx_index=3,
    )
    return {name: rows}


def both_sides(n):
    """Return trades of 1: taker k % 6 buys from one maker at 100; a minute later the mid is 101."""
    k = np.arange(n) // 2
    taken = np.arange(n) % 2 == 0
    fills = trades(
        n,
        MONDAY + 2 * HOUR * k,
        user=addresses(np.where(taken, k % 6, 9)),
        sz=1.0,
        side=np.where(taken, "B", "A"),
        crossed=taken,
        tid=1 + k,
        oid=1 + np.arange(n),
    )
    count = np.arange(-(-n // 2))
    after = times(MONDAY + 2 * HOUR * count + 60_000)
    mids = table(len(count), coin="XYZ", time=after, mid_px=101.0 + 0.01 * (count % 5))
    return {"fills": fills, "prices": mids}


def parents(n):
    """Return orders to buy 2 at a mid of 100: 1 is filled at 102 after a mid of 101, then canceled.

    The mid at the end is 104. The fee is 0.5.
    """
    at = MONDAY + 600_000 * np.arange(n)
    orders = table(
        2 * n,
        oid=np.repeat(np.arange(n), 2),
        coin="XYZ",
        side="B",
        orig_sz=2.0,
        sz=1.0,
        status=np.tile(["open", "canceled"], n),
        timestamp=times(np.repeat(at, 2)),
        status_timestamp=times(np.repeat(at, 2) + np.tile([0, 90_000], n)),
    )
    own = {"oid": np.arange(n), "crossed": True, "fee": 0.5}
    fills = trades(n, at + 60_000, px=102.0, sz=1.0, **own)
    moments = times(np.repeat(at, 3) + np.tile([-1000, 50_000, 89_000], n))
    mids = table(3 * n, coin="XYZ", time=moments, mid_px=np.tile([100.0, 101.0, 104.0], n))
    return {"orders": orders, "fills": fills, "prices": mids}


def sized_orders(n):
    """Return orders of 1, 4 and 16 in turn; they move the price by 1, 2 and 4 bps of 100."""
    k = np.arange(n)
    at = MONDAY + HOUR * k
    bought = k % 5 < 2
    side = np.where(bought, "B", "A")
    fills = trades(n, at, oid=1 + k, sz=4.0 ** (k % 3), side=side, crossed=True)
    moved = 100.0 + np.where(bought, 1, -1) * 2.0 ** (k % 3) / 100
    mids = table(
        2 * n,
        coin="XYZ",
        time=times(np.repeat(at, 2) + np.tile([-1000, 2000], n)),
        mid_px=np.stack([np.full(n, 100.0), moved], axis=1).ravel(),
    )
    return {"fills": fills, "prices": mids}


def days(n):
    """Return hourly buys of 1 at 99.99 from makers, with mid 100 before and 99.98 after each."""
    frames = hourly(n)
    own = {"px": 99.99, "sz": 1.0, "crossed": False, "fee": 0.5}
    fills = frames["fills"].assign(**own, start_position=1.0 * np.arange(n), closed_pnl=0.0)
    mids = np.repeat([100.0, 99.98], n)
    return {"fills": fills, "prices": frames["prices"].assign(mid_px=mids)}


def days_at_scale(frames, result):
    """A spread of 0.01 is earned and 0.02 is lost after it, by the mid of each day's end, too."""
    n = len(frames["fills"])
    assert np.isclose(result["spread"].sum(), 0.01 * n)
    assert np.isclose(result["adverse_60s"].sum(), -0.02 * n)
    assert np.isclose(result["fees"].sum(), -0.5 * n)
    assert np.isclose(result["net"].sum(), -0.51 * n)


def case(helper, frames, fills, *, orders="", **more):
    needed = {"fills": fills, "prices": "coin time mid_px"} | ({"orders": orders} if orders else {})
    return Case(f"execution.{helper}", frames, needed, **more)


FILLS = "coin px sz side time"
TAKEN = f"{FILLS} crossed"
CASES = [
    Case("execution.quotes", partial(tape, name="tape"), {"tape": TAKEN}),
    Case("execution.spreads", partial(tape, name="fills"), {"fills": TAKEN}, note="of the tape"),
    case("fill_quality", hourly, TAKEN, at_scale=quality_at_scale),
    case("markout", hourly, TAKEN, arguments={"horizons": ["10s", "1m"]}),
    case(
        "maker_days",
        days,
        f"{TAKEN} start_position fee",
        arguments={"horizons": ["1m"]},
        at_scale=days_at_scale,
    ),
    case("spreads", hourly, TAKEN, arguments={"horizon": "1m"}),
    case(
        "counterparties",
        both_sides,
        f"{TAKEN} tid user",
        arguments={"horizon": "1m", "draws": 20},
        most=100_000,
    ),
    case(
        "toxicity", both_sides, f"{TAKEN} user", arguments={"horizon": "1m"}, rows=160, most=100_000
    ),
    case(
        "copy_trading",
        hourly,
        FILLS,
        arguments={"delays": ["10s", "1m"], "slippage_bps": 100.0, "draws": 20},
    ),
    case(
        "shortfall",
        parents,
        f"{TAKEN} oid fee",
        orders="oid coin side orig_sz timestamp status_timestamp",
        arguments={"draws": 20},
        most=100_000,
    ),
    case(
        "impact",
        sized_orders,
        f"{TAKEN} oid",
        arguments={"volume": {"XYZ": 1e6}, "draws": 20, "lags": 3},
        most=100_000,
    ),
]
