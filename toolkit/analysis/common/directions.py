"""Which fills are conversions, liquidations, forced closes: one place for all helpers.

Sources: docs/live_service.md, section 2 (liquidations) and section 7 (conversions).

Each function returns a narwhals expression that is true or false, never missing, on every engine.
`have` are the names of the frame's columns: rows from before the service wrote liquidation
objects have no such columns, and frames made by hand may have no `dir`.
"""

from collections.abc import Sequence

import narwhals as nw

from toolkit.analysis.common import columns
from toolkit.analysis.common.markets import OUTCOME_COIN
from toolkit.analysis.common.repeated_rows import warn_user
from toolkit.rules.directions import (
    AUTO_DELEVERAGING,
    CONVERSIONS,
    LIQUIDATED,
    NOT_TRADED,
    SETTLEMENT,
)

__all__ = [
    "MissingDirections",
    "is_auto_deleveraging",
    "is_conversion",
    "is_forced_close",
    "is_liquidation",
    "is_liquidation_counterparty",
    "is_market_trade",
    "is_settlement",
    "warn_missing_directions",
]


def is_conversion(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill converts outcome tokens: no trade, at a conventional price."""
    return _direction().is_in(CONVERSIONS) if "dir" in have else _never(have)


def is_settlement(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill is the settlement of a market that ended."""
    return _direction() == SETTLEMENT if "dir" in have else _never(have)


def is_market_trade(have: Sequence[str]) -> nw.Expr:
    """Return whether orders met: not a conversion, a settlement, dust, or vaults that net.

    Liquidations and auto-deleveraging count as market trades here; `is_forced_close` finds them.
    Execution quality looks at market trades alone. Volume and fees (`attribution`, `builders`)
    leave out conversions only: what the others pay is a real price.
    """
    return ~(_direction().is_in(NOT_TRADED) if "dir" in have else _never(have))


def is_auto_deleveraging(have: Sequence[str]) -> nw.Expr:
    """Return whether the exchange closed a position against a bankrupt one."""
    return _direction() == AUTO_DELEVERAGING if "dir" in have else _never(have)


def is_liquidation(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill liquidates its own account.

    Parameters
    ----------
    have : sequence of str
        The columns of the frame.
    account : str, optional
        Whose fills they are. Without it the column ``user`` says. If neither does, the taker of
        a market liquidation is the account that was liquidated.

    Returns
    -------
    narwhals Expr
        True if ``liquidated_user`` is the account, or ``dir`` begins with `Liquidated`.
    """
    own = _is_own_liquidation(have, account)
    return own | _direction().str.starts_with(LIQUIDATED) if "dir" in have else own


def is_liquidation_counterparty(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill is the other side of somebody else's liquidation.

    Parameters
    ----------
    have, account
        As `is_liquidation` takes them.
    """
    return _has_liquidation(have) & ~is_liquidation(have, account)


def is_forced_close(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether the exchange closed the position: a liquidation, or auto-deleveraging.

    Parameters
    ----------
    have, account
        As `is_liquidation` takes them.
    """
    return is_liquidation(have, account) | is_auto_deleveraging(have)


def warn_missing_directions(
    frame: columns.Frame, what: str, *, outcomes_alone: bool = False
) -> None:
    """Warn if ``dir`` is missing in every row: other events then look like trades.

    Parameters
    ----------
    frame : Frame
        The rows.
    what : str
        The parameter that they came in.
    outcomes_alone : bool, default False
        Warn only if outcome tokens are among the rows: where nothing but conversions matters.
    """
    if "dir" in frame.collect_schema().names() and columns.is_empty_column(frame, "dir"):
        if outcomes_alone:
            outcomes = frame.filter(nw.col("coin").str.contains(OUTCOME_COIN))
            if not columns.is_empty_column(outcomes, "dir"):  # there are none
                return
        message = (
            f"{what}: column dir is missing in every row, so conversions, settlements and backstop "
            "liquidations count as trades here. Fetch the rows again, or leave such rows out."
        )
        warn_user(message, MissingDirections)


class MissingDirections(UserWarning):
    """The rows do not say what kind of event, or of order, each is."""


def _direction() -> nw.Expr:
    return _text_of("dir")


def _never(have: Sequence[str]) -> nw.Expr:
    """Return false for every row: a column carries the length, which a constant alone has not."""
    return nw.col(have[0]).is_null() & nw.lit(False)


def _text_of(name: str) -> nw.Expr:
    # Pandas gives a column of nothing but missing values no dtype of its own.
    return nw.col(name).cast(nw.String()).fill_null("")


def _has_liquidation(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill carries a liquidation object, with or without the address."""
    there = _never(have)
    for name in ("liquidated_user", "liquidation_method"):
        if name in have:
            there = there | (_text_of(name) != "")
    return there


# ASSUMED: where the object does not name the liquidated account, or nobody says whose fills they
# are, the taker of a liquidation by market order is the account that was liquidated.
def _is_own_liquidation(have: Sequence[str], account: str | None) -> nw.Expr:
    taker = _never(have)
    if "crossed" in have:
        taker = _has_liquidation(have) & nw.col("crossed").cast(nw.Boolean()).fill_null(False)
        if "liquidation_method" in have:
            taker = taker & (_text_of("liquidation_method") != "backstop")
    if "liquidated_user" not in have:
        return taker
    named = _text_of("liquidated_user").str.to_lowercase()
    if account is not None:
        mine = named == account.lower()
    elif "user" in have:
        mine = named == _text_of("user").str.to_lowercase()
    else:
        return taker
    return ((named != "") & mine) | ((named == "") & taker)
