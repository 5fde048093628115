"""Audit: recompute the exchange's closed PnL from fills, and find missing fills."""

from typing import Literal, get_args

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.prepare import Fills
from toolkit.prepare.average import SizeDecimals, average_prices, expected_2023
from toolkit.prepare.door import Frame
from toolkit.prepare.fills import check_chains

Rule = Literal["current", "2023"]


def audit(
    fills: Frame | Fills, sz_decimals: SizeDecimals, *, rule: Rule = "current"
) -> pd.DataFrame:
    """Recompute the closed PnL of every fill by the exchange's rules for perps and for spot.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them.
        Columns ``coin, px, sz, side, time, start_position, closed_pnl``; ``user`` if there are
        several accounts; ``tx_index`` if there are ties; ``fee`` and ``fee_token`` for spot. Do
        not fetch them with ``aggregate_by_time=True``: merged fills do not show the position before
        each fill, so ``chain_break`` would be True although no fill is missing.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).
    rule : {"current", "2023"}
        The rule of the exchange: the current one, which holds for all data of the service, or the
        rule of 2023, for recordings from then.

    Returns
    -------
    DataFrame
        The same rows with the same index (repeated rows once), with three more columns:

        - ``expected_closed_pnl``: closed PnL by the rule, in USD. For perps it is missing before
          the position is flat for the first time, after a break until the position is flat again,
          and if `sz_decimals` does not have the coin. For spot and outcome tokens it is missing
          while a part of the balance came from outside the fills, because its cost is not known
        - ``difference``: ``closed_pnl - expected_closed_pnl``, in USD
        - ``chain_break`` bool: True if the fill does not start from the position after the fill
          before it (same account and coin), so that fills between them are missing. On spot, a
          transfer, staking or priority gas has the same effect and does not change the cost of the
          remaining tokens; a difference of one unit of the recorded precision is rounding

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.
    ValueError
        If `rule` is unknown.

    Notes
    -----
    Rows are sorted by time, by ``tx_index`` if every row has one, and within a tie by the chain of
    positions. Closed PnL is rounded to 1e-8. Rules: `toolkit.rules.closed_pnl`, which also has the
    rule of 2023, and for spot and outcome tokens `toolkit.rules.spot_cost` (docs/live_service.md,
    sections 3 and 7), in their quote token.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 110.0], "sz": [2.0, 1.0], "side": ["B", "A"],
    ...     "time": pd.to_datetime([0, 1], unit="ms", utc=True), "start_position": [0.0, 2.0],
    ...     "closed_pnl": [0.0, 10.0]})
    >>> audit(fills, {"BTC": 5})[["expected_closed_pnl", "difference", "chain_break"]]
       expected_closed_pnl  difference  chain_break
    0                  0.0         0.0        False
    1                 10.0         0.0        False
    """
    fills = prepare.fills(fills)
    if rule not in get_args(Rule):
        raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(get_args(Rule))}")
    table = fills.table
    check_chains(fills)
    steps, average = fills.steps, average_prices(fills, sz_decimals)
    expected = average.expected
    if rule == "2023":
        expected = np.where(steps.spot, expected, expected_2023(fills, sz_decimals))
    by_row = np.argsort(steps.rows)
    expected = expected[by_row]
    result: pd.DataFrame = table.frame.assign(
        expected_closed_pnl=expected,
        difference=np.round(table.number("closed_pnl") - expected, 8),
        chain_break=(average.gap != 0)[by_row],
    )
    return result
