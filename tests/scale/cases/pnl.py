"""Cases of ``tk.pnl``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import ME, MONDAY, times
from tests.scale.case import Case, Frames, twice

MINUTE = 60_000


def fills(n: int) -> pd.DataFrame:
    """Buy 1 at 100 and sell it at 101, over and over: every second fill closes 1 USD."""
    k = np.arange(n)
    opens = k % 2 == 0
    return pd.DataFrame(
        {
            "user": pd.array([ME] * n, dtype="str"),
            "coin": pd.array(["BTC"] * n, dtype="str"),
            "px": np.where(opens, 100.0, 101.0),
            "sz": 1.0,
            "side": pd.array(np.where(opens, "B", "A"), dtype="str"),
            "time": times(MONDAY + MINUTE * k),
            "start_position": np.where(opens, 0.0, 1.0),
            "closed_pnl": np.where(opens, 0.0, 1.0),
            "fee": 0.25,
            "builder_fee": 0.125,
            "deployer_fee": np.nan,
            "fee_token": pd.array(["USDC"] * n, dtype="str"),
            "crossed": opens,
            "tx_index": k % 5,
        }
    )


def attribution_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    n = len(frames["fills"])
    row = result.iloc[0]
    assert row["fills"] == n
    assert row["closed_pnl"] == n // 2
    assert row["trading_fee"] == row["builder_fee"] == -0.125 * n
    assert row["net"] == n // 2 - 0.25 * n


def audit_at_scale(frames: Frames, result: pd.DataFrame) -> None:
    assert (result["difference"] == 0).all()
    assert not result["chain_break"].any()


def audit_of_doubled(plain: pd.DataFrame, doubled: pd.DataFrame) -> None:
    """A fill that stands twice does not start from the position that its twin has left."""
    assert not plain["chain_break"].any()
    assert doubled["chain_break"].any()


CASES = [
    Case(
        helper="pnl.attribution",
        frames=lambda n: {"fills": fills(n)},
        at_scale=attribution_at_scale,
        needed={"fills": ("coin", "px", "sz", "side", "time", "closed_pnl", "fee")},
        doubled=twice(
            "fills", "volume", "closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "net"
        ),
    ),
    Case(
        helper="pnl.audit",
        frames=lambda n: {"fills": fills(n)},
        arguments={"sz_decimals": {"BTC": 5}},
        at_scale=audit_at_scale,
        needed={
            "fills": ("coin", "px", "sz", "side", "time", "start_position", "closed_pnl"),
        },
        doubled=audit_of_doubled,
        engines=("pandas", "polars"),
        keys=("time",),
    ),
]
