"""Positions after each fill: size, average entry price by the exchange's rule, closed PnL."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import pandas as pd

from toolkit import prepare
from toolkit.errors import MissingColumns
from toolkit.prepare import Fills
from toolkit.prepare.average import SizeDecimals, average_prices
from toolkit.prepare.door import Frame, Table, utc_times
from toolkit.prepare.fills import check_chains, owner_columns
from toolkit.prepare.provenance import finish
from toolkit.prepare.states import aware_ms
from toolkit.times import Time

MarkPrices = Mapping[str, float | Decimal] | Frame
"""Coin -> mark price, or a frame with ``name`` and ``mark_px``."""


def positions(fills: Frame | Fills, sz_decimals: SizeDecimals) -> pd.DataFrame:
    """Return the position after every fill: its size, its average entry price, its closed PnL.

    Parameters
    ----------
    fills : DataFrame
        Fills of one or several accounts in any order, as `tk.user_fills_by_time` returns them.
        Columns ``coin, px, sz, side, time, start_position, closed_pnl``; ``user`` if there are
        several accounts; ``tx_index`` if there are ties; ``fee`` and ``fee_token`` for spot.
    sz_decimals : mapping of coin to int, or DataFrame
        Size decimals of the perps: a dict, or a frame of `tk.meta` (``name``, ``sz_decimals``).
        The entry price of a coin that it does not have is missing.

    Returns
    -------
    DataFrame
        One row per fill, in the order of execution, by user and coin:

        - ``user``: the account in lower case, if the fills have this column
        - ``coin``: the coin
        - ``time``: the time of the fill, UTC
        - ``start_position``: position before the fill, in units of the coin, positive for long
        - ``change``: change of the position by the fill, in units of the coin, positive for buys
        - ``position``: position after the fill, ``start_position + change``, positive for long
        - ``entry_px``: average entry price of the position after the fill, by the exchange's rule;
          for spot and outcome tokens the average cost, including fees in the token. It is missing
          if the position is flat, or if the history does not determine it
        - ``px``: price of the fill, in USD
        - ``closed_pnl``: closed PnL that the exchange states, in USD
        - ``expected_closed_pnl``: closed PnL by the rule, in USD; missing if it is not known
        - ``chain_break`` bool: True if fills before this one are missing, or if spot tokens came or
          left without a fill
        - ``gap``: size that came (+) or left (-) before this fill without a fill, in units of the
          coin; 0 if there is no break. On spot a difference of one unit of the recorded precision
          is rounding and no gap

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.

    Notes
    -----
    The rule: an exact entry notional grows by px * sz when a fill opens, and shrinks by the closed
    share when a fill closes. The entry price is notional / size, **truncated** to 6 - szDecimals
    decimals; `tk.pnl.audit` checks this rule with the closed PnL of the fills (docs/accounting.md,
    "The check against the exchange"). Spot and outcome tokens have an average cost that is not
    truncated; tokens of a negative gap leave at this cost, tokens of a positive gap have an unknown
    cost (docs/live_service.md, sections 3 and 7). Repeated rows count once.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0, 101.0, 110.0], "sz": [2.0, 1.0, 2.0],
    ...     "side": ["B", "B", "A"], "time": pd.to_datetime([0, 1, 2], unit="ms", utc=True),
    ...     "start_position": [0.0, 2.0, 3.0], "closed_pnl": [0.0, 0.0, 19.4]})
    >>> positions(fills, {"BTC": 5})[["position", "entry_px", "expected_closed_pnl"]]
       position  entry_px  expected_closed_pnl
    0       2.0     100.0                  0.0
    1       3.0     100.3                  0.0
    2       1.0     100.3                 19.4
    """
    fills = prepare.fills(fills)
    check_chains(fills)
    table, steps, average = fills.table, fills.steps, average_prices(fills, sz_decimals)
    made = {
        **owner_columns(fills, np.arange(len(steps))),
        "time": utc_times(steps.ms),
        "start_position": steps.start / steps.scale,
        "change": (steps.end - steps.start) / steps.scale,
        "position": steps.end / steps.scale,
        "entry_px": average.entry,
        "px": table.number("px")[steps.rows],
        "closed_pnl": table.number("closed_pnl")[steps.rows],
        "expected_closed_pnl": average.expected,
        "chain_break": average.gap != 0,
        "gap": average.gap,
    }
    return finish(pd.DataFrame(made, copy=False), {"fills": table.frame}, helper="pnl.positions")


def unrealised(
    fills: Frame | Fills, marks: MarkPrices, sz_decimals: SizeDecimals, at: Time | None = None
) -> pd.DataFrame:
    """Return the open positions and their unrealised PnL at given mark prices.

    Parameters
    ----------
    fills, sz_decimals
        See `tk.pnl.positions`.
    marks : mapping of coin to price, or DataFrame
        Mark prices: a dict, or a frame of `tk.meta_and_asset_ctxs` (``name``, ``mark_px``).
    at : int or datetime, optional
        A time in milliseconds or with a time zone. Fills up to and including this time count. By
        default all fills.

    Returns
    -------
    DataFrame
        One row per open perp position, by user and coin, with columns as in the positions of
        `tk.batch_clearinghouse_states`:

        - ``user``: the account, if the fills have this column
        - ``coin``: the coin
        - ``szi``: size of the position in units of the coin, positive for long
        - ``entry_px``: average entry price, in USD; missing if `sz_decimals` does not have the
          coin, or if the history does not determine it
        - ``mark_px``: mark price, in USD; missing if `marks` does not have it
        - ``position_value``: size times mark price, in USD, never negative; missing if the mark
          price is
        - ``unrealized_pnl``: ``szi * (mark_px - entry_px)``, in USD; missing if one of the prices
          is

    Raises
    ------
    MissingColumns
        If a column is missing, contains text, or has missing values.

    Notes
    -----
    The entry price is truncated as the exchange does it when a position is closed, so that
    unrealised PnL and later closed PnL add up to the last digit.

    Examples
    --------
    >>> import pandas as pd
    >>> fills = pd.DataFrame({
    ...     "coin": "BTC", "px": [100.0], "sz": [2.0], "side": ["A"], "start_position": [0.0],
    ...     "time": pd.to_datetime([0], unit="ms", utc=True), "closed_pnl": [0.0]})
    >>> unrealised(fills, {"BTC": 90.0}, {"BTC": 5})[["coin", "szi", "unrealized_pnl"]]
      coin  szi  unrealized_pnl
    0  BTC -2.0            20.0
    """
    fills = prepare.fills(fills)
    if at is not None:
        before = fills.table.ms("time") <= aware_ms(at)
        fills = prepare.fills(fills.table.frame[before], account=fills.account)
    prices = mark_prices(marks)
    check_chains(fills, warns=False)
    steps = fills.steps
    places = np.flatnonzero(steps.last & ~steps.spot & (steps.end != 0))
    size, entry = (
        (steps.end / steps.scale)[places],
        average_prices(fills, sz_decimals).entry[places],
    )
    mark = np.array([prices.get(coin, np.nan) for coin in steps.coins])[steps.coin[places]]
    made = {
        **owner_columns(fills, places),
        "szi": size,
        "entry_px": entry,
        "mark_px": mark,
        "position_value": np.abs(size) * mark,
        "unrealized_pnl": size * (mark - entry),
    }
    return finish(pd.DataFrame(made), {"fills": fills.table.frame}, helper="pnl.unrealised")


def mark_prices(marks: MarkPrices) -> dict[str, float]:
    """Return mark prices by coin, from a mapping or a frame; only positive ones."""
    if isinstance(marks, Mapping):
        return {coin: float(px) for coin, px in marks.items() if px > 0}
    table = Table(marks, "marks")
    table.require(("name", "mark_px"))
    names, prices = table.text("name"), table.number("mark_px")
    known = prices > 0
    coins = [names.values[code] for code in names.codes[known].tolist()]
    found = dict(zip(coins, prices[known].tolist(), strict=True))
    if len(found) < len(coins):
        (coin, _), *_ = Counter(coins).most_common(1)
        raise MissingColumns(f"marks: {coin} has several mark prices. Pass the prices of one time")
    return found
