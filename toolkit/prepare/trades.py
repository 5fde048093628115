"""Trades of a market: fills that met on a book, with their side, their taker and their order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare import groups as grouping
from toolkit.prepare.door import Names, Table
from toolkit.prepare.roles import is_off_book, warn_missing_directions

NEEDED: Final = ("coin", "px", "sz", "side", "time")
LIQUIDITY: Final = "liquidity"
_SIGNS: Final = {"B": 1.0, "A": -1.0}
_BEFORE_ALL: Final = -(1 << 42)


@dataclass(frozen=True)
class Trades:
    """Fills that met on a book, in the order of time; arrays have one value for each fill.

    - ``rows``: the places of the fills in the table
    - ``coin``: the coins, with their names in order
    - ``ms``: time; a missing time is before all prices
    - ``px``, ``sz``, ``usd``: price, size and their product
    - ``sign``: 1 for a buy, -1 for a sell, NaN if the side is not known
    - ``taker``: 1 for the taker, 0 for the maker, -1 if nobody knows
    - ``number``: number of the trade; the fills of both its sides have the same one
    """

    rows: Ints
    coin: Names
    ms: Ints
    px: Floats
    sz: Floats
    usd: Floats
    sign: Floats
    taker: Ints
    number: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, places: Any) -> "Trades":
        """Return some of the trades."""
        arrays = {name: each[places] for name, each in vars(self).items() if name != "coin"}
        return Trades(coin=self.coin.take(places), **arrays)


def read_signs(side: Names) -> Floats:
    """Return 1 for a buy (``B``), -1 for a sell (``A``), NaN if the side is not known."""
    return np.asarray(side.facts(lambda name: _SIGNS.get(name, np.nan)))


def read_trades(table: Table, needed: Iterable[str] = ()) -> Trades:
    """Return the fills that met on a book.

    - ``needed``: columns that the frame must have, beside those of `NEEDED`
    """
    table.require(dict.fromkeys((*NEEDED, *needed)))
    warn_missing_directions(table)
    rows = np.flatnonzero(~is_off_book(table))
    coin, ms = table.text("coin").sorted().take(rows), np.maximum(table.ms(), _BEFORE_ALL)[rows]
    px, sz = table.number("px")[rows], table.number("sz")[rows]
    sign = read_signs(table.text("side"))[rows]
    crossed, known = (flags[rows] for flags in table.flag("crossed"))
    taker = np.where(known, crossed, -1)
    # The place of the fill of the other side of each fill's trade; -1 if there is none.
    tid, other = table.ids("tid")[0][rows], np.full(len(rows), -1)
    order = np.flatnonzero(tid > 0)
    order = order[np.lexsort((coin.codes[order], tid[order]))]
    same = (np.diff(tid[order]) == 0) & (np.diff(coin.codes[order]) == 0)
    # A trade has two fills: three that share an id are no trade.
    alone = np.concatenate([[False], same, [False]])
    first = np.flatnonzero(same & ~alone[:-2] & ~alone[2:])
    left, right = order[first], order[first + 1]
    fits = (sign[left] != sign[right]) & (ms[left] == ms[right])
    left, right = left[fits], right[fits]
    other[left], other[right] = right, left
    paired = other >= 0
    taker = np.where((taker < 0) & paired & (taker[other] >= 0), 1 - taker[other], taker)
    number = np.where(paired, np.minimum(other, np.arange(len(rows))), np.arange(len(rows)))
    trades = Trades(rows, coin, ms, px, sz, px * sz, sign, taker, number)
    # A total order, so that sums do not depend on the order of the input.
    return trades.take(np.lexsort((sign, sz, px, coin.codes, ms)))


def find_parents(table: Table, rows: Ints) -> tuple[Flags, Ints]:
    """Return whether fills are slices of a TWAP, and the id of their TWAP or order."""
    (twap, is_twap), (oid, _) = table.ids("twap_id"), table.ids("oid")
    return is_twap[rows], np.where(is_twap, twap, oid)[rows]


def trade_columns(table: Table, trades: Trades, keys: Sequence[str]) -> pd.DataFrame:
    """Return the columns by which trades are grouped; ``liquidity`` is taker or maker."""
    made = grouping.group_columns(
        table, [key for key in keys if key != LIQUIDITY], rows=trades.rows
    )
    if LIQUIDITY in keys:
        made[LIQUIDITY] = Names(trades.taker + 1, ["", "maker", "taker"]).texts()
    return made[[*keys]]


class GroupedTrades(NamedTuple):
    """Trades in groups.

    - ``trades``: the trades
    - ``codes``: the group of each trade, from 0
    - ``groups``: the sorted groups, one row each
    - ``cluster``: the cluster of each trade, from 0; -1 for none
    """

    trades: Trades
    codes: Ints
    groups: pd.DataFrame
    cluster: Ints

    def of_one_side(self) -> "GroupedTrades":
        """Return the fills that count: of a trade with both sides in one group, the taker's.

        What one side gains the other loses, so their sum is 0, whatever the prices are. If nobody
        knows who was the taker, the trade counts once, without a side.
        """
        trades, codes = self.trades, self.codes
        order = np.lexsort((-trades.taker, codes, trades.number))
        again = ~grouping.starts_group(trades.number[order], codes[order])
        if not again.any():
            return self
        first = order[np.flatnonzero(again) - 1]
        sign = trades.sign.copy()
        sign[first[trades.taker[first] < 0]] = np.nan
        kept = np.sort(order[~again])
        trades = replace(trades, sign=sign).take(kept)
        return GroupedTrades(trades, codes[kept], self.groups, self.cluster[kept])


def group_trades(table: Table, keys: Sequence[str], cluster: str = "") -> GroupedTrades:
    """Return trades by the columns `keys`, with clusters that are resampled for intervals.

    - ``cluster``: a column or a part of the calendar; without it all clusters are 0
    """
    wanted = [key for key in (*keys, cluster) if key]
    trades = read_trades(table, ["crossed"] if LIQUIDITY in wanted else [])
    codes, groups = grouping.number_groups(trade_columns(table, trades, keys), missing_last=True)
    return GroupedTrades(trades, codes, groups, read_clusters(table, trades, cluster))


def read_clusters(table: Table, trades: Trades, cluster: str) -> Ints:
    """Return the cluster of each trade, from 0 in the order of their names; -1 for none."""
    if not cluster:
        return np.zeros(len(trades), dtype=np.int64)
    if cluster in grouping.CALENDAR:
        values: Any = grouping.period_start(trades.ms, cluster)
    else:
        values = trade_columns(table, trades, [cluster])[cluster]
    return np.asarray(pd.factorize(values, sort=True)[0].astype(np.int64))
