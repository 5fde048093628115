"""Frames of any engine: open them, check their columns, return results in the same engine.

Each helper is written once against narwhals and returns the engine of its input. There is one
exception: a pandas frame with exact numbers is processed as an Arrow table, because pandas cannot
fill Arrow decimals or choose between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import pandas as pd
import pyarrow as pa
from narwhals.typing import IntoFrameT
from pandas.api.types import infer_dtype, is_object_dtype

from toolkit.analysis.common.markets import unify_dex_name, unify_token_name
from toolkit.analysis.common.provenance import result_provenance
from toolkit.display import type_text
from toolkit.errors import MissingColumns

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
NumberKind = Literal["float", "exact"]

EXACT = nw.Decimal(36, 18)
"""The dtype of exact numbers, in frames and in results."""

ADDRESSES = (
    "account",
    "address",
    "builder",
    "destination",
    "liquidated_user",
    "user",
    "validator",
    "vault",
)
"""Columns of addresses, in all frames."""

_FETCH_FUNCTIONS = {
    "accounts": "tk.batch_clearinghouse_states",
    "contexts": "tk.meta_and_asset_ctxs",
    "depth": "tk.current_depth",
    "fills": "tk.user_fills_by_time",
    "funding": "tk.builder_approved_funding_by_time",
    "ledger": "tk.user_non_funding_ledger_updates",
    "orders": "tk.historical_orders",
    "positions": "tk.batch_clearinghouse_states",
    "samples": "tk.slippage_history",
    "snapshot": "tk.account_value_snapshots",
    "twaps": "tk.perp_twap_snapshots",
}
"""Name of a frame -> the function that fetches it, or one of several."""

_NATIVE = {"dex": unify_dex_name, "collateral_token": unify_token_name}
"""Columns that name a dex, and the function that unifies the names of the native dex."""


def normalise_frame(native: IntoFrameT) -> IntoFrameT:
    """Return a frame with one spelling of addresses, dexes and times.

    Addresses become lower case: a checksummed address is the same account. The native dex gets
    one name. Categories of addresses and dexes become texts. In pandas frames, all other categories
    become plain values, too (narwhals cannot choose between a category and a text), times become
    UTC (narwhals does not know the name of every zone), and the index is dropped, because it may
    have the name of a column. The provenance is dropped: pandas would copy it in each later step.
    A result gets its provenance from the frames that were passed.
    """
    made: Any = _normalise_pandas(native) if isinstance(native, pd.DataFrame) else native
    try:
        frame: Frame = nw.from_native(made)
    except TypeError:
        advice = "To join frames: tk.concat"
        if callable(made):
            advice = f"Call it, and pass its result: {getattr(made, '__name__', 'function')}(...)"
        if parts := getattr(made, "_fields", ()):  # such as AccountStates
            advice = f"Pass one of its frames: .{', .'.join(parts)}"
        raise TypeError(
            f"a helper takes a frame of pandas, Polars, DuckDB or PySpark, not "
            f"{type_text(made)}. {advice}"
        ) from None
    result: Any = _unify_pandas(made) if isinstance(made, pd.DataFrame) else _unify_texts(frame)
    typed: IntoFrameT = result
    return typed


def _unify_texts(frame: Frame) -> Any:
    """Return the native frame with one spelling of addresses and dexes."""
    schema = column_dtypes(frame)
    # Polars, DuckDB and Arrow have categories, too. Two categories may be one address.
    texts = {
        name: nw.col(name) if isinstance(dtype, nw.String) else nw.col(name).cast(nw.String())
        for name, dtype in schema.items()
        if isinstance(dtype, nw.String | nw.Categorical | nw.Enum)
    }
    changed = {name: texts[name].str.to_lowercase() for name in ADDRESSES if name in texts}
    changed |= {name: rename(texts[name]) for name, rename in _NATIVE.items() if name in texts}
    return nw.to_native(frame.with_columns(**changed) if changed else frame)


def _unify_pandas(made: pd.DataFrame) -> pd.DataFrame:
    """Change addresses and dexes to one spelling, column by column: that is fastest in pandas."""
    for name in {*ADDRESSES, *_NATIVE} & {*made.columns}:
        column: nw.Series[Any] = nw.from_native(made[name], series_only=True)
        if not isinstance(column.dtype, nw.String | nw.Categorical | nw.Enum):
            continue
        if not isinstance(column.dtype, nw.String):
            column = column.cast(nw.String())
        if name in ADDRESSES:
            column = column.str.to_lowercase()
        else:
            column = column.to_frame().with_columns(_NATIVE[name](nw.col(name)).alias(name))[name]
        made[name] = nw.to_native(column)
    return made


def _normalise_pandas(native: pd.DataFrame) -> pd.DataFrame:
    dtypes: dict[str, Any] = {}
    for name, dtype in native.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            dtypes[str(name)] = dtype.categories.dtype
        elif isinstance(dtype, pd.DatetimeTZDtype) and str(dtype.tz) != "UTC":
            dtypes[str(name)] = pd.DatetimeTZDtype(dtype.unit, "UTC")
    made = native.astype(dtypes).reset_index(drop=True) if dtypes else native.reset_index(drop=True)
    made.attrs = {}
    return made


def column_dtypes(frame: Frame) -> Mapping[str, nw.dtypes.DType]:
    """Return the dtype of each column by its name; on DuckDB, times with a zone are in UTC.

    No helper depends on the zone. To state it, narwhals would run a query for each schema.
    """
    if not frame.implementation.is_duckdb():
        return frame.collect_schema()
    native: Any = nw.to_native(frame)
    zoned = {
        name
        for name, dtype in zip(native.columns, native.types, strict=True)
        if dtype.id == "timestamp with time zone"
    }
    if not zoned:
        return frame.collect_schema()
    plain = [name for name in frame.columns if name not in zoned]
    known = frame.select(plain).collect_schema() if plain else {}
    return {name: known.get(name, nw.Datetime("us", "UTC")) for name in frame.columns}


def keep_columns(native: Any, names: Sequence[str]) -> Any:
    """Return a frame with those of the columns that it has."""
    frame: Frame = nw.from_native(native)
    column_names = set(frame.columns)
    return nw.to_native(frame.select(name for name in names if name in column_names))


def open_frame(native: Any, what: str, kind: NumberKind | None = None) -> Frame:
    """Return a native frame in narwhals; pandas with exact numbers becomes Arrow.

    With ``kind="exact"`` each pandas frame becomes Arrow, so that it can be stacked with others.
    """
    native = normalise_frame(native)
    frame: Frame = nw.from_native(native)
    if isinstance(native, pd.DataFrame) and (kind == "exact" or _has_decimals(frame)):
        table = pa.Table.from_pandas(_without_nested(native), preserve_index=False)
        wrapped: Frame = nw.from_native(table)
        return wrapped
    if not frame.columns:
        raise MissingColumns(f"{what}: the frame has no columns. Pass a frame of a fetch function")
    return frame


def open_table(native: Any, what: str) -> Frame:
    """Return a native frame in narwhals; pandas becomes Arrow, which is faster for many columns."""
    if not isinstance(native, pd.DataFrame):
        return open_frame(native, what)
    plain = _without_nested(normalise_frame(native))
    try:
        table = pa.Table.from_pandas(plain, preserve_index=False)
    except pa.ArrowException:  # a column of the user has values of several types
        mixed = [
            name
            for name, dtype in plain.dtypes.items()
            if is_object_dtype(dtype) and infer_dtype(plain[name], skipna=True) != "string"
        ]
        table = pa.Table.from_pandas(plain.drop(columns=mixed), preserve_index=False)
    if not table.num_columns:
        raise MissingColumns(f"{what}: the frame has no columns. Pass a frame of a fetch function")
    frame: Frame = nw.from_native(table)
    return frame


def open_as_floats(native: Any, what: str, names: Sequence[str]) -> Frame:
    """Return a native frame in narwhals with its number columns as float64, for estimates."""
    native = normalise_frame(native)
    if isinstance(native, pd.DataFrame):
        decimal = {
            name: "float64" for name in names if isinstance(native.dtypes.get(name), pd.ArrowDtype)
        }
        native = native.astype(decimal)
    frame: Frame = nw.from_native(native)
    require_columns(frame, names, what)
    number_kind(frame, names, what)
    floats = [nw.col(name).cast(nw.Float64()) for name in names]
    if not isinstance(native, pd.DataFrame):
        # Outside pandas NaN is a number, and a sum that contains it is NaN.
        floats = [column.fill_nan(None) for column in floats]
    return frame.with_columns(floats)


def pandas_columns(
    native: Any,
    what: str,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    amounts: Sequence[str] = (),
) -> pd.DataFrame:
    """Return columns of a frame of any engine as a pandas frame, for estimates.

    The result has the `needed` columns and the `optional` ones that exist. The `amounts` among
    them are float64. Times are in UTC, with millisecond precision.
    """
    native = normalise_frame(native)
    frame: Frame = nw.from_native(native)
    require_columns(frame, needed, what)
    column_names = frame.columns
    kept = [name for name in dict.fromkeys((*needed, *optional)) if name in column_names]
    present = [name for name in dict.fromkeys(amounts) if name in kept]
    if isinstance(native, pd.DataFrame):
        # A column that is entirely None has the dtype object.
        blank = {name: "float64" for name in present if native[name].isna().all()}
        native = native[kept].astype(blank)
        frame = nw.from_native(native)
    for name in present:  # one by one, because an estimate may mix exact and float numbers
        number_kind(frame, [name], what)
    if isinstance(native, pd.DataFrame):
        return native.astype(dict.fromkeys(present, "float64")).reset_index(drop=True)
    floats = [nw.col(name).cast(nw.Float64()) for name in present]
    frame = frame.select(*(nw.col(name) for name in kept if name not in present), *floats)
    frame = frame.select(kept)
    table = nw.to_native(frame.lazy().collect("pyarrow"))
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            utc = table[place].cast(pa.timestamp("ms", "UTC"))
            table = table.set_column(place, column.name, utc)
    collected: pd.DataFrame = table.to_pandas()
    return collected


def _has_decimals(frame: Frame) -> bool:
    return any(isinstance(dtype, nw.Decimal) for dtype in column_dtypes(frame).values())


def _without_nested(native: pd.DataFrame) -> pd.DataFrame:
    # No helper sums nested columns, and their conversion to Arrow is slow.
    return native[[name for name, dtype in native.dtypes.items() if not _is_nested(dtype)]]


def _is_nested(dtype: Any) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_nested(dtype.pyarrow_dtype))


def result_from_frame(
    frame: Frame, inputs: Mapping[str, IntoFrameT | None], **facts: Any
) -> IntoFrameT:
    """Return a result in the engine of the first input; pandas also gets its provenance.

    - ``frame``: the result
    - ``inputs``: the frames by the name of the parameter
    - ``**facts``: entries of the provenance, such as ``helper`` and ``by``
    """
    native: Any = nw.to_native(frame)
    if isinstance(next(iter(inputs.values())), pd.DataFrame):
        if isinstance(native, pa.Table):
            native = native.to_pandas(types_mapper=decimal_dtype)
        native = native.reset_index(drop=True)
        native.attrs["toolkit"] = {**result_provenance(inputs), **facts}
    result: IntoFrameT = native
    return result


def stack_frames(frames: Sequence[Frame]) -> Frame:
    """Return frames of one engine with the same columns as one frame."""
    natives = [nw.to_native(frame) for frame in frames]
    if isinstance(natives[0], pa.Table):
        # Texts from pandas are large_string, texts from Arrow are string.
        table = pa.concat_tables(natives, promote_options="permissive")
        together: Frame = nw.from_native(table)
    else:
        together = nw.concat(list[Any](frames), how="vertical")
    return together


def join_frames(left: Frame, right: Frame, on: Sequence[str], *, keep_left: bool = True) -> Frame:
    """Return two frames of one engine side by side; by default with every row of the left one."""
    how = "left" if keep_left else "inner"
    joined: Frame = left.join(right, on=list(on), how=how)  # type: ignore[arg-type]  # one engine
    return joined


def flip_sign(amount: nw.Expr, kind: NumberKind) -> nw.Expr:
    """Return the amount with the opposite sign; 0.0 does not become -0.0."""
    return -amount if kind == "exact" else nw.lit(0.0) - amount


def decimal_dtype(dtype: pa.DataType) -> pd.ArrowDtype | None:
    """Return the pandas dtype of Arrow decimals; None for all other types."""
    return pd.ArrowDtype(dtype) if pa.types.is_decimal(dtype) else None


def flag(condition: nw.Expr) -> nw.Expr:
    """Return 1 where the condition is true, else 0."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def require_columns(frame: Frame, names: Iterable[str], what: str, hint: str = "") -> None:
    """Raise `MissingColumns` if the frame lacks one of the columns; the message names them all."""
    column_names, names = frame.columns, list(names)
    missing = [name for name in names if name not in column_names]
    if missing:
        is_other_frame = len(missing) > 1 and len(missing) > len(names) / 2
        if is_other_frame and what in _FETCH_FUNCTIONS and not hint:
            hint = f"Fetch {what} with {_FETCH_FUNCTIONS[what]}"
        tail = f". {hint}" if hint else ""
        # Names that begin with an underscore are columns that helpers add.
        shown = [name for name in column_names if not name.startswith("_")]
        raise MissingColumns(
            f"{what}: the frame lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}. "
            f"It has {', '.join(shown) or 'no columns'}{tail}"
        )


def number_kind(
    frame: Frame, names: Iterable[str], what: str, otherwise: NumberKind = "float"
) -> NumberKind:
    """Return whether the number columns are float or exact; `otherwise` if there are none.

    Raise MissingColumns if a column is text, or if float and exact columns are mixed.
    """
    schema = column_dtypes(frame)
    kinds: set[NumberKind] = set()
    for name in names:
        dtype = schema.get(name)
        if dtype is None:
            continue
        if isinstance(dtype, nw.Decimal):
            kinds.add("exact")
        elif dtype.is_numeric():
            kinds.add("float")
        else:
            raise MissingColumns(
                f"{what}: column {name} is {dtype}, not numbers. "
                'Fetch with numbers="float" or numbers="exact"'
            )
    if len(kinds) > 1:
        raise MissingColumns(f"{what}: exact and float numbers are mixed. Fetch all with one kind")
    return kinds.pop() if kinds else otherwise


def require_values(frame: Frame, names: Iterable[str], what: str) -> None:
    """Raise `MissingColumns` if a number column contains null or NaN, since missing is not 0.

    Of a lazy frame only these columns are read.
    """
    missing, rows = count_missing(frame, names)
    for name, count in missing.items():
        if count:
            raise MissingColumns(
                f"{what}: column {name} is missing in {count:,} of {rows:,} "
                "rows, and missing is not 0. Remove these rows, or fetch them again"
            )


def count_missing(frame: Frame, names: Iterable[str]) -> tuple[dict[str, int], int]:
    """Return the number of null and NaN values of each number column, and the number of rows.

    Of a lazy frame only these columns are read.
    """
    schema = column_dtypes(frame)
    gone = {n: nw.col(n).is_null() for n in names}
    gone |= {n: lacks | nw.col(n).is_nan() for n, lacks in gone.items() if schema[n].is_float()}
    one, zero = nw.lit(1), nw.lit(0)
    flags = frame.select(
        **{n: nw.when(lacks).then(one).otherwise(zero) for n, lacks in gone.items()}
    )
    sums = flags.with_columns(_rows=one).select(*(nw.col(n).sum() for n in (*gone, "_rows")))
    counted = sums.lazy().collect("pyarrow").to_arrow().to_pylist()[0]
    return {name: counted[name] or 0 for name in gone}, counted["_rows"] or 0


def is_empty_column(frame: Frame, name: str) -> bool:
    """Return whether all values of a column are missing, in a frame that has rows.

    Of a lazy frame only this column is read.
    """
    there = nw.when(nw.col(name).is_null()).then(nw.lit(0)).otherwise(nw.lit(1))
    flags = frame.select(_there=there).with_columns(_row=nw.lit(1))
    sums = flags.select(nw.col("_there").sum(), nw.col("_row").sum())
    counted = sums.lazy().collect("pyarrow").to_arrow().to_pylist()[0]
    return bool(counted["_row"]) and not counted["_there"]


def require_some_values(frame: Frame, name: str, what: str, use: str) -> None:
    """Raise `MissingColumns` if all values of a column are missing.

    - ``frame``: the rows
    - ``name``: the column
    - ``what``: the parameter that contains the rows
    - ``use``: why the column is needed, as the end of "it ..."
    """
    if is_empty_column(frame, name):
        raise MissingColumns(
            f"{what}: column {name} is missing in every row, and it {use}. Recordings from 2023 "
            "do not have such fields. Fetch the rows again"
        )


def number_type(kind: NumberKind) -> Any:
    """Return the narwhals dtype of a kind of numbers."""
    return EXACT if kind == "exact" else nw.Float64()


def zero_literal(kind: NumberKind) -> nw.Expr:
    """Return 0 as a literal of a kind of numbers."""
    return nw.lit(0.0).cast(number_type(kind))


def missing_literal(kind: NumberKind) -> nw.Expr:
    """Return the missing value as a literal of a kind of numbers."""
    return nw.lit(None).cast(number_type(kind))


def column_or_zero(name: str, column_names: Sequence[str], kind: NumberKind) -> nw.Expr:
    """Return a number column with 0 for null and NaN; 0 if the frame has no such column."""
    if name not in column_names:
        return zero_literal(kind)
    column = nw.col(name)
    if kind == "exact":
        return column.fill_null(0).cast(EXACT)
    column = column.cast(nw.Float64())
    return nw.when(column.is_null() | column.is_nan()).then(nw.lit(0.0)).otherwise(column)
