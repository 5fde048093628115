"""Fills of an account that liquidations and auto-deleveraging forced."""

import warnings
from typing import Any

import pandas as pd

from toolkit import pnl
from toolkit.errors import MissingAmounts
from toolkit.fetch.account import Account
from toolkit.prepare.door import Table
from toolkit.prepare.roles import read_roles
from toolkit.rules.directions import LIQUIDATED

__all__ = [
    "add_notionals",
    "describe_largest_close",
    "describe_leverage",
    "describe_loss",
    "describe_margin",
    "find_forced_closes",
    "is_mostly_forced",
    "select_largest_liquidation",
    "share_by_backstop",
]

BACKSTOP, MARKET = "backstop", "market"
"""The methods of liquidation that a fill states."""


def find_forced_closes(account: Account) -> dict[str, pd.DataFrame]:
    """Return fills by liquidations (forced), and other fills by deleveraging (deleveraged).

    A kind without fills is left out.
    """
    frame = account.fills.reset_index(drop=True)
    roles = read_roles(Table(frame, "fills", "none"), account.address)
    kinds = {"forced": roles.liquidated, "deleveraged": roles.deleveraged}
    rows = {name: frame[is_forced] for name, is_forced in kinds.items()}
    return {name: fills for name, fills in rows.items() if not fills.empty}


def is_mostly_forced(account: Account) -> bool:
    """Return whether forced closes made more than half of the gains and losses."""
    whole = _gains_and_losses(account.fills)
    return sum(map(_gains_and_losses, find_forced_closes(account).values())) > whole / 2


def _gains_and_losses(fills: pd.DataFrame) -> float:
    return float(fills["closed_pnl"].astype("float64").abs().sum())


def describe_largest_close(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the values of a sentence about the order with the largest notional.

    Its entry price follows from its closed PnL. Return nothing without rows.

    - ``rows``: fills with amounts, as `add_notionals` returns them
    """
    if rows.empty:
        return {}
    orders = rows.groupby("oid", sort=False).agg(
        coin=("coin", "first"), side=("side", "first"), usd=("usd", "sum"),
        entry_usd=("entry_usd", "sum"), time=("time", "min"),
    )  # fmt: skip
    order = orders.sort_values(["usd", "time"], ascending=[False, True], kind="stable").iloc[0]
    if not order["entry_usd"] > 0:
        return {}
    move = order["usd"] / order["entry_usd"] - 1
    return {
        "coin": order["coin"],
        "side": "long" if order["side"] == "A" else "short",
        "usd": order["usd"],
        "time": f"{order['time']:%Y-%m-%d %H:%M}",
        "distance": abs(move),
        "place": "below" if move < 0 else "above",
    }


def add_notionals(rows: pd.DataFrame) -> pd.DataFrame:
    """Return fills with their notional ``usd`` and its value at the entry price, ``entry_usd``.

    No fill is returned if one of them does not state its amounts.
    """
    if rows[["oid", "px", "sz", "side", "closed_pnl"]].isna().to_numpy().any():
        rows = rows.iloc[:0]
    usd = rows["px"].astype("float64") * rows["sz"].astype("float64")
    sign = rows["side"].map({"A": 1.0, "B": -1.0}).astype("float64")  # a sell closes a long
    entry_usd = usd - sign * rows["closed_pnl"].astype("float64")
    return rows.assign(usd=usd, entry_usd=entry_usd)


def select_largest_liquidation(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the fills of the moment at which liquidations closed the largest notional.

    - ``rows``: fills with amounts, as `add_notionals` returns them
    """
    if rows.empty:
        return rows
    return rows[rows["time"] == rows.groupby("time")["usd"].sum().idxmax()]


def describe_leverage(account: Account, rows: pd.DataFrame) -> dict[str, Any]:
    """Return liquidated positions at their entry prices, and the capital before the liquidation.

    Capital is cash in, less cash out, plus closed PnL and fees. Return nothing if the rows do not
    begin with the account, or if an amount is missing.

    - ``rows``: fills of one liquidation, as `select_largest_liquidation` returns them
    """
    capital = _capital_before(account, rows)
    if capital is None or capital <= 0 or rows["start_position"].isna().any():
        return {}
    sums = rows.groupby("coin")[["entry_usd", "sz"]].agg("sum").astype("float64")
    # A liquidation may close a part; the position before its first fill was the largest.
    size = rows["start_position"].astype("float64").abs().groupby(rows["coin"]).max()
    entry = sums["entry_usd"] / sums["sz"] * size
    if not (entry > 0).all():
        return {}
    whole = float(entry.sum())
    return {
        "positions": len(entry), "entry": whole, "times": whole / capital, "capital": capital,
    }  # fmt: skip


def describe_loss(account: Account, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the loss of one liquidation with its fees, and its share of the capital before.

    Return nothing for a gain, or if an amount is missing.
    """
    capital = _capital_before(account, rows)
    net = _sum_net(account, rows, account.ledger.iloc[:0])
    if capital is None or net is None or capital <= 0 or net >= 0:
        return {}
    return {"loss": -net, "share": -net / capital}


def describe_margin(account: Account, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the value and the positions that the ledger states for one liquidation.

    Return nothing without exactly one such row, or if the value was not positive.
    """
    ledger = account.ledger
    if rows.empty or ledger.empty:
        return {}
    own = ledger[(ledger["type"] == "liquidation") & (ledger["time"] == rows["time"].iloc[0])]
    stated = own.dropna(subset=["account_value", "liquidated_ntl_pos", "leverage_type"])
    if len(own) != 1 or len(stated) != 1:
        return {}
    row = stated.iloc[0]
    value, usd = float(row["account_value"]), float(row["liquidated_ntl_pos"])
    if not (value > 0 and usd > 0):
        return {}
    mode = str(row["leverage_type"]).lower()
    return {"mode": mode, "value": value, "usd": usd, "times": usd / value}


def share_by_backstop(rows: pd.DataFrame) -> float | None:
    """Return the share of the notional that the backstop took; None if it is not known.

    - ``rows``: fills with amounts, as `add_notionals` returns them
    """
    method, words = rows["liquidation_method"], rows["dir"].astype("str")
    # These words mark liquidations by the backstop (docs/live_service.md, section 2).
    is_backstop = method.isin([BACKSTOP]) | (method.isna() & words.str.startswith(LIQUIDATED))
    if rows.empty or not (is_backstop | method.isin([MARKET])).all():
        return None
    return float(rows["usd"][is_backstop].sum() / rows["usd"].sum())


def _capital_before(account: Account, rows: pd.DataFrame) -> float | None:
    if rows.empty or account.start_ms > 0:
        return None
    begin = rows["time"].iloc[0]
    fills, ledger = (table[table["time"] < begin] for table in (account.fills, account.ledger))
    return _sum_net(account, fills, ledger)


def _sum_net(account: Account, fills: pd.DataFrame, ledger: pd.DataFrame) -> float | None:
    """Return closed PnL, fees and cash of rows; None if an amount is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingAmounts)  # then nothing is said
        row = pnl.attribution(fills, None, ledger, account=account.address).iloc[0]
    if any(row[name] for name in ("missing_amounts", "unpriced_fees", "unknown_flows")):
        return None
    return float(row["net"] + row["ledger"])
