"""Fills of an account that liquidations and auto-deleveraging forced."""

from typing import Any

import narwhals as nw
import pandas as pd

from toolkit.analysis.common import directions
from toolkit.reports.wallet_frames import WalletFrames

__all__ = ["describe_largest_close", "find_forced_closes", "is_mostly_forced"]


def find_forced_closes(frames: WalletFrames) -> dict[str, pd.DataFrame]:
    """Return fills by liquidations (forced), and other fills by deleveraging (deleveraged).

    A kind without fills is left out.
    """
    frame = nw.from_native(frames.fills.reset_index(drop=True), eager_only=True)
    is_liquidation = directions.is_liquidation(frame.columns, frames.user)
    is_deleveraging = directions.is_auto_deleveraging(frame.columns) & ~is_liquidation
    kinds = {"forced": is_liquidation, "deleveraged": is_deleveraging}
    rows = {name: frame.filter(is_forced).to_native() for name, is_forced in kinds.items()}
    return {name: fills for name, fills in rows.items() if not fills.empty}


def is_mostly_forced(frames: WalletFrames) -> bool:
    """Return whether forced closes made more than half of the gains and losses."""
    whole = _gains_and_losses(frames.fills)
    return sum(map(_gains_and_losses, find_forced_closes(frames).values())) > whole / 2


def _gains_and_losses(fills: pd.DataFrame) -> float:
    return float(fills["closed_pnl"].astype("float64").abs().sum())


def describe_largest_close(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the values of a sentence about the fill with the largest notional.

    Its entry price follows from its closed PnL. Return nothing if no fill states both.
    """
    fills = rows.dropna(subset=["px", "sz", "closed_pnl"])
    fills = fills.assign(usd=fills["px"].astype("float64") * fills["sz"].astype("float64"))
    if fills.empty:
        return {}
    fill = fills.sort_values(["usd", "time"], ascending=[False, True], kind="stable").iloc[0]
    is_long = fill["side"] == "A"  # a sell closes a long
    entry_usd = fill["usd"] - float(fill["closed_pnl"]) * (1 if is_long else -1)
    if not entry_usd > 0:
        return {}
    move = fill["usd"] / entry_usd - 1
    return {
        "coin": fill["coin"],
        "side": "long" if is_long else "short",
        "usd": fill["usd"],
        "time": f"{fill['time']:%Y-%m-%d %H:%M}",
        "distance": abs(move),
        "place": "below" if move < 0 else "above",
    }
