"""Cases of ``tk.ledger``."""

import numpy as np
import pandas as pd

from tests.analysis.examples import ME, MONDAY, times
from tests.scale.case import Case, same

KINDS = (
    "deposit",
    "withdraw",
    "accountClassTransfer",
    "spotTransfer",
    "liquidation",
    "somethingNew",
)


def updates(n):
    """Deposit 10, withdraw 2 + 1, 4 to spot, send 3 HYPE away, a liquidation, one unknown."""
    k = np.arange(n) % len(KINDS)
    return pd.DataFrame(
        {
            "account": pd.array([ME] * n, dtype="str"),
            "time": times(MONDAY + 1000 * np.arange(n)),
            "hash": pd.array([f"0x{number + 1:064x}" for number in range(n)], dtype="str"),
            "type": pd.array([KINDS[item] for item in k], dtype="str"),
            "usdc": np.choose(k, [10.0, 2.0, 4.0, np.nan, np.nan, 99.0]) if n else np.zeros(0),
            "fee": np.where(k == 1, 1.0, np.nan),
            "to_perp": pd.array(np.where(k == 2, False, None).tolist(), dtype="boolean"),
            "token": pd.array(["HYPE" if item == 3 else None for item in k], dtype="str"),
            "amount": np.where(k == 3, 3.0, np.nan),
            "usdc_value": np.nan,
            "user": pd.array([ME if item == 3 else None for item in k], dtype="str"),
        }
    )


def _full(n):
    return n // len(KINDS)


def flows_at_scale(frames, result):
    turns = _full(len(frames["ledger"]) + len(KINDS) - 1)
    assert (~result["known"]).sum() == len(frames["ledger"]) // len(KINDS)
    by = result.groupby("type")
    assert by["perp"].sum()["deposit"] == 10 * turns
    assert by["spot"].sum()["spotTransfer"] == -3 * turns
    assert by["usd"].sum()["accountClassTransfer"] == 0


def sums_at_scale(frames, result):
    counts = frames["ledger"]["type"].value_counts()
    row = result.iloc[0]
    assert row["deposits"] == 10 * counts["deposit"]
    assert row["withdrawals"] == -3 * counts["withdraw"]
    assert row["net_deposits"] == row["deposits"] + row["withdrawals"]
    assert (row["unpriced"], row["unknown"]) == (counts["spotTransfer"], counts["somethingNew"])


def unknown_at_scale(frames, result):
    assert result["updates"].item() == frames["ledger"]["type"].eq("somethingNew").sum()


CASES = [
    Case(
        helper="ledger.flows",
        frames=lambda n: {"ledger": updates(n)},
        at_scale=flows_at_scale,
        needed={"ledger": ("time", "type")},
        doubled=same,
        keys=("time",),
    ),
    Case(
        helper="ledger.sums",
        frames=lambda n: {"ledger": updates(n)},
        arguments={"by": None},
        at_scale=sums_at_scale,
        needed={"ledger": ("time", "type")},
        doubled=same,
    ),
    Case(
        helper="ledger.unknown",
        frames=lambda n: {"ledger": updates(n)},
        at_scale=unknown_at_scale,
        needed={"ledger": ("time", "type")},
        doubled=same,
    ),
]
