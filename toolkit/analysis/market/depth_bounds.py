"""Whether depth and slippage tell of the same books."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.analysis.common import columns, timestamps
from toolkit.analysis.common.provenance import result_provenance
from toolkit.analysis.common.repeated_rows import count_once
from toolkit.contract.dexes import join_coin
from toolkit.rules.depth import slippage_bounds

Floats = npt.NDArray[np.float64]

_SIDES = {
    # who takes: (what it costs, what it takes from, sign)
    "buy": ("buy_slippage_bps", "ask_depth_usd", 1),
    "sell": ("sell_slippage_bps", "bid_depth_usd", -1),
}
_DEPTH = ("timestamp_ms", "dex", "coin", "bps", "bid_depth_usd", "ask_depth_usd")
_SAMPLE = ("amount_usd", "half_spread_bps", "buy_slippage_bps", "sell_slippage_bps")
_ROUNDED = 0.01  # bps: half spread and slippage have two decimals
_RESULT = {
    "coin": "str", "side": "str", "amount_usd": "float64", "half_spread_bps": "float64",
    "slippage_bps": "float64", "least_bps": "float64", "most_bps": "float64",
    "age_seconds": "float64", "consistent": "boolean", "outside_bps": "float64",
}  # fmt: skip


def consistency(
    depth: Any, samples: Any, *, max_age: float = 1.0, slack: float = 0.0
) -> pd.DataFrame:
    """Hold slippage samples against the depth of the same moment: each bounds the other.

    What rests within 10 bps costs at most 10 bps, what does not costs at least as much; a size
    that fits into the widest band cannot be missing for want of liquidity.

    Parameters
    ----------
    depth : DataFrame
        Batches as `tk.current_depth` gives them (pandas, Polars, DuckDB). A row that is given
        twice counts once.
    samples : DataFrame
        As `tk.slippage_history` gives them; rows given twice stand once.
    max_age : float, default 1
        Seconds that a batch may be older or younger than the sample.
    slack : float, default 0
        Share by which the depth may have changed in between.

    Returns
    -------
    DataFrame
        pandas, one row for each sample and side, sorted by time, coin, size and side:
        ``timestamp``, ``coin``, ``side``, ``amount_usd``, ``half_spread_bps``,
        ``slippage_bps``, then

        - ``least_bps``, ``most_bps``: what the depth allows; infinite where the size is larger
          than the widest band holds;
        - ``age_seconds``: of the batch at the time of the sample;
        - ``consistent`` boolean: missing where there was no batch of that market in time;
        - ``outside_bps``: by how much the sample lies outside, beyond what two decimals hide: 0
          inside, infinite for a missing sample of a size that was there.

    Raises
    ------
    MissingColumns
        If a column is missing or holds text.
    ValueError
        If `max_age` or `slack` is negative, or `slack` is not below 1.

    Notes
    -----
    `toolkit.rules.depth.slippage_bounds`; depth and slippage as the specification defines them.

    Examples
    --------
    >>> batch = pd.DataFrame({"dex": "hyperliquid", "coin": "XYZ", "bps": [10, 25],
    ...     "timestamp_ms": pd.to_datetime([0, 0], unit="ms", utc=True),
    ...     "bid_depth_usd": [1e3, 3e3], "ask_depth_usd": [1e3, 3e3]})
    >>> rows = pd.DataFrame({"timestamp": pd.to_datetime([0], unit="ms", utc=True),
    ...     "coin": "XYZ", "half_spread_bps": 2.0, "amount_usd": 2e3,
    ...     "buy_slippage_bps": 9.0, "sell_slippage_bps": 19.0})
    >>> names = ["side", "least_bps", "slippage_bps", "most_bps", "consistent", "outside_bps"]
    >>> consistency(batch, rows)[names].round(1)
       side  least_bps  slippage_bps  most_bps  consistent  outside_bps
    0   buy        6.0           9.0      17.5        True          0.0
    1  sell        6.0          19.0      17.5       False          1.5
    """
    samples = count_once(samples, "samples")
    depth = count_once(depth, "depth")
    if max_age < 0 or not 0 <= slack < 1:
        raise ValueError(f"max_age={max_age!r} and slack={slack!r}: at least 0, slack below 1")
    needed = ("timestamp", "coin", *_SAMPLE)
    rows = columns.pandas_columns(samples, "samples", needed, amounts=_SAMPLE)
    books = columns.pandas_columns(depth, "depth", _DEPTH, amounts=_DEPTH[-2:])
    books["_ms"] = timestamps.ms_from_times(books["timestamp_ms"])
    books = books.merge(_markets(books), on=["dex", "coin"], how="left")
    rows["_market"] = rows["coin"].astype("str")
    rows["_ms"] = timestamps.ms_from_times(rows["timestamp"])
    parts = [_held(rows, _wide(books, side), side, max_age, slack) for side in _SIDES]
    made = pd.concat(parts, ignore_index=True).astype(_RESULT)
    order = ["timestamp", "coin", "amount_usd", "side", "slippage_bps"]
    made = made.sort_values(order, kind="stable", ignore_index=True)
    facts = result_provenance({"depth": depth, "samples": samples})
    made.attrs["toolkit"] = {**facts, "helper": "depth.consistency"}
    return made


def _markets(books: pd.DataFrame) -> pd.DataFrame:
    """Name the market of each dex and coin as samples do."""
    pairs = books[["dex", "coin"]].drop_duplicates(ignore_index=True)
    names = [join_coin(*pair) for pair in zip(pairs["dex"], pairs["coin"], strict=True)]
    return pairs.assign(_market=pd.Series(names, dtype="str", index=pairs.index))


def _wide(books: pd.DataFrame, side: str) -> pd.DataFrame:
    """Give one row a market and moment, one column a band."""
    rows = books.drop_duplicates(["_market", "_ms", "bps"])
    made = rows.pivot(index=["_market", "_ms"], columns="bps", values=_SIDES[side][1])
    return made.dropna().sort_index(axis=1)


def _held(
    rows: pd.DataFrame, books: pd.DataFrame, side: str, max_age: float, slack: float
) -> pd.DataFrame:
    column, _, sign = _SIDES[side]
    place, age = _nearest(rows, books, max_age)
    there = place >= 0
    least, most = (np.full(len(rows), np.nan) for _ in range(2))
    usd, half = rows["amount_usd"].to_numpy(), rows["half_spread_bps"].to_numpy()
    widths = books.columns.to_numpy(dtype="float64")
    around = books.to_numpy(dtype="float64")[place[there]]
    ends = ((1 + slack, 0, least), (1 - slack, 1, most))
    for factor, which, out in ends:
        mine = usd[there], factor * around, widths, half[there]
        out[there] = slippage_bounds(*mine, sign)[which]
    bps = rows[column].to_numpy()
    known = there & ~np.isnan(half)
    outside = _outside(bps, least, most)
    return pd.DataFrame(
        {
            "timestamp": rows["timestamp"],
            "coin": rows["coin"],
            "side": side,
            "amount_usd": usd,
            "half_spread_bps": half,
            "slippage_bps": bps,
            "least_bps": np.where(known, least, np.nan),
            "most_bps": np.where(known, most, np.nan),
            "age_seconds": age,
            "consistent": pd.array(outside == 0, dtype="boolean"),
            "outside_bps": np.where(known, outside, np.nan),
        }
    ).assign(consistent=lambda made: made["consistent"].mask(~known))


def _outside(bps: Floats, least: Floats, most: Floats) -> Floats:
    beyond = np.maximum(least - _ROUNDED - bps, bps - most - _ROUNDED)
    thin = np.where(np.isinf(most), 0.0, np.inf)
    return np.where(np.isnan(bps), thin, np.maximum(beyond, 0.0))


def _nearest(
    rows: pd.DataFrame, books: pd.DataFrame, max_age: float
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Give the row of the nearest book in time of the same market (or -1), and its age."""
    places = np.full(len(rows), -1, dtype=np.int64)
    ages = np.full(len(rows), np.nan)
    markets = books.index.get_level_values("_market").to_numpy()
    times = books.index.get_level_values("_ms").to_numpy(dtype="float64")
    starts = {m: np.flatnonzero(markets == m) for m in pd.unique(markets)}
    for market, group in rows.groupby("_market").indices.items():
        if market not in starts or not len(starts[market]):
            continue
        own = starts[market]
        mine, theirs = rows["_ms"].to_numpy()[group], times[own]
        after = np.clip(np.searchsorted(theirs, mine), 1, max(len(theirs) - 1, 1))
        after = np.minimum(after, len(theirs) - 1)
        before = np.maximum(after - 1, 0)
        nearer = np.where(mine - theirs[before] <= theirs[after] - mine, before, after)
        age = (mine - theirs[nearer]) / 1000
        near = np.abs(age) <= max_age
        places[group[near]] = own[nearer[near]]
        ages[group[near]] = age[near]
    return places, ages
