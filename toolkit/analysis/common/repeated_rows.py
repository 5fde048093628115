"""Rows that are given twice: which records have an identity, and how each is counted once.

Frames that researchers put together overlap: two ranges that meet, an archive beside a fetch. A
record with an identity (a fill has its trade id, a payment its account, coin and time) that
stands twice is one event, and every helper counts it once and says how many rows it left out. A
row without an identity, such as a fill with trade id 0 (docs/live_service.md, section 7), is never
left out.

Every public helper passes its frames through `count_once`. The check sorts one whole number a
row, so that it costs little where nothing repeats; a lazy frame is read for it, its number and
time columns alone, and stays lazy.
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.analysis.common import columns
from toolkit.errors import RepeatedRows

__all__ = ["ROW_IDENTITIES", "RowIdentity", "count_once"]

Keys = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

_FOLD: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplying loses nothing
_MIX: Final = np.uint64(29)
_NO_HASH: Final = f"0x{'0' * 64}"


@dataclass(frozen=True, kw_only=True)
class RowIdentity:
    """What makes two rows of a record the same event.

    Attributes
    ----------
    needed : tuple of str
        Columns without which rows of a frame have no identity.
    also : tuple of str
        Further columns that must agree, where the frame has them.
    number : str
        A column of numbers; a row in which it is 0 or missing has no identity.
    text : str
        A column of hashes; a row in which it is all zeros or missing has no identity.
    in_full : bool
        Whether all columns must agree, but for nested ones.
    """

    needed: tuple[str, ...]
    also: tuple[str, ...] = ()
    number: str = ""
    text: str = ""
    in_full: bool = False


ROW_IDENTITIES: Final[Mapping[str, RowIdentity]] = {
    "fills": RowIdentity(
        needed=("tid", "coin", "time", "side", "px", "sz"),
        also=("user", "account", "oid"),
        number="tid",
    ),
    "funding": RowIdentity(
        needed=("coin", "time", "usdc"), also=("user", "account", "szi", "funding_rate")
    ),
    "ledger": RowIdentity(needed=("time", "type", "hash"), text="hash", in_full=True),
    "orders": RowIdentity(needed=("oid", "status", "status_timestamp"), also=("user", "tx_index")),
    "samples": RowIdentity(
        needed=("coin", "amount_usd", "timestamp"),
        also=("dex", "half_spread_bps", "buy_slippage_bps", "sell_slippage_bps"),
    ),
    "depth": RowIdentity(
        needed=("coin", "timestamp_ms", "bps"), also=("dex", "bid_depth_usd", "ask_depth_usd")
    ),
    "history": RowIdentity(needed=("week", "net_apr", "gross_apr"), also=("validator",)),
    "positions": RowIdentity(
        needed=("user", "coin", "szi"), also=("dex", "time", "position_value", "unrealized_pnl")
    ),
    "accounts": RowIdentity(
        needed=("user", "account_value"), also=("dex", "time", "cross_account_value")
    ),
    "snapshot": RowIdentity(needed=("user", "account_value"), in_full=True),
    "twaps": RowIdentity(needed=("twap_id",), in_full=True),
    "auctions": RowIdentity(needed=("start_time_seconds", "duration_seconds"), in_full=True),
    "curve": RowIdentity(needed=("time",), in_full=True),
}
"""The records whose rows have an identity, by the name of what a frame holds."""


def count_once(native: Any, record: str, what: str = "") -> Any:
    """Return a frame in which each row with an identity stands once; warn of what was left out.

    Parameters
    ----------
    native : DataFrame
        pandas, Polars eager or lazy, DuckDB relation.
    record : str
        Which of `ROW_IDENTITIES` the rows are of.
    what : str, optional
        What messages call the frame; by default as the record.

    Returns
    -------
    DataFrame
        Of the same engine; the frame itself where nothing repeats. The first of equal rows is
        kept, with its index. On a lazy engine any is kept, and the frame stays lazy.

    Warns
    -----
    RepeatedRows
        How many rows repeat another one, by which columns.

    Examples
    --------
    >>> import warnings
    >>> fill = {"tid": 7, "coin": "BTC", "time": 0, "side": "B", "px": 1.0, "sz": 2.0}
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     len(count_once(pd.DataFrame([fill, fill]), "fills"))
    1
    >>> print(caught[0].message)  # doctest: +ELLIPSIS
    fills: 1 of 2 rows repeats another row (the same tid, coin, time, side, px, sz)...
    """
    frame: Any = None if native is None else nw.from_native(native, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return native
    identity, engine = ROW_IDENTITIES[record], frame.implementation
    names, what = _identity_columns(identity, frame), what or record
    if names and engine.is_pandas():
        return _pandas_distinct(native, identity, names, what)
    if names and engine.is_polars():
        return _polars_distinct(native, identity, names, what)
    if names and engine.is_duckdb():
        return _duckdb_distinct(native, identity, names, what)
    return native


def _identity_columns(identity: RowIdentity, frame: columns.Frame) -> list[str]:
    """Return the columns of a frame that tell rows apart; none where rows have no identity."""
    schema = frame.collect_schema()
    have = schema.names()
    if any(name not in have for name in identity.needed):
        return []
    if not identity.in_full:
        return [*identity.needed, *(name for name in identity.also if name in have)]
    return [name for name in have if not schema[name].is_nested() and schema[name] != nw.Object()]


def _pandas_distinct(
    native: pd.DataFrame, identity: RowIdentity, names: list[str], what: str
) -> Any:
    known = _has_identity(native, identity)
    keys = np.zeros(len(native), dtype=np.uint64)
    for name in names:
        if (bits := _column_bits(native[name])) is not None:
            keys = _fold_bits(keys, bits)
    repeated = _repeated_keys(keys if known is None else keys[known])
    if not len(repeated):
        return native
    suspect = np.isin(keys, repeated) if known is None else np.isin(keys, repeated) & known
    rows = columns.normalise_frame(native.loc[suspect, names])
    again = np.zeros(len(native), dtype=bool)
    again[np.flatnonzero(suspect)] = rows.duplicated().to_numpy()
    count = int(again.sum())
    if not count:
        return native
    _warn_repeats(what, count, len(native), names)
    kept = native[~again]
    facts = native.attrs.get("toolkit")
    if isinstance(facts, Mapping) and facts.get("rows") == len(native):
        # The frame is as whole as it was: it lost only what stood there twice.
        kept.attrs["toolkit"] = {**facts, "rows": len(kept), "repeated_rows": count}
    return kept


def _has_identity(native: pd.DataFrame, identity: RowIdentity) -> Flags | None:
    """Tell which rows have an identity; None for all."""
    if identity.number:
        numbers = native[identity.number]
        if isinstance(numbers.dtype, np.dtype) and numbers.dtype.kind in "iu":
            known = numbers.to_numpy() != 0
        else:
            known = (numbers.notna() & (numbers != 0).fillna(False)).to_numpy(dtype=bool)
        return None if known.all() else known
    if identity.text:
        texts = native[identity.text]
        known = (texts.notna() & (texts != _NO_HASH).fillna(False)).to_numpy(dtype=bool)
        return None if known.all() else known
    return None


def _column_bits(column: pd.Series) -> Keys | None:
    """Return a whole number for each value, equal for equal values; None for texts."""
    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        stamps: npt.NDArray[np.int64] = column.array.asi8
        return stamps.view(np.uint64)
    if isinstance(dtype, np.dtype):
        return _number_bits(column.to_numpy())
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_decimal128(dtype.pyarrow_dtype):
        return _decimal_bits(column.array.__arrow_array__())
    if pd.api.types.is_integer_dtype(dtype):
        return column.to_numpy(dtype="int64", na_value=0).view(np.uint64)
    return None


def _number_bits(values: npt.NDArray[Any]) -> Keys | None:
    if values.dtype.kind in "iuM" and values.dtype.itemsize == 8:
        return np.ascontiguousarray(values).view(np.uint64)
    if values.dtype.kind == "f":
        floats = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.uint64)
    if values.dtype.kind in "iub":
        return values.astype(np.uint64)
    return None


def _decimal_bits(column: Any) -> Keys:
    """Return the low words of exact numbers; nulls, whose words are anything, are 0."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    words = [np.zeros(0, dtype=np.uint64)]
    for chunk in chunks:
        filled = pc.fill_null(chunk, 0) if chunk.null_count else chunk
        raw = np.frombuffer(filled.buffers()[1], dtype=np.uint64)
        words.append(raw[2 * filled.offset : 2 * (filled.offset + len(filled)) : 2])
    return np.concatenate(words)


def _fold_bits(keys: Keys, bits: Keys) -> Keys:
    mixed = (keys ^ bits) * _FOLD
    return mixed ^ (mixed >> _MIX)


def _repeated_keys(keys: Keys) -> Keys:
    """Return the keys that stand there more than once."""
    ordered = np.sort(keys)
    found: Keys = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return found


def _polars_distinct(native: Any, identity: RowIdentity, names: list[str], what: str) -> Any:
    import polars as pl

    lazy = native.lazy()
    known = pl.lit(value=True)
    if identity.number:
        known = pl.col(identity.number).is_not_null() & (pl.col(identity.number) != 0)
    elif identity.text:
        known = pl.col(identity.text).is_not_null() & (pl.col(identity.text) != _NO_HASH)
    schema = lazy.collect_schema()
    numbers = [name for name in names if schema[name].is_numeric() or schema[name].is_temporal()]
    if not numbers:
        numbers = names
    found = lazy.filter(known).select(_key=_polars_hash(numbers)).collect(engine="streaming")
    if not len(_repeated_keys(found["_key"].to_numpy())):
        return native
    lazy = columns.normalise_frame(lazy)
    exact = lazy.filter(known).select(_key=_polars_hash(names)).collect(engine="streaming")
    count = len(exact) - exact["_key"].n_unique()
    if not count:
        return native
    every = int(lazy.select(pl.len()).collect().item())
    _warn_repeats(what, count, every, names)
    if isinstance(native, pl.LazyFrame):
        apart = lazy.filter(~known), lazy.filter(known).unique(names, keep="any")
        return pl.concat(apart)
    rows = columns.normalise_frame(native).with_row_index("_row").filter(known)
    again = rows.filter(~pl.struct(names).is_first_distinct())["_row"]
    return native.filter(~pl.int_range(pl.len()).is_in(again.implode()))


def _polars_hash(names: Sequence[str]) -> Any:
    import polars as pl

    hashed = pl.col(names[0]).hash(1)
    for seed, name in enumerate(names[1:], 2):
        hashed = (hashed ^ pl.col(name).hash(seed)).hash(seed)
    return hashed


def _duckdb_distinct(native: Any, identity: RowIdentity, names: list[str], what: str) -> Any:
    frame: Any = nw.from_native(native)
    known = "true"
    if identity.number:
        known = f'coalesce("{identity.number}" <> 0, false)'
    elif identity.text:
        known = f"coalesce(\"{identity.text}\" <> '{_NO_HASH}', false)"
    schema = frame.collect_schema()
    numbers = [n for n in names if schema[n].is_numeric() or schema[n].is_temporal()] or names
    if not len(_repeated_keys(_duckdb_hashes(native.filter(known), numbers))):
        return native
    plain = columns.normalise_frame(native)
    hashes = _duckdb_hashes(plain.filter(known), names)
    count = len(hashes) - len(np.unique(hashes))
    if not count:
        return native
    _warn_repeats(what, count, int(plain.count("*").fetchall()[0][0]), names)
    place = ", ".join(f'"{name}"' for name in names)
    once = plain.filter(known).project(f"*, row_number() OVER (PARTITION BY {place}) AS _again")
    every = ", ".join(f'"{name}"' for name in schema.names())
    return once.filter("_again = 1").project(every).union(plain.filter(f"NOT ({known})"))


def _duckdb_hashes(native: Any, names: Sequence[str]) -> Keys:
    place = ", ".join(f'"{name}"' for name in names)
    found: Keys = native.project(f"hash({place}) AS _key").fetchnumpy()["_key"]
    return np.asarray(found, dtype=np.uint64)


def _warn_repeats(what: str, count: int, every: int, names: Sequence[str]) -> None:
    listed = ", ".join(names) if len(names) <= 8 else "all columns"
    verb = "repeats" if count == 1 else "repeat"
    warn_user(
        f"{what}: {count:,} of {every:,} rows {verb} another row (the same {listed}); each event "
        "is counted once",
        RepeatedRows,
    )


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this package that called a helper."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("toolkit"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
