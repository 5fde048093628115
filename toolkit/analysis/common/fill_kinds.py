"""Kinds of fills: conversions, market trades, liquidations, forced closes.

Sources: docs/live_service.md, section 2 (liquidations) and section 7 (conversions).

Each function returns a narwhals expression that is true or false on every engine, never missing.
`have` are the columns of the frame. Old rows have no liquidation columns, and frames from other
sources may have no `dir`.
"""

from collections.abc import Sequence

import narwhals as nw

from toolkit.analysis.common import frame_access
from toolkit.analysis.common.markets import is_outcome
from toolkit.errors import MissingDirections, warn_caller
from toolkit.rules.directions import (
    AUTO_DELEVERAGING,
    CONVERSIONS,
    LIQUIDATED,
    NOT_TRADED,
)


def is_conversion(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill converts outcome tokens. Its price is a convention, not a trade."""
    return _direction().is_in(CONVERSIONS) if "dir" in have else _never(have)


def is_market_trade(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill is a trade on the market.

    Conversions of outcome tokens, settlements, conversions of dust and the netting of vaults are
    not. Liquidations and auto-deleveraging count as market trades; `is_forced_close` finds them.
    Execution quality uses market trades only. Volume and fees (`attribution`, `builders`) exclude
    only conversions, because the others have a real price.
    """
    return ~(_direction().is_in(NOT_TRADED) if "dir" in have else _never(have))


def is_auto_deleveraging(have: Sequence[str]) -> nw.Expr:
    """Return whether the exchange closed a position against a bankrupt account."""
    return _direction() == AUTO_DELEVERAGING if "dir" in have else _never(have)


def is_liquidation(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill liquidates its own account.

    - ``have``: the columns of the frame
    - ``account``: the account of the fills; by default the column ``user``. Without both, the
      taker of a market liquidation counts as the liquidated account.

    Returns: true if ``liquidated_user`` is the account, or if ``dir`` begins with `Liquidated`.
    """
    own = _is_own_liquidation(have, account)
    return own | _direction().str.starts_with(LIQUIDATED) if "dir" in have else own


def is_liquidation_counterparty(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill is the counterparty of the liquidation of another account.

    - ``have``, ``account``: as `is_liquidation` takes them
    """
    return _has_liquidation(have) & ~is_liquidation(have, account)


def is_forced_close(have: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether the exchange closed the position: a liquidation, or auto-deleveraging.

    - ``have``, ``account``: as `is_liquidation` takes them
    """
    return is_liquidation(have, account) | is_auto_deleveraging(have)


def warn_missing_directions(
    frame: frame_access.Frame, what: str, *, outcomes_alone: bool = False
) -> None:
    """Warn if ``dir`` is missing in every row, so that other events look like trades.

    - ``frame``: the rows
    - ``what``: the parameter that contains the rows
    - ``outcomes_alone``: warn only if there are fills of outcome tokens, for helpers that exclude
      only conversions
    """
    if "dir" in frame.collect_schema().names() and frame_access.is_empty_column(frame, "dir"):
        if outcomes_alone:
            outcomes = frame.filter(is_outcome(nw.col("coin")))
            if not frame_access.is_empty_column(outcomes, "dir"):  # there are none
                return
        message = (
            f"{what}: column dir is missing in every row, so conversions, settlements and backstop "
            "liquidations count as trades here. Fetch the rows again, or remove such rows."
        )
        warn_caller(message, MissingDirections)


def _direction() -> nw.Expr:
    return _text_of("dir")


def _never(have: Sequence[str]) -> nw.Expr:
    """Return false for every row; a constant without a column would have only one row."""
    return nw.col(have[0]).is_null() & nw.lit(False)


def _text_of(name: str) -> nw.Expr:
    # In pandas a column of missing values may have the dtype object.
    return nw.col(name).cast(nw.String()).fill_null("")


def _has_liquidation(have: Sequence[str]) -> nw.Expr:
    """Return whether a fill has a liquidation object, with or without the address."""
    there = _never(have)
    for name in ("liquidated_user", "liquidation_method"):
        if name in have:
            there = there | (_text_of(name) != "")
    return there


# ASSUMED: If the `liquidation` object of a fill does not name the liquidated account, or if the
# account of the fills is not known, the taker of a liquidation by market order counts as the
# liquidated account.
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
