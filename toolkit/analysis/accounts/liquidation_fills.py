"""The fills of liquidations: whose position the exchange closed, and who traded against it."""

from collections.abc import Iterable
from typing import Any, Final, Literal

import narwhals as nw

from toolkit.analysis.common import columns, directions
from toolkit.analysis.common.repeated_rows import count_once

__all__ = ["LiquidationSide", "fills"]

LiquidationSide = Literal["liquidated", "counterparty", "deleveraged"]

_SIDES: Final = ("liquidated", "counterparty", "deleveraged")
_DEFAULT: Final = ("liquidated", "counterparty")


def fills(
    fills: Any,
    side: LiquidationSide | Iterable[LiquidationSide] = _DEFAULT,
    *,
    account: str | None = None,
) -> Any:
    """Return the fills of liquidations, and which side of it each is.

    A liquidation by market order looks like any other fill but for its liquidation object, which
    both sides of the trade carry (docs/live_service.md, section 2).

    Parameters
    ----------
    fills : DataFrame
        Fills with ``dir``, or ``liquidated_user`` or ``liquidation_method``, of one account or,
        with ``user``, of many (pandas, Polars eager or lazy, DuckDB relation).
    side : {"liquidated", "counterparty", "deleveraged"} or list of them
        Which fills: the exchange closed the account's position; the account traded against
        somebody else's liquidation; or the exchange closed the account's position to settle a
        bankrupt one (``Auto-Deleveraging``). By default the first two.
    account : str, optional
        Whose fills they are, where they have no column ``user``. Where nothing says it, the taker
        of a liquidation by market order is taken as the account that was liquidated.

    Returns
    -------
    DataFrame
        Of the engine of `fills`: the rows of those sides as they are, in the order given, and
        ``liquidation_side`` text. Rows given twice stand once.

    Raises
    ------
    MissingColumns
        If no column tells liquidations.
    ValueError
        If there is no such side.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["0xa", "0xb", "0xa"], "coin": "HYPE", "sz": [6.2, 6.2, 1.0],
    ...     "dir": ["Close Long", "Open Long", "Open Long"],
    ...     "liquidated_user": ["0xa", "0xa", None]})
    >>> fills(rows)[["user", "dir", "liquidation_side"]]
      user         dir liquidation_side
    0  0xa  Close Long       liquidated
    1  0xb   Open Long     counterparty
    >>> len(fills(rows, "counterparty"))
    1
    """
    wanted = [side] if isinstance(side, str) else list(side)
    if wrong := [name for name in wanted if name not in _SIDES]:
        raise ValueError(f"side must be of {', '.join(_SIDES)}, not {wrong[0]!r}")
    given = count_once(fills, "fills")
    frame: columns.Frame = nw.from_native(columns.normalise_frame(given))
    have = frame.collect_schema().names()
    if not {"dir", "liquidated_user", "liquidation_method"} & set(have):
        columns.require_columns(
            frame, ["liquidated_user"], "fills", "or dir, which tells backstop ones"
        )
    told = [n for n in ("dir", "liquidated_user", "liquidation_method") if n in have]
    if "dir" in told and all(columns.is_empty_column(frame, name) for name in told):
        columns.require_some_values(frame, "dir", "fills", "says which fills are liquidations")
    frame = frame.with_columns(
        liquidation_side=nw.when(directions.is_liquidation(have, account))
        .then(nw.lit("liquidated"))
        .when(directions.is_auto_deleveraging(have))
        .then(nw.lit("deleveraged"))
        .when(directions.is_liquidation_counterparty(have, account))
        .then(nw.lit("counterparty"))
        .otherwise(nw.lit(""))
    )
    result = frame.filter(nw.col("liquidation_side").is_in(wanted or ["nothing"]))
    return columns.result_from_frame(
        result, {"fills": given}, helper="liquidations.fills", side=wanted
    )
