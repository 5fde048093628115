"""The door: a frame of any library becomes columns with one spelling of names, times and numbers.

Helpers compute with numpy and pandas. Missing numbers are NaN, missing texts are "", times are
whole milliseconds. A column is read when it is first needed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partialmethod
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype

from toolkit.arrays import Flags, Floats, Ints
from toolkit.contract.dexes import NATIVE_ALIASES, NATIVE_NAMES
from toolkit.display import count_text, type_text
from toolkit.errors import MissingColumns
from toolkit.prepare.repeats import drop_repeated_rows

NATIVE_DEX: Final = NATIVE_NAMES["rows"]
"""The name of the native dex in results; depth and slippage rows have the same name."""

ADDRESSES: Final = (
    "account",
    "address",
    "builder",
    "destination",
    "liquidated_user",
    "user",
    "validator",
    "vault",
)
"""Columns of addresses, in all frames. Upper and lower case are the same account."""

NO_TIME: Final = np.iinfo(np.int64).min
"""The milliseconds of a missing time."""

_FETCH_FUNCTIONS: Final = {
    "accounts": "tk.batch_clearinghouse_states",
    "contexts": "tk.meta_and_asset_ctxs",
    "depth": "tk.current_depth",
    "fills": "tk.user_fills_by_time",
    "funding": "tk.builder_approved_funding_by_time",
    "ledger": "tk.user_non_funding_ledger_updates",
    "orders": "tk.historical_orders",
    "positions": "tk.batch_clearinghouse_states",
    "samples": "tk.slippage_history",
    "summary": "tk.user_pnl_summary",
    "trades": "tk.user_completed_trades_by_time",
    "snapshot": "tk.account_value_snapshots",
    "twaps": "tk.perp_twap_snapshots",
}
"""Name of a frame -> the function that fetches it, or one of several."""

_NATIVE: Final = f"^({'|'.join(NATIVE_ALIASES)})"
_TEXT: Final = pa.large_string()
_TEXT_COLUMN: Final[Any] = pd.StringDtype(na_value=np.nan)
_NUMBERS: Final = ("decimal", "floating", "integer", "mixed-integer-float")


class ArrowFrame(Protocol):
    """A frame that Arrow reads: of Polars, Arrow or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream of Arrow."""


class SparkFrame(Protocol):
    """A frame of Spark."""

    def toArrow(self) -> pa.Table:  # noqa: N802  # the name in Spark
        """Return the rows as a table of Arrow."""


class LazyFrame(Protocol):
    """A lazy frame of Polars."""

    def collect(self) -> ArrowFrame:
        """Return the rows."""

    def lazy(self) -> "LazyFrame":
        """Return the frame itself."""


Frame = pd.DataFrame | ArrowFrame | SparkFrame | LazyFrame
"""A frame of any library, as helpers take it."""


class Names(NamedTuple):
    """A column of texts: facts are computed for each name, not for each row.

    - ``codes``: the place of each row's name in `values`
    - ``values``: the names; "" is missing
    """

    codes: Ints
    values: list[str]

    def facts(self, fact: Callable[[str], Any]) -> npt.NDArray[Any]:
        """Return a fact of each row's name as an array."""
        return np.array([fact(name) for name in self.values or [""]])[self.codes]

    def renamed(self, rename: Callable[[str], str]) -> "Names":
        """Return the column with other names; equal new names become one."""
        places: dict[str, int] = {}
        codes = [places.setdefault(rename(name), len(places)) for name in self.values]
        return Names(np.array(codes, dtype=np.int64)[self.codes], list(places))

    def present(self, *, blank: bool = False) -> list[str]:
        """Return the names that rows have, without the missing one; with it if `blank`."""
        used = np.flatnonzero(np.bincount(self.codes)).tolist()
        return [self.values[code] for code in used if blank or self.values[code]]

    def sorted(self) -> "Names":
        """Return the column with its names in order, so that codes sort as names do."""
        values = sorted(self.values)
        places = {name: code for code, name in enumerate(values)}
        return Names(self.facts(lambda name: places.get(name, 0)), values)

    def among(self, others: "Names") -> Ints:
        """Return the codes that the names have among others; -1 for a name that they lack."""
        places = {name: code for code, name in enumerate(others.values)}
        return self.facts(lambda name: places.get(name, -1))

    def take(self, rows: Any) -> "Names":
        """Return the names of some rows."""
        return Names(self.codes[rows], self.values)

    def texts(self, rows: Any = slice(None)) -> pd.Series:
        """Return the names of rows as a column of texts; "" becomes missing."""
        known = [name or None for name in self.values]
        column = pa.array(known, _TEXT).take(pa.array(self.codes[rows]))
        return pd.Series(_TEXT_COLUMN.__from_arrow__(column))


def name_pairs(left: Names, right: Names) -> tuple[Ints, list[tuple[str, str]]]:
    """Return the place of each row's pair of names among all pairs, and these pairs."""
    width = len(right.values)
    pairs, places = np.unique(left.codes * width + right.codes, return_inverse=True)
    named = [(left.values[pair // width], right.values[pair % width]) for pair in pairs.tolist()]
    return places.astype(np.int64), named


class Table:
    """A frame of any library, whose columns are read when they are needed.

    - ``frame``: the frame as pandas, each row once
    - ``what``: its name in messages
    """

    def __init__(self, native: Any, what: str, record: str = "") -> None:
        self.frame = drop_repeated_rows(as_pandas(native, what), record or what, what)
        self.what = what
        # A frame without attrs is quick to read.
        self._plain, self._columns = pd.DataFrame(self.frame, copy=False), dict[str, pd.Series]()
        self._numbers: dict[str, Floats] = {}
        self._texts: dict[str, Names] = {}
        self._times: dict[str, Ints] = {}

    def __len__(self) -> int:
        return len(self._plain)

    def has(self, name: str) -> bool:
        """Return whether the frame has a column."""
        return name in self._plain.columns

    def column(self, name: str) -> pd.Series:
        """Return a column as it is."""
        if name not in self._columns:
            self._columns[name] = self._plain[name]
        return self._columns[name]

    def require(self, names: Iterable[str], hint: str = "") -> None:
        """Raise `MissingColumns` if the frame lacks columns; the message names them all."""
        names = list(names)
        missing = [name for name in names if not self.has(name)]
        if not missing:
            return
        is_other_frame = len(missing) > 1 and len(missing) > len(names) / 2
        if is_other_frame and self.what in _FETCH_FUNCTIONS and not hint:
            hint = f"Fetch {self.what} with {_FETCH_FUNCTIONS[self.what]}"
        present = ", ".join(map(str, self._plain.columns)) or "no columns"
        raise MissingColumns(
            f"{self.what}: the frame lacks the column{'s' * (len(missing) > 1)} "
            f"{', '.join(missing)}. It has {present}{hint and f'. {hint}'}"
        )

    def number(self, name: str, default: float | None = None) -> Floats:
        """Return a column of numbers; missing is NaN.

        - ``default``: the value of every row if the frame has no such column
        """
        if name in self._numbers:
            return self._numbers[name]
        if default is not None and not self.has(name):
            return np.full(len(self), default)
        self.require([name])
        column = self.column(name)
        dtype: Any = column.dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
            values = column.to_numpy(np.float64)
        elif column.isna().all():
            values = np.full(len(column), np.nan)
        elif not is_bool_dtype(dtype) and (
            is_numeric_dtype(dtype) or infer_dtype(column) in _NUMBERS
        ):
            values = column.to_numpy(np.float64, na_value=np.nan)
        else:
            raise MissingColumns(
                f"{self.what}: column {name} is {dtype}, not numbers. Convert it with "
                f'pandas.to_numeric, or fetch with numbers="float"'
            )
        if np.isinf(values).any():
            rows = count_text(int(np.isinf(values).sum()), "row")
            raise MissingColumns(
                f"{self.what}: column {name} is infinite in {rows}. Correct or remove these rows"
            )
        self._numbers[name] = values
        return values

    def text(self, name: str, *, blank: bool = False) -> Names:
        """Return a column of texts; addresses are in lower case, the native dex has one name.

        - ``blank``: all texts are missing if the frame has no such column
        """
        if name in self._texts:
            return self._texts[name]
        if blank and not self.has(name):
            return Names(np.zeros(len(self), dtype=np.int64), [""])
        self.require([name])
        column = self.column(name)
        if isinstance(column.dtype, pd.CategoricalDtype):
            known, codes = list(column.cat.categories), column.cat.codes.to_numpy(np.int64)
            codes = np.where(codes < 0, len(known), codes)
        else:
            try:
                plain = pa.array(column.array, from_pandas=True)
            except pa.ArrowException:  # a column of objects of several types
                plain = pa.array(column.map(str, na_action="ignore"), from_pandas=True)
            if isinstance(plain, pa.ChunkedArray):
                plain = plain.combine_chunks()
            ends = np.zeros(2, dtype=np.int64)
            if plain.type == _TEXT and not plain.null_count and len(plain):
                _, places, data = plain.buffers()
                ends = np.frombuffer(places, np.int64)[plain.offset :][: len(plain) + 1]
            if ends[-1] - ends[0] == len(plain) > 0 and (np.diff(ends) == 1).all():
                # Single letters, as of sides: they would take the most time in a dictionary.
                letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
                used = np.bincount(letters) > 0
                known, codes = [*map(chr, np.flatnonzero(used))], (np.cumsum(used) - 1)[letters]
            else:
                encoded = plain.dictionary_encode()
                known = encoded.dictionary.to_pylist()
                codes = encoded.indices.fill_null(len(known)).to_numpy()
        names = Names(codes.astype(np.int64, copy=False), [*map(str, known), ""])
        if name in ADDRESSES:
            names = names.renamed(str.lower)
        elif name in ("dex", "collateral_token"):  # <dex>, or <dex>:<token>
            native = _NATIVE + ("$" if name == "dex" else "(?=:)")
            names = names.renamed(lambda text: re.sub(native, NATIVE_DEX, text))
        self._texts[name] = names
        return names

    def ms(self, name: str = "time") -> Ints:
        """Return a column of times as whole milliseconds in UTC; missing is `NO_TIME`."""
        if name in self._times:
            return self._times[name]
        self.require([name])
        column = self.column(name)
        if isinstance(column.dtype, pd.ArrowDtype):
            column = column.astype("datetime64[ms, UTC]")
        if is_numeric_dtype(column.dtype):
            stated = self.number(name)
            known = stated[~np.isnan(stated)]
            if len(known) and ((known >= 10**9) & (known < 10**10)).all():
                raise MissingColumns(
                    f"{self.what}: column {name} looks like seconds. Convert it with "
                    'pandas.to_datetime(..., unit="s", utc=True)'
                )
            ms = np.where(np.isnan(stated), NO_TIME, stated).astype(np.int64)
        else:
            try:
                if column.dtype.kind != "M":
                    column = pd.to_datetime(column, utc=True, format="ISO8601")
            except (ValueError, TypeError) as error:
                raise MissingColumns(
                    f"{self.what}: column {name} is {column.dtype}, not times. Convert it with "
                    "pandas.to_datetime(..., utc=True)"
                ) from error
            ms = column.array.as_unit("ms").asi8
        self._times[name] = ms
        return ms

    def ids(self, name: str, kind: Any = np.int64) -> tuple[Any, Flags]:
        """Return a column of whole numbers, 0 if missing, and which of them are known."""
        if not self.has(name):
            return np.zeros(len(self), dtype=kind), np.zeros(len(self), dtype=bool)
        if self.column(name).dtype == kind:
            return self.column(name).to_numpy(), np.ones(len(self), dtype=bool)
        dtype: Any = "boolean" if kind is bool else "Int64"
        words = "True and False" if kind is bool else "whole numbers"
        try:
            column = self.column(name).astype(dtype)
        except (TypeError, ValueError):
            raise MissingColumns(
                f"{self.what}: column {name} is {self.column(name).dtype}, not {words}"
            ) from None
        values = column.to_numpy(kind, na_value=kind(0)).astype(kind, copy=False)
        return values, column.notna().to_numpy(bool)

    flag = partialmethod(ids, kind=bool)
    """A column of flags, False if missing, and which of them are known."""

    def require_values(self, names: Iterable[str]) -> None:
        """Raise `MissingColumns` if a column has missing values, since missing is not 0."""
        for name in names:
            ms, column = self._times.get(name), self.column(name)
            if count := np.count_nonzero(column.array.isna() if ms is None else ms == NO_TIME):
                raise MissingColumns(
                    f"{self.what}: column {name} is missing in {count:,} of {len(self):,} rows, "
                    "and missing is not 0. Remove these rows, or fetch them again"
                )

    def known_ms(self, name: str = "time") -> Ints:
        """Return a column of times in milliseconds; raise `MissingColumns` if some are missing."""
        ms = self.ms(name)
        self.require_values([name])
        return ms

    def is_blank(self, name: str) -> bool:
        """Return whether all values of a column are missing, in a frame that has rows."""
        return len(self) > 0 and bool(self.column(name).array.isna().all())

    def require_some(self, name: str, use: str) -> None:
        """Raise `MissingColumns` if all values of a column are missing.

        - ``use``: why the column is needed, as the end of "it ..."
        """
        self.require([name])
        if self.is_blank(name):
            raise MissingColumns(
                f"{self.what}: column {name} is missing in every row, and it {use}. Recordings "
                "from 2023 do not have such fields. Fetch the rows again"
            )

    def columns(
        self, needed: Sequence[str], optional: Sequence[str] = (), amounts: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return columns as a frame without index, for estimates.

        The result has the `needed` columns and the `optional` ones that exist. The `amounts` among
        them are float64, texts have one spelling, times are in UTC with millisecond precision.
        """
        self.require(needed)
        made: dict[str, Any] = {}
        for name in dict.fromkeys((*needed, *filter(self.has, optional))):
            column = self.column(name)
            dtype: Any = column.dtype
            arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else pa.null()
            is_name = name in ADDRESSES or name in ("collateral_token", "dex")
            if name in amounts or pa.types.is_decimal(arrow):
                made[name] = self.number(name)
            elif dtype.kind == "M" or pa.types.is_temporal(arrow):
                made[name] = utc_times(self.ms(name))
            elif isinstance(dtype, pd.CategoricalDtype | pd.StringDtype) or is_name:
                made[name] = self.text(name).texts()
            else:
                made[name] = column.reset_index(drop=True)
        return pd.DataFrame(made, index=range(len(self)))


def as_pandas(native: Any, what: str = "frame") -> pd.DataFrame:
    """Return a frame of any library as pandas: pandas, Polars, Arrow, DuckDB or Spark.

    Raise TypeError for anything else.
    """
    if isinstance(native, pd.DataFrame):
        return native
    if hasattr(native, "toArrow"):  # Spark; over Spark Connect, each name is an attribute
        native = native.toArrow()
    elif hasattr(native, "collect") and hasattr(native, "lazy"):  # a lazy frame of Polars
        native = native.collect()
    if not hasattr(native, "__arrow_c_stream__"):
        advice = "To join frames: tk.concat"
        if callable(native):
            name = getattr(native, "__name__", "function")
            advice = f"Call it, and pass its result: {name}(...)"
        if parts := getattr(native, "_fields", ()):  # such as AccountStates
            advice = f"Pass one of its frames: .{', .'.join(parts)}"
        raise TypeError(
            f"{what}: a helper takes a frame of pandas, Polars, Arrow, DuckDB or PySpark, not "
            f"{type_text(native)}. {advice}"
        )
    made: pd.DataFrame = pa.table(native).to_pandas()
    return made


def filled(values: Floats) -> Floats:
    """Return numbers with 0 for missing ones."""
    unknown = np.isnan(values)
    return np.where(unknown, 0.0, values) if unknown.any() else values


def utc_times(ms: Any) -> pd.DatetimeIndex:
    """Return milliseconds as times in UTC; `NO_TIME` and NaN are missing."""
    values = np.asarray(ms)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), NO_TIME, np.rint(values))
    return pd.DatetimeIndex(values.astype(np.int64).view("M8[ms]"), tz="UTC")
