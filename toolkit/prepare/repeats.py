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

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype

from toolkit.arrays import Ints
from toolkit.errors import RepeatedRows, warn_caller
from toolkit.rules.funding import ZERO_HASH

ACCOUNT: Final = ("account", "user")
"""Columns that name the account; the `user` beside an `account` may be a sender."""

_FOLD: Final = np.int64(-0x61C8864680B583EB)  # odd, so that the product can be inverted
_MIX: Final = np.int64(29)


ROW_IDENTITIES: Final[Mapping[str, tuple[str, str | None]]] = {
    "fills": ("tid coin time side px sz", "user account oid"),
    "funding": ("coin time usdc", "user account szi funding_rate"),
    "ledger": ("time type hash", None),
    "orders": ("oid status status_timestamp", "user tx_index"),
    "samples": (
        "coin amount_usd timestamp", "dex half_spread_bps buy_slippage_bps sell_slippage_bps"
    ),
    "depth": ("coin timestamp_ms bps", "dex bid_depth_usd ask_depth_usd"),
    "history": ("week net_apr gross_apr", "validator"),
    "positions": ("user coin szi", "dex time position_value unrealized_pnl"),
    "accounts": ("user account_value", "dex time cross_account_value"),
    "snapshot": ("user account_value", None),
    "twaps": ("twap_id", None),
    "auctions": ("start_time_seconds duration_seconds", None),
    "curve": ("time", None),
    "returns": ("time return_", None),
    "completed_trades": ("coin position_type close_time", None),
    "summary": ("total_pnl total_trades", None),
    "trips": ("status net closed", None),
    "costs": ("day volume", None),
    "figures": ("user figure value", None),
}  # fmt: skip
"""Record -> the columns that identify an event, and further ones that count if the frame has them.

Both must be equal; None: all columns must be equal, except nested ones. A frame that lacks one of
the first has no identities, nor have fills without a trade id and ledger rows without a hash.
"""


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
    needed, also = ROW_IDENTITIES.get(record, ("", None))
    if not needed or not set(needed.split()) <= set(native.columns):
        return native
    # Without attrs, which pandas copies at each step.
    plain = pd.DataFrame(native, copy=False)
    names = [name for name in f"{needed} {also or ''}".split() if name in plain.columns]
    if also is None:
        names = [name for name in plain.columns if not _is_nested(plain[name])]
    rows = np.arange(len(native))
    if record == "ledger":
        hashes = plain["hash"]
        rows = rows[(hashes.notna() & (hashes != ZERO_HASH).fillna(False)).to_numpy(dtype=bool)]
    # Rows whose numbers and times are those of another row; most frames have each trade once.
    for compared in ([["tid"]] if record == "fills" else []) + [names]:
        keys = np.zeros(len(native), dtype=np.int64)
        for name in compared:
            column = plain[name]
            if hasattr(column.array, "asi8"):
                bits = column.array.asi8
            elif (dtype := column.dtype).kind in "fiu":
                is_plain = isinstance(dtype, np.dtype)
                number = (
                    column.to_numpy() if is_plain else column.to_numpy(np.float64, na_value=0.0)
                )
                # Equal numbers have equal bits; those of 0 are 0.
                bits = np.add(number, 0.0, dtype=np.float64).view(np.int64)
            else:
                continue
            rows = rows[bits[rows] != 0] if compared == ["tid"] else rows
            keys ^= bits
            keys *= _FOLD
            keys ^= keys >> _MIX
        ordered = np.sort(keys[rows])
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        if not len(again):
            return native
        rows = rows[np.isin(keys[rows], again)]
    return _drop_equal_rows(native, plain[names].iloc[rows], rows, record, what or record)


def _drop_equal_rows(
    native: pd.DataFrame, suspects: pd.DataFrame, rows: Ints, record: str, what: str
) -> pd.DataFrame:
    """Return a frame without suspects that repeat another one; `rows` are their places."""
    owners = [name for name in ACCOUNT if name in suspects]
    found = suspects.reset_index(drop=True)
    found = found.assign(**{name: found[name].astype("str").str.lower() for name in owners})
    repeats = found.duplicated().to_numpy()
    # A fill without a value in the column of the account may be a copy.
    for owner in owners[: record == "fills"]:
        is_unnamed = found[owner].isna().to_numpy()
        named_first = found.drop(columns=owner).iloc[np.argsort(is_unnamed, kind="stable")]
        repeats = repeats | (is_unnamed & named_first.duplicated().sort_index().to_numpy())
    if not (count := int(repeats.sum())):
        return native
    listed = ", ".join(map(str, suspects)) if suspects.shape[1] <= 8 else "all columns"
    warn_caller(
        f"{what}: {count:,} of {len(native):,} rows "
        f"{'repeats' if count == 1 else 'repeat'} another row (the same {listed}). Each event "
        "is counted once",
        RepeatedRows,
    )
    kept = native.iloc[np.delete(np.arange(len(native)), rows[repeats])]
    facts = native.attrs.get("toolkit")
    if isinstance(facts, Mapping) and facts.get("rows") == len(native):
        # The frame is as complete as before: it lost only repeated rows.
        kept.attrs["toolkit"] = {**facts, "rows": len(kept), "repeated_rows": count}
    return kept


def _is_nested(column: pd.Series) -> bool:
    dtype: Any = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        return bool(pa.types.is_nested(dtype.pyarrow_dtype))
    return bool(dtype.kind == "O" and infer_dtype(column) == "mixed")
