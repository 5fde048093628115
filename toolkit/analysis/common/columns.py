"""What every helper does with its frames: open them, check columns, tell numbers apart.

Helpers are written once against narwhals and give back the engine they were given. Only pandas
with exact numbers needs a hand: it is worked on as an Arrow table, because pandas cannot fill or
choose between Arrow decimals.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw
import pandas as pd
import pyarrow as pa

from toolkit.analysis.common.markets import unify_dex_name, unify_token_name
from toolkit.analysis.common.provenance import result_provenance
from toolkit.errors import MissingColumns

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]
Numbers = Literal["float", "exact"]

EXACT = nw.Decimal(36, 18)
"""The dtype of exact numbers in frames and results."""

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
"""Columns that hold addresses, wherever they are."""

_NATIVE = {"dex": unify_dex_name, "collateral_token": unify_token_name}
"""Columns that name a dex -> what writes each name of the native one alike."""


def normalise_frame(native: Any) -> Any:
    """Give a frame without what users' own steps may leave.

    Addresses are in lower case, since case means nothing in them: a checksummed one is the same
    account. The native dex has one name, whichever of its names a source wrote. Of pandas,
    categories become their values again (a choice between a category and a word fails), times of
    another zone UTC (narwhals does not know every zone's name), and the index is left out: it may
    be named like a column.
    """
    made = _normalise_pandas(native) if isinstance(native, pd.DataFrame) else native
    frame: Frame = nw.from_native(made)
    schema = frame.collect_schema()
    changed = {
        name: nw.col(name).str.to_lowercase()
        for name in ADDRESSES
        if isinstance(schema.get(name), nw.String)
    }
    changed |= {
        name: rename(nw.col(name))
        for name, rename in _NATIVE.items()
        if isinstance(schema.get(name), nw.String)
    }
    if not changed:
        return made
    alike = nw.to_native(frame.with_columns(**changed))
    if isinstance(made, pd.DataFrame):
        alike.attrs = made.attrs
    return alike


def _normalise_pandas(native: pd.DataFrame) -> pd.DataFrame:
    dtypes: dict[str, Any] = {}
    for name, dtype in native.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            dtypes[str(name)] = dtype.categories.dtype
        elif isinstance(dtype, pd.DatetimeTZDtype) and str(dtype.tz) != "UTC":
            dtypes[str(name)] = pd.DatetimeTZDtype(dtype.unit, "UTC")
    return native.astype(dtypes).reset_index(drop=True) if dtypes else native.reset_index(drop=True)


def open_frame(native: Any, what: str, kind: Numbers | None = None) -> Frame:
    """Wrap a native frame; pandas frames with exact numbers, or of that `kind`, become Arrow."""
    native = normalise_frame(native)
    frame: Frame = nw.from_native(native)
    if isinstance(native, pd.DataFrame) and (kind == "exact" or _has_decimals(frame)):
        table = pa.Table.from_pandas(_without_nested(native), preserve_index=False)
        wrapped: Frame = nw.from_native(table)
        return wrapped
    if not frame.collect_schema().names():
        raise MissingColumns(f"{what}: the frame has no columns")
    return frame


def open_as_floats(native: Any, what: str, names: Sequence[str]) -> Frame:
    """Wrap a native frame, its number columns as float64: for estimates, which need no more."""
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
    if not isinstance(native, pd.DataFrame):  # there NaN is a number, which spoils every sum
        floats = [one.fill_nan(None) for one in floats]
    return frame.with_columns(floats)


def pandas_columns(
    native: Any,
    what: str,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    amounts: Sequence[str] = (),
) -> pd.DataFrame:
    """Give columns of a frame of any engine in pandas: for estimates, which compute there.

    Only the `needed` columns and those of the `optional` that are there; the `amounts` among
    them as float64, times in milliseconds UTC, whatever the engine or session made of them.
    """
    native = normalise_frame(native)
    frame: Frame = nw.from_native(native)
    require_columns(frame, needed, what)
    have = frame.collect_schema().names()
    kept = [name for name in dict.fromkeys((*needed, *optional)) if name in have]
    present = [name for name in dict.fromkeys(amounts) if name in kept]
    if isinstance(native, pd.DataFrame):
        # A column of nothing but None has no dtype of its own.
        blank = {name: "float64" for name in present if native[name].isna().all()}
        native = native[kept].astype(blank)
        frame = nw.from_native(native)
    for name in present:  # each by itself: an estimate may mix kinds of numbers
        number_kind(frame, [name], what)
    if isinstance(native, pd.DataFrame):
        return native.astype(dict.fromkeys(present, "float64")).reset_index(drop=True)
    frame = frame.select(kept).with_columns(nw.col(name).cast(nw.Float64()) for name in present)
    table = nw.to_native(frame.lazy().collect("pyarrow"))
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            utc = table[place].cast(pa.timestamp("ms", "UTC"))
            table = table.set_column(place, column.name, utc)
    collected: pd.DataFrame = table.to_pandas()
    return collected


def _has_decimals(frame: Frame) -> bool:
    return any(isinstance(dtype, nw.Decimal) for dtype in frame.collect_schema().values())


def _without_nested(native: pd.DataFrame) -> pd.DataFrame:
    # Nested leaves (lists of structs) are of no use to a sum and cost a conversion.
    return native[[name for name, dtype in native.dtypes.items() if not _is_nested(dtype)]]


def _is_nested(dtype: Any) -> bool:
    return isinstance(dtype, pd.ArrowDtype) and bool(pa.types.is_nested(dtype.pyarrow_dtype))


def result_from_frame(frame: Frame, inputs: Mapping[str, Any], **facts: Any) -> Any:
    """Unwrap a result to the engine of the first input; say where it comes from, and `facts`."""
    like = next(iter(inputs.values()))
    native = nw.to_native(frame)
    if not isinstance(like, pd.DataFrame):
        return native
    if isinstance(native, pa.Table):
        native = native.to_pandas(types_mapper=_arrow_decimal)
    native = native.reset_index(drop=True)
    native.attrs["toolkit"] = {**result_provenance(inputs), **facts}
    return native


def stack_frames(frames: Sequence[Frame]) -> Frame:
    """Put frames of one engine and the same columns under each other."""
    natives = [nw.to_native(frame) for frame in frames]
    if isinstance(natives[0], pa.Table):
        # pandas hands over large_string, Arrow makes string: the same text to everybody else.
        table = pa.concat_tables(natives, promote_options="permissive")
        together: Frame = nw.from_native(table)
    else:
        together = nw.concat(list[Any](frames), how="vertical")
    return together


def flip_sign(amount: nw.Expr, kind: Numbers) -> nw.Expr:
    """Change the sign, without making -0.0 of 0.0."""
    return -amount if kind == "exact" else nw.lit(0.0) - amount


def _arrow_decimal(dtype: pa.DataType) -> pd.ArrowDtype | None:
    return pd.ArrowDtype(dtype) if pa.types.is_decimal(dtype) else None


def require_columns(frame: Frame, names: Iterable[str], what: str, hint: str = "") -> None:
    """Raise `MissingColumns`, naming every column of `names` that the frame lacks."""
    have = frame.collect_schema().names()
    missing = [name for name in names if name not in have]
    if missing:
        plural = "columns" if len(missing) > 1 else "column"
        tail = f"; {hint}" if hint else ""
        have = [name for name in have if not name.startswith("_")]  # those are of the helpers
        raise MissingColumns(
            f"{what}: {plural} {', '.join(missing)} missing (it has {', '.join(have)}){tail}"
        )


def number_kind(
    frame: Frame, names: Iterable[str], what: str, otherwise: Numbers = "float"
) -> Numbers:
    """Tell whether the number columns are float or exact (`otherwise`: none); refuse text."""
    schema = frame.collect_schema()
    kinds: set[Numbers] = set()
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
                f"{what}: column {name} holds {dtype}, not numbers; "
                'fetch with numbers="float" or numbers="exact"'
            )
    if len(kinds) > 1:
        raise MissingColumns(f"{what}: exact and float numbers are mixed; fetch all with one kind")
    return kinds.pop() if kinds else otherwise


def require_values(frame: Frame, names: Iterable[str], what: str) -> None:
    """Raise `MissingColumns` where a number column holds null or NaN: not known is not 0.

    A lazy frame is read for that, these columns alone.
    """
    missing, rows = count_missing(frame, names)
    for name, count in missing.items():
        if count:
            raise MissingColumns(
                f"{what}: column {name} is missing in {count:,} of {rows:,} "
                "rows, and missing is not 0; leave those rows out, or fetch them again"
            )


def count_missing(frame: Frame, names: Iterable[str]) -> tuple[dict[str, int], int]:
    """Count null and NaN in number columns, and the rows.

    A lazy frame is read for that, these columns alone.
    """
    schema = frame.collect_schema()
    gone = {n: nw.col(n).is_null() for n in names}
    gone |= {n: lacks | nw.col(n).is_nan() for n, lacks in gone.items() if schema[n].is_float()}
    one, none = nw.lit(1), nw.lit(0)
    flags = frame.select(
        **{n: nw.when(lacks).then(one).otherwise(none) for n, lacks in gone.items()}
    )
    sums = flags.with_columns(_rows=one).select(*(nw.col(n).sum() for n in (*gone, "_rows")))
    counted = sums.lazy().collect("pyarrow").to_arrow().to_pylist()[0]
    return {name: counted[name] or 0 for name in gone}, counted["_rows"] or 0


def is_empty_column(frame: Frame, name: str) -> bool:
    """Return whether a column holds nothing but missing values, in a frame that has rows.

    A lazy frame is read for that, this column alone.
    """
    there = nw.when(nw.col(name).is_null()).then(nw.lit(0)).otherwise(nw.lit(1))
    flags = frame.select(_there=there).with_columns(_row=nw.lit(1))
    sums = flags.select(nw.col("_there").sum(), nw.col("_row").sum())
    counted = sums.lazy().collect("pyarrow").to_arrow().to_pylist()[0]
    return bool(counted["_row"]) and not counted["_there"]


def require_some_values(frame: Frame, name: str, what: str, use: str) -> None:
    """Raise `MissingColumns` if an answer lacked a column: every value of it is missing.

    Parameters
    ----------
    frame : Frame
        The rows.
    name : str
        The column.
    what : str
        The parameter that the rows came in.
    use : str
        What the column is needed for.
    """
    if is_empty_column(frame, name):
        raise MissingColumns(
            f"{what}: column {name} is missing in every row, and it {use}. Recordings from 2023 "
            "lack such fields; fetch the rows again"
        )


def number_type(kind: Numbers) -> Any:
    """Give the narwhals dtype of a kind of numbers."""
    return EXACT if kind == "exact" else nw.Float64()


def zero_literal(kind: Numbers) -> nw.Expr:
    """Give 0 as a literal of a kind of numbers."""
    return nw.lit(0.0).cast(number_type(kind))


def missing_literal(kind: Numbers) -> nw.Expr:
    """Give the missing value as a literal of a kind of numbers."""
    return nw.lit(None).cast(number_type(kind))


def column_or_zero(name: str, have: Sequence[str], kind: Numbers) -> nw.Expr:
    """Give an optional number column with 0 where it is absent, null or NaN."""
    if name not in have:
        return zero_literal(kind)
    column = nw.col(name)
    if kind == "exact":
        return column.fill_null(0).cast(EXACT)
    column = column.cast(nw.Float64())
    return nw.when(column.is_null() | column.is_nan()).then(nw.lit(0.0)).otherwise(column)
