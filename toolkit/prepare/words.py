"""Words about what a result covers, from numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.arrays import Flags, Floats, Ints

CURVE_GAPS = {
    "unpriced_fees": "fees in other tokens",
    "unknown_flows": "flows of unknown amount",
    "missing_amounts": "funding rows of unknown amount",
}
"""Counts of what the sums of a curve leave out. All of its fills have their amounts."""


class Coverage(NamedTuple):
    """What each row of an attribution covers; one value per row.

    - ``unpaid``: whether funding rows are missing although there were positions
    - ``held``, ``paid``: hours with an open position, and those of them with a funding row
    - ``outside``: funding rows outside the time of the fills
    - ``no_unrealised``: positions without an unrealised PnL
    - ``fills``, ``no_closed_pnl``, ``no_fee``: fills, and those without these amounts
    - ``income``: gains of vaults, commissions and rewards that the ledger states, in USD
    """

    unpaid: Flags
    held: Ints
    paid: Ints
    outside: Ints
    no_unrealised: Ints
    fills: Ints
    no_closed_pnl: Ints
    no_fee: Ints
    income: Floats


def source_state(name: str, keys: Sequence[str], possible: Sequence[str]) -> str:
    """Return the name of a source, or why it cannot be grouped by these keys."""
    missing = [key for key in keys if key not in possible]
    return f"not {name} (it has no {', '.join(missing)})" if missing else name


def coverage_texts(covers: Mapping[str, str], counts: Coverage, of_what: str) -> list[str]:
    """Return what each row covers.

    - ``covers``: the state of each source, see `source_state`
    - ``of_what``: words after the share of position hours, such as ``in all``
    """
    base = ", ".join(covers.values())
    texts = [base] * len(counts.unpaid)
    partly = counts.unpaid | (counts.paid < counts.held) | (counts.outside > 0)
    unknown = counts.no_unrealised + counts.no_closed_pnl + counts.no_fee > 0
    for row in np.flatnonzero(partly | unknown | (np.abs(counts.income) >= 0.005)).tolist():
        texts[row] = _row_text(base, Coverage(*(column[row] for column in counts)), of_what)
    return texts


def _row_text(text: str, row: Coverage, of_what: str) -> str:
    before, funding, after = text.partition("funding")
    if row.unpaid:
        text = f"{before}not funding (no rows){after}"
    elif row.paid < row.held:
        words = f"position hours{' ' * bool(of_what)}{of_what}"
        text = f"{before}{funding} ({row.paid} of {row.held} {words}){after}"
    if row.outside:
        rows = "row" if row.outside == 1 else "rows"
        text += f", without {row.outside} funding {rows} outside the time of the fills"
    if row.no_unrealised:
        positions = "position" if row.no_unrealised == 1 else "positions"
        text += f", without the unrealised PnL of {row.no_unrealised} {positions}"
    if abs(row.income) >= 0.005:
        text += f", without {row.income:,.2f} USD of vaults, commissions, rewards and gas"
    if row.no_closed_pnl + row.no_fee:
        closed, fee = row.fills - row.no_closed_pnl, row.fills - row.no_fee
        known = f"{closed} of {row.fills} closed PnLs, {fee} of {row.fills} fees known"
        text = f"fills ({known}){text.removeprefix('fills')}"
    return text


def curve_coverage(covers: str, counts: Mapping[Any, Any]) -> str:
    """Return the sources that a curve covers, and the number of rows without a known amount."""
    gaps = [
        f"without {counts[name]:.0f} {text}" for name, text in CURVE_GAPS.items() if counts[name]
    ]
    return ", ".join([covers, *gaps])
