"""Cases of ``tk.ledger``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import ME, MONDAY, times
from tests.scale.case import Case, table

KINDS = np.array(
    ["deposit", "withdraw", "accountClassTransfer", "spotTransfer", "liquidation", "somethingNew"]
)


def updates(n):
    """Deposit 10, withdraw 2 + 1, 4 to spot, send 3 HYPE away, a liquidation, one unknown."""
    k = np.arange(n) % len(KINDS)
    sent = k == 3
    ledger = table(
        n,
        account=ME,
        time=times(MONDAY + 1000 * np.arange(n)),
        hash=np.char.mod("0x%064x", 1 + np.arange(n)),
        type=KINDS[k],
        usdc=np.array([10.0, 2.0, 4.0, np.nan, np.nan, 99.0])[k],
        fee=np.where(k == 1, 1.0, np.nan),
        to_perp=pd.array(np.where(k == 2, False, None).tolist(), dtype="boolean"),
        token=np.where(sent, "HYPE", None),
        amount=np.where(sent, 3.0, np.nan),
        usdc_value=np.nan,
        user=np.where(sent, ME, None),
    )
    return {"ledger": ledger}


def flows_at_scale(frames, result):
    counts = frames["ledger"]["type"].value_counts()
    sums = result.groupby("type")[["perp", "spot", "usd"]].sum()
    assert (~result["known"]).sum() == counts["somethingNew"]
    assert sums.loc["deposit", "perp"] == 10 * counts["deposit"]
    assert sums.loc["spotTransfer", "spot"] == -3 * counts["spotTransfer"]
    assert sums.loc["accountClassTransfer", "usd"] == 0


def sums_at_scale(frames, result):
    counts = frames["ledger"]["type"].value_counts()
    row = result.iloc[0]
    assert row["deposits"] == 10 * counts["deposit"]
    assert row["withdrawals"] == -3 * counts["withdraw"]
    assert row["net_deposits"] == row["deposits"] + row["withdrawals"]
    assert (row["unpriced"], row["unknown"]) == (counts["spotTransfer"], counts["somethingNew"])


NEEDED = {"ledger": "time type"}
CASES = [
    Case("ledger.flows", updates, NEEDED, keys=("time",), at_scale=flows_at_scale),
    Case("ledger.sums", updates, NEEDED, arguments={"by": None}, at_scale=sums_at_scale),
    Case("ledger.unknown", updates, NEEDED),
]
