"""Repeated rows: which columns identify an event, and how each event is counted once.

Frames that users combine may overlap, for example two time ranges, or an archive and a fetch. A
record has an identity if some of its columns identify the event: a fill has its trade id, a funding
payment its account, coin and time. If two rows have the same identity, every helper counts the
event once and warns. A row without an identity, such as a fill with trade id 0
(docs/live_service.md, section 7), is never removed.

Every frame passes through `drop_repeated_rows` at the door. The check sorts one integer per row, so
it is cheap if nothing repeats.

Joined frames may name the account in some rows only, for example if a user's own fills are joined
with the fills of a builder's users. A fill without the account repeats an equal fill that names it,
since a trade id and a side belong to one account. Other rows without the account stay: two accounts
with equal positions have equal payments, and both sides of a transfer have the same ledger update.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.types import infer_dtype

from toolkit.arrays import Flags, Ints
from toolkit.errors import RepeatedRows, warn_caller
from toolkit.rules.funding import ZERO_HASH

RowHashes = npt.NDArray[np.uint64]

ACCOUNT: Final = ("account", "user")
"""Columns that name the account; the `user` beside an `account` may be a sender."""

_FOLD: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the product can be inverted
_MIX: Final = np.uint64(29)


@dataclass(frozen=True, kw_only=True)
class RowIdentity:
    """The columns that identify an event of a record.

    - ``needed``: columns that must be equal. A frame that lacks one of them has no identities.
    - ``also``: further columns that must be equal if the frame has them
    - ``number``: a number column. A row with 0 or a missing value has no identity.
    - ``text``: a column of hashes. A row with a hash of zeros or a missing hash has no identity.
    - ``in_full``: whether all columns must be equal, except nested ones
    - ``of_one_account``: whether the other columns belong to one account, so that a row without the
      account repeats an equal row that names it
    """

    needed: tuple[str, ...]
    also: tuple[str, ...] = ()
    number: str = ""
    text: str = ""
    in_full: bool = False
    of_one_account: bool = False


ROW_IDENTITIES: Final[Mapping[str, RowIdentity]] = {
    "fills": RowIdentity(
        needed=("tid", "coin", "time", "side", "px", "sz"),
        also=("user", "account", "oid"),
        number="tid",
        of_one_account=True,
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
    "returns": RowIdentity(needed=("time", "return_"), in_full=True),
    "trips": RowIdentity(needed=("status", "net", "closed"), in_full=True),
    "costs": RowIdentity(needed=("day", "volume"), in_full=True),
    "figures": RowIdentity(needed=("user", "figure", "value"), in_full=True),
}
"""Record -> its identity."""


def drop_repeated_rows(native: pd.DataFrame, record: str, what: str = "") -> pd.DataFrame:
    """Return a pandas frame without repeated rows; warn if rows were removed.

    - ``record``: a key of `ROW_IDENTITIES`
    - ``what``: the name of the frame in messages; the record by default

    Returns the frame itself if no row repeats. The first of equal rows stays, with its index.

    >>> import warnings
    >>> fill = {"tid": 7, "coin": "BTC", "time": 0, "side": "B", "px": 1.0, "sz": 2.0}
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     len(drop_repeated_rows(pd.DataFrame([fill, fill]), "fills"))
    1
    >>> print(caught[0].message)  # doctest: +ELLIPSIS
    fills: 1 of 2 rows repeats another row (the same tid, coin, time, side, px, sz)...
    """
    identity = ROW_IDENTITIES.get(record)
    if identity is None:
        return native
    names = _identity_columns(identity, native)
    return _distinct_rows(native, identity, names, what or record) if names else native


def _identity_columns(identity: RowIdentity, frame: pd.DataFrame) -> list[str]:
    """Return the columns that identify rows of a frame; none if rows have no identity."""
    if any(name not in frame.columns for name in identity.needed):
        return []
    if not identity.in_full:
        return [*identity.needed, *(name for name in identity.also if name in frame.columns)]
    return [name for name in frame.columns if not _is_nested(frame[name])]


def _is_nested(column: pd.Series) -> bool:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return bool(pa.types.is_nested(dtype.pyarrow_dtype))
    return bool(dtype.kind == "O" and infer_dtype(column, skipna=True) == "mixed")


def _distinct_rows(
    native: pd.DataFrame, identity: RowIdentity, names: list[str], what: str
) -> pd.DataFrame:
    known = _has_identity(native, identity)
    keys = np.zeros(len(native), dtype=np.uint64)
    for name in names:
        if (bits := _column_bits(native[name])) is not None:
            keys = _fold_bits(keys, bits)
    repeated = _repeated_keys(keys if known is None else keys[known])
    if not len(repeated):
        return native
    suspect = np.isin(keys, repeated) if known is None else np.isin(keys, repeated) & known
    rows = native.loc[suspect, names].reset_index(drop=True)
    for name in set(names) & {*ACCOUNT}:
        rows[name] = rows[name].astype("str").str.lower()
    repeats = rows.duplicated().to_numpy()
    if owner := _owner_column(identity, names):
        is_unnamed = rows[owner].isna().to_numpy()
        named_first = rows.drop(columns=owner).iloc[np.argsort(is_unnamed, kind="stable")]
        repeats = repeats | (is_unnamed & named_first.duplicated().sort_index().to_numpy())
    again = np.zeros(len(native), dtype=bool)
    again[np.flatnonzero(suspect)] = repeats
    count = int(again.sum())
    if not count:
        return native
    _warn_repeats(what, count, len(native), names)
    kept = native[~again]
    facts = native.attrs.get("toolkit")
    if isinstance(facts, Mapping) and facts.get("rows") == len(native):
        # The frame is as complete as before: it lost only repeated rows.
        kept.attrs["toolkit"] = {**facts, "rows": len(kept), "repeated_rows": count}
    return kept


def _owner_column(identity: RowIdentity, names: Sequence[str]) -> str:
    """Return the column of the account, or "". A row without a value in it may be a copy."""
    owners = ACCOUNT if identity.of_one_account else ()
    return next((name for name in owners if name in names), "")


def _has_identity(native: pd.DataFrame, identity: RowIdentity) -> Flags | None:
    """Return which rows have an identity; None if all have one."""
    if identity.number:
        numbers = native[identity.number]
        if isinstance(numbers.dtype, np.dtype) and numbers.dtype.kind in "iu":
            known = numbers.to_numpy() != 0
        else:
            known = (numbers.notna() & (numbers != 0).fillna(False)).to_numpy(dtype=bool)
        return None if known.all() else known
    if identity.text:
        texts = native[identity.text]
        known = (texts.notna() & (texts != ZERO_HASH).fillna(False)).to_numpy(dtype=bool)
        return None if known.all() else known
    return None


def _column_bits(column: pd.Series) -> RowHashes | None:
    """Return an integer for each value, equal for equal values; None for texts."""
    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        stamps: Ints = column.array.asi8
        return stamps.view(np.uint64)
    if isinstance(dtype, np.dtype):
        return _number_bits(column.to_numpy())
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_decimal128(dtype.pyarrow_dtype):
        return _decimal_bits(column.array.__arrow_array__())
    if pd.api.types.is_integer_dtype(dtype):
        return column.to_numpy(dtype="int64", na_value=0).view(np.uint64)
    return None


def _number_bits(values: npt.NDArray[Any]) -> RowHashes | None:
    if values.dtype.kind in "iuM" and values.dtype.itemsize == 8:
        return np.ascontiguousarray(values).view(np.uint64)
    if values.dtype.kind == "f":
        floats = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        floats[np.isnan(floats)] = np.nan
        return floats.view(np.uint64)
    if values.dtype.kind in "iub":
        return values.astype(np.uint64)
    return None


def _decimal_bits(column: Any) -> RowHashes:
    """Return the low words of exact numbers; 0 for null, since its words are undefined."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    words = [np.zeros(0, dtype=np.uint64)]
    for chunk in chunks:
        filled = pc.fill_null(chunk, 0) if chunk.null_count else chunk
        raw = np.frombuffer(filled.buffers()[1], dtype=np.uint64)
        words.append(raw[2 * filled.offset : 2 * (filled.offset + len(filled)) : 2])
    return np.concatenate(words)


def _fold_bits(keys: RowHashes, bits: RowHashes) -> RowHashes:
    mixed = (keys ^ bits) * _FOLD
    return mixed ^ (mixed >> _MIX)


def _repeated_keys(keys: RowHashes) -> RowHashes:
    """Return the keys that occur more than once."""
    ordered = np.sort(keys)
    found: RowHashes = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return found


def _warn_repeats(what: str, count: int, every: int, names: Sequence[str]) -> None:
    listed = ", ".join(names) if len(names) <= 8 else "all columns"
    verb = "repeats" if count == 1 else "repeat"
    warn_caller(
        f"{what}: {count:,} of {every:,} rows {verb} another row (the same {listed}). Each event "
        "is counted once",
        RepeatedRows,
    )
