"""Kinds of fills: conversions, market trades, liquidations, forced closes.

Sources: docs/live_service.md, section 2 (liquidations) and section 7 (conversions).

Each function returns a narwhals expression that is true or false on every engine, never missing.
`column_names` are the columns of the frame. Old rows have no liquidation columns, and frames from
other sources may have no `dir`.
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


def is_conversion(column_names: Sequence[str]) -> nw.Expr:
    """Return whether a fill converts outcome tokens. Its price is a convention, not a trade."""
    return _direction().is_in(CONVERSIONS) if "dir" in column_names else _never(column_names)


def is_market_trade(column_names: Sequence[str]) -> nw.Expr:
    """Return whether a fill is a trade on the market.

    Conversions of outcome tokens, settlements, conversions of dust and the netting of vaults are
    not. Liquidations and auto-deleveraging count as market trades; `is_forced_close` finds them.
    Execution quality uses market trades only. Volume and fees (`attribution`, `builders`) exclude
    only conversions, because the others have a real price.
    """
    return ~(_direction().is_in(NOT_TRADED) if "dir" in column_names else _never(column_names))


def is_auto_deleveraging(column_names: Sequence[str]) -> nw.Expr:
    """Return whether the exchange closed a position against a bankrupt account."""
    return _direction() == AUTO_DELEVERAGING if "dir" in column_names else _never(column_names)


def is_liquidation(column_names: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill liquidates its own account.

    - ``column_names``: the columns of the frame
    - ``account``: the account of the fills; by default the column ``user``. Without both, the
      taker of a market liquidation counts as the liquidated account.

    Returns: true if ``liquidated_user`` is the account, or if ``dir`` begins with `Liquidated`.
    """
    own = _is_own_liquidation(column_names, account)
    return own | _direction().str.starts_with(LIQUIDATED) if "dir" in column_names else own


def is_liquidation_counterparty(column_names: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether a fill is the counterparty of the liquidation of another account.

    - ``column_names``, ``account``: as `is_liquidation` takes them
    """
    return _has_liquidation(column_names) & ~is_liquidation(column_names, account)


def is_forced_close(column_names: Sequence[str], account: str | None = None) -> nw.Expr:
    """Return whether the exchange closed the position: a liquidation, or auto-deleveraging.

    - ``column_names``, ``account``: as `is_liquidation` takes them
    """
    return is_liquidation(column_names, account) | is_auto_deleveraging(column_names)


def warn_missing_directions(
    frame: frame_access.Frame, what: str, *, outcomes_alone: bool = False
) -> None:
    """Warn if ``dir`` is missing in every row, so that other events look like trades.

    - ``frame``: the rows
    - ``what``: the parameter that contains the rows
    - ``outcomes_alone``: warn only if there are fills of outcome tokens, for helpers that exclude
      only conversions
    """
    if "dir" in frame.columns and frame_access.is_empty_column(frame, "dir"):
        if outcomes_alone:
            outcomes = frame.filter(is_outcome(nw.col("coin")))
            # `is_empty_column` is also False if there are no fills of outcome markets.
            if not frame_access.is_empty_column(outcomes, "dir"):
                return
        message = (
            f"{what}: column dir is missing in every row, so conversions, settlements and backstop "
            "liquidations count as trades here. Fetch the rows again, or remove such rows"
        )
        warn_caller(message, MissingDirections)


def _direction() -> nw.Expr:
    return _text_of("dir")


def _never(column_names: Sequence[str]) -> nw.Expr:
    """Return false for every row; a constant without a column would have only one row."""
    return nw.col(column_names[0]).is_null() & nw.lit(False)


def _text_of(name: str) -> nw.Expr:
    # In pandas a column of missing values may have the dtype object.
    return nw.col(name).cast(nw.String()).fill_null("")


def _has_liquidation(column_names: Sequence[str]) -> nw.Expr:
    """Return whether a fill has a liquidation object, with or without the address."""
    there = _never(column_names)
    for name in ("liquidated_user", "liquidation_method"):
        if name in column_names:
            there = there | (_text_of(name) != "")
    return there


# ASSUMED: If the `liquidation` object of a fill does not name the liquidated account, or if the
# account of the fills is not known, the taker of a liquidation by market order counts as the
# liquidated account.
def _is_own_liquidation(column_names: Sequence[str], account: str | None) -> nw.Expr:
    taker = _never(column_names)
    if "crossed" in column_names:
        taker = _has_liquidation(column_names) & nw.col("crossed").cast(nw.Boolean()).fill_null(
            False
        )
        if "liquidation_method" in column_names:
            taker = taker & (_text_of("liquidation_method") != "backstop")
    if "liquidated_user" not in column_names:
        return taker
    named = _text_of("liquidated_user").str.to_lowercase()
    if account is not None:
        mine = named == account.lower()
    elif "user" in column_names:
        mine = named == _text_of("user").str.to_lowercase()
    else:
        return taker
    return ((named != "") & mine) | ((named == "") & taker)
