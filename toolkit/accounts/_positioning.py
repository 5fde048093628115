"""Positioning: who is long and short, by the size of accounts, over time."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.accounts._concentration import class_names
from toolkit.accounts._values import values_table
from toolkit.arrays import Flags, Floats, Ints
from toolkit.prepare import states
from toolkit.prepare.door import NO_TIME, Frame, Table, as_pandas, utc_times
from toolkit.prepare.groups import number_groups, number_rows, sum_groups
from toolkit.prepare.provenance import finish
from toolkit.statistics import check_level, student

EDGES = (1e4, 1e5, 1e6)
BATCH_GAP_MS = 60_000
"""Largest distance in milliseconds between two states of one batch that follow each other."""

_UNKNOWN = "unknown"


def positioning(
    positions: Frame,
    accounts: Frame | None = None,
    *,
    edges: Sequence[float] = EDGES,
    by: str | Iterable[str] = "coin",
    level: float = 0.95,
) -> pd.DataFrame:
    """Compute the net long share and the concentration of accounts, by size class and time.

    Parameters
    ----------
    positions : DataFrame
        Open positions of many accounts from `tk.batch_clearinghouse_states`: ``user, coin, szi,
        position_value, entry_px``, and ``time`` if there are several batches, and optionally
        ``dex``. Repeated rows count once.
    accounts : DataFrame, optional
        Accounts of the same states (``user, account_value``, and ``dex, time``), or
        `tk.account_value_snapshots`. The size of an account is then its value over all dexes. It is
        unknown if one of them is missing, and for the states of a unified or portfolio-margin
        account, whose collateral is in the spot wallet (see `buffers`). Without accounts, the size
        is the notional of all positions of an account.
    edges : sequence of float, default (1e4, 1e5, 1e6)
        Edges of the size classes in USD, rising. A size on an edge belongs to the class above it.
    by : str or list of str, default "coin"
        Groups next to time and size: columns of `positions`; an empty list for all coins together.
    level : float, default 0.95
        Level of the intervals.

    Returns
    -------
    DataFrame
        Sorted, with the columns of `by`, and

        - ``time``: time of the batch, UTC: the latest time of its positions. Only if the positions
          have it.
        - ``size``: class of the account's size, for example ``"10k to 100k"``; ``"all"`` for all
          classes together, and ``"unknown"`` for accounts without a value, or with a missing value
          on one dex.
        - ``accounts``: number of accounts with a position.
        - ``positions``: number of positions.
        - ``missing``: number of positions without a value, which do not count.
        - ``long_usd``: notional of long positions, in USD.
        - ``short_usd``: notional of short positions, in USD.
        - ``net_share``: net long share: (long - short) / (long + short), from -1 to 1.
        - ``low``: lower end of the interval of `net_share`; missing for fewer than two accounts.
        - ``high``: upper end of the interval of `net_share`.
        - ``long_accounts``: share of the accounts that are net long.
        - ``gain_bps``: gain of the open positions since their entry, at the mark price, in basis
          points of the entry value; missing if no entry price is known.
        - ``crowded_side``: side with the larger notional: ``long``, ``short`` or ``even``.
        - ``effective_accounts``: number of equally large accounts that would be as concentrated as
          the crowded side: 1 over the sum of squared shares.
        - ``top_share``: share of the crowded side that its largest account has.

    Raises
    ------
    MissingColumns
        If a column is missing, or numbers are text.
    ValueError
        If the edges do not rise, or `level` is not between 0 and 1.

    Notes
    -----
    The states of one batch have slightly different times. States belong to one batch if at most a
    minute lies between each state and the next one, and no account has two states on a dex at
    different times. If an account has two, its batches are separated at the longest time without a
    state between them.

    The interval treats the accounts as drawn from many like them: the jackknife of a ratio (Miller,
    1974), with Student's distribution for the effective number of accounts less one. For 120
    accounts of very different sizes, intervals of 95 % hold the truth in 93 % of samples. For the
    accounts of a whole exchange the share itself is exact, and long equals short for each coin.
    Effective number: the inverse Herfindahl index.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["a", "b", "c"], "coin": "X", "szi": [3.0, 1.0, -2.0],
    ...     "position_value": [330.0, 110.0, 220.0], "entry_px": [100.0, 110.0, 110.0]})
    >>> made = positioning(rows, edges=[300])
    >>> made[["size", "accounts", "net_share", "gain_bps", "effective_accounts"]].round(2)
               size  accounts  net_share  gain_bps  effective_accounts
    0           all         3       0.33    476.19                 1.6
    1     below 300         2      -0.33      0.00                 1.0
    2  300 and more         1       1.00   1000.00                 1.0
    """
    check_level(level)
    names = [*class_names(edges), _UNKNOWN]
    keys = [by] if isinstance(by, str) else list(by)
    amounts = ("szi", "position_value", "entry_px")
    table = Table(positions, "positions")
    rows = table.columns(
        ("user", "coin", *keys, *amounts), ("time", "dex", "leverage_type"), amounts
    )
    rows["user"] = rows["user"].astype("str").fillna("")
    moment = ["time"] if table.has("time") else []
    if moment:
        rows["_ms"] = table.ms()
    rows = rows[rows["szi"] != 0].reset_index(drop=True)
    owners = None if accounts is None else _read_owners(accounts, moment)
    if moment:
        _join_batches(rows, owners)
    sizes = _account_sizes(rows, owners)
    place = np.searchsorted(edges, sizes, side="right")
    place = np.where(np.isnan(sizes), len(names) - 1, place)
    cells, groups = number_groups(rows[[*moment, *keys]], missing_last=True)
    # Each account counts once in a group, with all of its positions in it.
    own = number_rows(cells, pd.factorize(rows["user"])[0])
    first = np.unique(own, return_index=True)[1]
    cell, size = cells[first], place[first]
    parts, code_of_part = np.unique(cell * len(names) + size, return_inverse=True)
    # Each account counts among all, and in the class of its size.
    codes = np.append(cell, len(groups) + code_of_part)
    figures = _figures(rows, own, codes, len(groups) + len(parts), level)
    group = np.append(np.arange(len(groups)), parts // len(names))
    size_of = np.append(np.full(len(groups), -1), parts % len(names))
    order = np.lexsort((size_of, group))
    of_group = groups.iloc[group[order]]
    result = pd.DataFrame(
        {
            **{name: of_group[name].array for name in moment},
            **{name: of_group[name].astype("str").array for name in keys},
            "size": pd.array(np.array([*names, "all"])[size_of[order]], dtype="str"),
            **{name: part[order] for name, part in figures.items()},
        }
    ).astype({"crowded_side": "str"})
    inputs = {"positions": positions, "accounts": accounts}
    return finish(result, inputs, helper="accounts.positioning", by=keys)


def _read_owners(accounts: Frame, moment: list[str]) -> pd.DataFrame:
    frame = as_pandas(accounts, "accounts")
    numbers = ("account_value", "cross_account_value", "account_mode")
    if "collateral_token" in frame:
        parts = frame.groupby("snapshot_id") if "snapshot_id" in frame else [("", frame)]
        values = []
        for _, part in parts:
            stated = {name: part[name].iloc[0] for name in moment if name in part}
            values.append(values_table(part, [], (), "accounts").assign(**stated))
        frame = pd.concat(values, ignore_index=True).rename(columns={"value": numbers[0]})
    table = Table(frame, "accounts")
    rows = table.columns(("user", "account_value"), (*moment, "dex", *numbers[1:]), numbers).astype(
        {"user": "str"}
    )
    if "time" in rows:
        rows["_ms"] = table.ms()
    return rows


def _join_batches(rows: pd.DataFrame, owners: pd.DataFrame | None) -> None:
    """Add the batch of each state as a column, and set the times of positions to their batch's."""
    own = states.dex_names(rows["coin"])
    frames, dexes = [rows], [rows["dex"].fillna(own) if "dex" in rows else own]
    if owners is not None and "time" in owners:
        frames.append(owners)
        # Without a column dex, several states of an account may be of one batch.
        dexes.append(owners.get("dex", pd.Series(None, owners.index, dtype="str")))
    user, dex = (
        pd.factorize(pd.concat(columns, ignore_index=True))[0]
        for columns in ([frame["user"] for frame in frames], dexes)
    )
    batch = _batch_numbers(user, dex, np.concatenate([frame["_ms"] for frame in frames]))
    for frame, numbers in zip(frames, np.split(batch, [len(rows)]), strict=False):
        frame["_batch"] = numbers
    rows["time"] = utc_times(rows.groupby("_batch")["_ms"].transform("max").to_numpy())


def _batch_numbers(user: Ints, dex: Ints, ms: Ints) -> Ints:
    """Return the number of the batch of each state, counted by time; -1 without a time.

    - ``user``, ``dex``: numbers of the names; -1 is missing
    """
    known = ms != NO_TIME
    moments, place = np.unique(ms[known], return_inverse=True)
    gaps = np.diff(moments)
    begins = np.concatenate([[True], gaps > BATCH_GAP_MS])[: len(moments)]
    latest = np.maximum.accumulate(np.where(begins, np.arange(len(moments)), 0))
    has_names = ((user >= 0) & (dex >= 0))[known]
    owner = number_rows(user[known][has_names], dex[known][has_names])
    owner, at = np.unique(np.stack([owner, place[has_names]]), axis=1)
    is_next = np.diff(owner) == 0
    before, after = at[:-1][is_next], at[1:][is_next]
    twice = before >= latest[after]
    cut = 0
    for later, earlier in np.unique(np.stack([after[twice], before[twice]]), axis=1).T.tolist():
        if cut <= earlier:
            cut = earlier + 1 + int(gaps[earlier:later].argmax())
            begins[cut] = True
    numbers = np.full(len(ms), -1, dtype=np.int64)
    numbers[known] = np.cumsum(begins)[place] - 1
    return numbers


def _account_sizes(rows: pd.DataFrame, owners: pd.DataFrame | None) -> Floats:
    """Return the size of the account of each position; NaN if it is not known."""
    on = [name for name in ("_batch", "user") if name in rows]
    if owners is None:
        codes, accounts = number_groups(rows[on])
        notional = np.nan_to_num(rows["position_value"].abs().to_numpy())
        return np.bincount(codes, notional, len(accounts)).astype(np.float64)[codes]
    on = [name for name in on if name in owners]
    own, held, count = states.pair_accounts(owners, rows, on)
    # One missing value makes the value of its account missing.
    size = sum_groups(own, owners["account_value"].to_numpy(), count)
    size[np.bincount(own, minlength=count) == 0] = np.nan
    if "cross_account_value" in owners:
        value = np.sign(rows["szi"]) * rows["position_value"].abs()
        stated = rows.assign(
            unrealized_pnl=value - rows["szi"] * rows["entry_px"], position_value=value.abs()
        )
        backed, mode = states.find_spot_backed(owners, stated, own, held, count)
        found = own[backed[own]]
        states.warn_spot_backed(owners["user"][backed[own]], mode[found])
        size[backed] = np.nan
    return np.asarray(size[held])


def _figures(
    rows: pd.DataFrame, own: Ints, codes: Ints, count: int, level: float
) -> dict[str, npt.NDArray[Any]]:
    """Return the figures of each group of accounts.

    - ``own``: the account in a group that each position belongs to
    - ``codes``: the groups of these accounts, for all of them once and then again
    """

    def sums(part: Floats | Flags) -> Floats:
        return np.bincount(codes, part, count).astype(np.float64)

    def largest(part: Floats) -> Floats:
        found = np.zeros(count)
        np.maximum.at(found, codes, part)
        return found

    def held(part: Floats | Flags) -> Floats:
        """Return the sums of each account's positions."""
        return np.tile(sum_groups(own, np.nan_to_num(part.astype(np.float64)), len(codes) // 2), 2)

    szi, px = rows["szi"].to_numpy(), rows["entry_px"].to_numpy()
    value = np.sign(szi) * np.abs(rows["position_value"].to_numpy())
    # What a position gained since its entry; positions without an entry price are left out.
    gained = value - szi * px
    entry = sums(held(np.where(np.isnan(gained), np.nan, np.abs(szi) * px)))
    net, gross = held(value), held(np.abs(value))
    long, short = (gross + net) / 2, (gross - net) / 2
    longs, shorts, whole = sums(long), sums(short), sums(gross)
    accounts = sums(gross > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (longs - shorts) / (longs + shorts)
        # By how much the share would differ without each account (jackknife).
        part = gross / whole[codes]
        part = np.where(part < 1, part, np.nan)
        missed = (net / whole[codes] - (sums(net) / whole)[codes] * part) / (1 - part)
        several = np.where(accounts > 1, accounts, np.nan)
        error = np.sqrt((several - 1) / several * sums(np.nan_to_num(missed**2)))
        freedom = np.maximum(whole**2 / sums(gross**2) - 1, 1.0)
        half = error * student(level, freedom)
        is_even = np.isclose(longs, shorts, rtol=1e-9, atol=0.0)  # sums are rounded
        is_long = is_even | (longs > shorts)
        larger = np.where(is_long, longs, shorts)
        squares = np.where(is_long, sums(long**2), sums(short**2))
        top = np.where(is_long, largest(long), largest(short))
        return {
            "accounts": accounts.astype(np.int64),
            "positions": sums(held(~np.isnan(value))).astype(np.int64),
            "missing": sums(held(np.isnan(value))).astype(np.int64),
            "long_usd": longs,
            "short_usd": shorts,
            "net_share": share,
            "low": np.maximum(share - half, -1.0),
            "high": np.minimum(share + half, 1.0),
            "long_accounts": sums(net > 0) / np.where(accounts > 0, accounts, np.nan),
            "gain_bps": 1e4 * sums(held(gained)) / np.where(entry > 0, entry, np.nan),
            "crowded_side": np.select([is_even, is_long], ["even", "long"], "short"),
            "effective_accounts": larger**2 / squares,
            "top_share": top / larger,
        }
