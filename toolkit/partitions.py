"""More rows than memory: run a helper on partitions of Parquet files, and combine its results."""

import inspect
import json
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pa_fs

from toolkit.errors import warn_caller
from toolkit.public_names import publish_as
from toolkit.times import HOUR

SUMS: Final = ("pnl.attribution", "builders.routing", "ledger.sums")
"""Helpers whose every figure is a sum over rows, so that the results of partitions add up."""

_READ: Final = {
    "pnl.attribution": (
        "account", "builder_fee", "closed_pnl", "coin", "deployer_fee", "dir", "fee", "fee_token",
        "oid", "priority_gas", "px", "side", "sz", "tid", "time", "user",
    )
}  # fmt: skip
"""Helper -> the columns that it reads of fills without funding, beside those of `by`. Its figures
are linear in the amounts of rows that have the same names and signs."""

_NAMES: Final = ("coin", "side", "dir", "fee_token")
_SPANS: Final = {"hour", "day", "week"}
_KEYS: Final = {*_NAMES, *_SPANS, "user", "dex", "crossed", "builder"}
_PARTS: Final = ("builder_fee", "deployer_fee")
_TIMES: Final = [pa.timestamp(unit, "UTC") for unit in ("ms", "us", "ns")]

_ROWS: Final = {"fills", "funding", "ledger", "positions"}
"""Arguments whose rows a sum adds up."""


class Part(NamedTuple):
    """The rows from the first to the last value of a column, both inclusive."""

    first: Any
    last: Any


@dataclass(frozen=True)
class Files:
    """Parquet files with the rows of one table.

    - ``paths``, ``filesystem``: the files
    - ``schema``: their columns
    - ``operation``: whose rows count; empty for all
    - ``owner``: the column that has the account of each row
    - ``facts``: the provenance of the rows
    """

    paths: Sequence[str]
    filesystem: Any
    schema: pa.Schema
    operation: str = ""
    owner: str = "user"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _condition(self) -> Any:
        return ds.field("_operation") == self.operation if self.operation else None

    @classmethod
    def open(cls, path: Path) -> "Files":
        """Return a Parquet file, or the files of a folder."""
        dataset = ds.dataset(path, format="parquet")
        attrs = json.loads((dataset.schema.metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        stated = attrs.get("toolkit", {})
        facts = {name: stated[name] for name in ("source", "simulated") if name in stated}
        return cls(dataset.files, dataset.filesystem, dataset.schema, facts=facts)

    def count(self, split: str) -> Counter[Any]:
        """Return the number of rows by the value of a column, or by day."""
        counts = Counter[Any]()
        columns = [self._column(split)]
        for batch in self._dataset(columns).to_batches(columns=columns, filter=self._condition):
            values = batch.column(0)
            if split == "day":
                values = pc.floor_temporal(values, unit="day")
            for value, rows in zip(*pc.value_counts(values).flatten(), strict=True):
                counts[value.as_py()] += rows.as_py()
        if None in counts:
            raise ValueError(
                f"{counts[None]:,} rows have no {split}, so they belong to no partition. Split by "
                "another column, or fill it in"
            )
        return counts

    def read(
        self, split: str, part: Part | None, wanted: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the wanted columns of a partition; of None, a frame without rows."""
        known = [name for name in self.schema.names if name[0] != "_" and name != self.owner]
        columns = {"user": self.owner} if self.owner in self.schema.names else {}
        columns |= {name: name for name in known if name not in columns}
        if wanted is not None:
            columns = {name: column for name, column in columns.items() if name in wanted}
        condition = self._condition
        if part is not None:
            column = ds.field(self._column(split))
            past = part.last + timedelta(days=1) if split == "day" else part.last
            inside = (column >= part.first) & (column < past if split == "day" else column <= past)
            condition = inside if condition is None else condition & inside
        # The column of the condition stays text: statistics of row groups are not compared with
        # dictionaries, so that every file would be read.
        dataset = self._dataset({*columns.values()} - {self._column(split)})
        read = dataset.head if part is None else dataset.to_table
        options = {"num_rows": 0} if part is None else {}
        table = read(**options, columns=[*columns.values()], filter=condition)
        frame: pd.DataFrame = table.rename_columns([*columns]).to_pandas()
        frame.attrs["toolkit"] = dict(self.facts)
        return frame

    def add_up(self, split: str, part: Part, keys: Sequence[str]) -> pd.DataFrame | None:
        """Return a partition of fills with one row for all that have the same names and signs.

        Its ``px`` and ``sz`` keep the sums of px * sz and of px * fee; ``_rows`` counts the fills.
        Return None if a fill lacks a name or an amount, or may come twice, or for other types.
        """
        kinds = {field.name: field.type for field in self.schema}
        fees = [name for name in (*_PARTS, "priority_gas") if name in kinds]
        amounts, column = ("px", "sz", "closed_pnl", "fee"), self._column(split)
        base = getattr(self.filesystem, "base_fs", self.filesystem)
        if (
            find_spec("duckdb") is None  # it is in the extra `scale`
            or not isinstance(base, pa_fs.LocalFileSystem)
            or not all(_is_text(kinds.get(name)) for name in (*_NAMES, column))
            or not all(
                pa.types.is_float64(kinds.get(name, pa.null())) for name in (*amounts, *fees)
            )
            or kinds.get("time") not in _TIMES
            or not {*keys} <= _KEYS
            or {"account", "dex"} & {*kinds}
            or len({*map(str.lower, kinds)}) < len(kinds)  # DuckDB would take any of these
        ):
            return None
        import duckdb

        known = [f"isfinite({name})" for name in amounts]
        known += [f"coalesce(isfinite({name}), true)" for name in fees]
        trading_fee = " - ".join(["fee", *(f"coalesce({n}, 0)" for n in fees if n in _PARTS)])
        groups = [*_NAMES, *(name for name in ("crossed", "builder") if name in keys)]
        known += [f"{name} IS NOT NULL" for name in groups if name != "builder"]
        groups += [f'"{self.owner}" AS user'] * ("user" in keys)
        hour = f"epoch_ms(time) // {HOUR} * {HOUR}" if _SPANS & {*keys} else "0"
        sums = [f"sum({name}) AS {name}" for name in ("closed_pnl", "fee", *fees)]
        source = f"""FROM read_parquet($paths, union_by_name = true, hive_partitioning = false)
            WHERE "{column}" BETWEEN $first AND $last"""
        paths = [getattr(self.filesystem, "base_path", "") + path for path in self.paths]
        if {*"*?["} & {*"".join(paths)}:  # DuckDB would look for other files
            return None
        values = {"paths": paths, **part._asdict()}
        if self.operation:
            source += " AND _operation = $operation"
            values["operation"] = self.operation
        twice = f"SELECT hash(tid, side) AS trade {source} AND tid IS DISTINCT FROM 0"
        added = f"""SELECT {", ".join([*groups, *sums])}, {hour} AS time,
            sign(px), sign(fee), sign({trading_fee}), sum(px * sz) AS volume, sum(sz) AS sz,
            sum(px * fee) AS cost, count(*) AS _rows,
            bool_and(coalesce({" AND ".join(known)}, false)) AS known
            {source} GROUP BY ALL ORDER BY ALL"""
        try:
            with duckdb.cursor() as database:
                if "tid" in kinds:
                    trades = np.sort(database.execute(twice, values).fetchnumpy()["trade"])
                    if (trades[1:] == trades[:-1]).any():
                        return None
                rows = database.execute(added, values).df()
        except duckdb.Error:  # for example other types in one of the files
            return None
        if not rows["known"].all():
            return None
        rows["px"] = (rows["cost"] / rows["fee"]).where(rows["fee"] != 0, 1.0)
        rows["sz"] = (rows["volume"] / rows["px"]).where(rows["px"] != 0, rows["sz"])
        rows["time"] = pd.to_datetime(rows["time"], unit="ms", utc=True)
        rows.attrs["toolkit"] = dict(self.facts)
        return rows

    def _column(self, split: str) -> str:
        column = {"user": self.owner, "day": "time"}.get(split, split)
        if column not in self.schema.names:
            raise ValueError(
                f"the files have no column {column}, by which the rows are split. They have "
                f"{', '.join(self.schema.names)}"
            )
        return column

    def _dataset(self, columns: Collection[str]) -> ds.Dataset:
        """Return the files, with texts as dictionaries, which are read several times faster."""
        texts = [name for name in columns if _is_text(self.schema.field(name).type)]
        fields = [
            field.with_type(pa.dictionary(pa.int32(), pa.string()))
            if field.name in texts
            else field
            for field in self.schema
        ]
        form = ds.ParquetFileFormat(dictionary_columns=texts)
        return ds.dataset([*self.paths], pa.schema(fields), form, self.filesystem)


@dataclass(frozen=True)
class _Call:
    """A helper with its arguments, to be called on a partition, here or elsewhere."""

    helper: Callable[..., pd.DataFrame]
    positional: Sequence[Any]
    named: Mapping[str, Any]
    split: str
    columns: Sequence[str] | None
    keys: Sequence[str] | None = None  # of a helper that may add up rows of the same names

    def __call__(self, part: Part | None) -> tuple[pd.DataFrame, list[tuple[type[Warning], str]]]:
        """Return the result, and the warnings, which a worker could not show."""

        def argument(value: Any) -> Any:
            if not isinstance(value, Files):
                return value
            added = None
            if part and self.keys is not None:
                added = value.add_up(self.split, part, self.keys)
            return value.read(self.split, part, self.columns) if added is None else added

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = self.helper(
                *map(argument, self.positional),
                **{name: argument(value) for name, value in self.named.items()},
            )
        return result, [(item.category, str(item.message)) for item in caught]


@publish_as("toolkit")
def apply(
    helper: Callable[..., pd.DataFrame],
    *arguments: object,
    split: str = "user",
    executor: object = None,
    rows_at_once: int = 500_000,
    columns: Sequence[str] | None = None,
    **named: object,
) -> pd.DataFrame:
    """Run a helper on Parquet files or on an archive, one partition of the rows after another.

    A partition has all rows of some accounts, coins or days, so memory follows the partition and
    not the files. The results are concatenated if each of their rows belongs to one account, coin
    or day. They are added up if the helper only sums: ``pnl.attribution``, ``builders.routing``
    and ``ledger.sums``. Every other helper needs all rows at once, and is refused before it runs.

    Parameters
    ----------
    helper : callable
        A helper that returns a frame, such as ``tk.pnl.round_trips``.
    *arguments, **named
        Its arguments. These are split: a ``pathlib.Path`` of a Parquet file or of a folder of such
        files, and ``archive.files(fetch)``. Each partition gets all other arguments unchanged.
    split : str, default "user"
        The column by whose values the rows are split, or ``"day"``. Files that are sorted by it, as
        those of an archive are by account, are read once. Of others each partition reads all.
    executor : Executor, Dask Client or SparkSession, optional
        Where the partitions run; by default in this process. Other processes and machines need
        this package and access to the files.
    rows_at_once : int
        The number of rows from which a partition is full. No account, coin or day is cut.
    columns : sequence of str, optional
        The columns to read; by default all that the helper needs, or all.

    Returns
    -------
    DataFrame
        As from the helper; sums of floats may differ in their last digits. The provenance has
        ``split`` and ``partitions``.

    Raises
    ------
    ValueError
        If the helper needs all rows at once, the rows that it counts are not in files, or the files
        lack a column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> fills = tk.many(tk.user_fills_by_time, session.world["users"][:4], "30d")
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "fills.parquet"
    >>> fills.sort_values("user").to_parquet(path)
    >>> trips = tk.apply(tk.pnl.round_trips, path, rows_at_once=1_000)
    >>> len(trips) == len(tk.pnl.round_trips(fills))
    True
    """
    positional, others = [*map(_files, arguments)], {k: _files(v) for k, v in named.items()}
    sources = [value for value in [*positional, *others.values()] if isinstance(value, Files)]
    if not sources:
        raise ValueError(
            "apply needs rows in files: pass a pathlib.Path of Parquet files, or "
            "archive.files(tk.user_fills_by_time)"
        )
    # The public path: toolkit.pnl._attribution is tk.pnl.
    topic = helper.__module__.removeprefix("toolkit.").partition("._")[0]
    name = f"{topic}.{helper.__name__}"
    given = inspect.signature(helper).bind(*positional, **others).arguments
    rows = {argument for argument in _ROWS & given.keys() if given[argument] is not None}
    counted = {next(iter(given)), *(rows if name in SUMS else ())}
    if in_memory := sorted(key for key in counted if not isinstance(given[key], Files)):
        raise ValueError(
            f"{name}: each partition would count the rows of {', '.join(in_memory)} again. Write "
            "them to a file and pass its pathlib.Path, or call the helper without apply"
        )
    call = _Call(helper, positional, others, split, columns)
    empty, _ = call(None)
    if columns is None and name in _READ and rows == {"fills"}:
        keys = empty.attrs["toolkit"]["by"]
        call = replace(call, columns=(*_READ[name], *keys), keys=keys)
    is_sum = name in SUMS and split not in empty
    if not is_sum and (split not in empty or "rank" in empty):
        raise ValueError(
            f"{name} needs all rows at once: its results do not belong to one {split} each, and do "
            f"not add up. Pass by= with {split} if it has it, or pass one frame"
        )
    parts = _parts(sum((source.count(split) for source in sources), Counter()), rows_at_once)
    results, said = [empty], dict[tuple[type[Warning], str], None]()
    for result, caught in _run(call, parts, executor):
        results.append(result)
        said |= dict.fromkeys(caught)
    for category, message in said:
        warn_caller(message, category)
    filled = [result for result in results if len(result)] or results[:1]
    whole = pd.concat(filled, ignore_index=True)
    if is_sum:
        whole = _sum(whole, empty.attrs["toolkit"].get("by") or [])
    facts = {"helper": name, "split": split, "partitions": len(parts)}
    whole.attrs["toolkit"] = {**empty.attrs["toolkit"], **facts}
    del whole.attrs["toolkit"]["inputs"]
    kinds = empty.dtypes.to_dict()  # a missing key is neither True nor a whole number
    gaps = [name for name, kind in kinds.items() if kind.kind in "biu" and whole[name].hasnans]
    return whole.astype({name: kind for name, kind in kinds.items() if name not in gaps})


def _is_text(kind: pa.DataType | None) -> bool:
    return kind is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _files(value: Any) -> Any:
    return Files.open(value) if isinstance(value, Path) else value


def _parts(counts: Mapping[Any, int], rows_at_once: int) -> list[Part]:
    """Return ranges of the values, in their order, with few more rows than a partition may have."""
    parts, first, rows = list[Part](), None, 0
    for value in sorted(counts):
        first, rows = (value, 0) if first is None else (first, rows)
        rows += counts[value]
        if rows >= rows_at_once:
            parts.append(Part(first, value))
            first = None
    return parts if first is None else [*parts, Part(first, value)]


def _run(call: _Call, parts: Sequence[Part], executor: Any) -> Iterator[Any]:
    """Yield the results of the partitions in their order."""
    from tqdm.auto import tqdm

    if executor is None:
        results: Any = map(call, parts)
    elif hasattr(executor, "createDataFrame"):
        results = _run_on_spark(call, parts, executor)
    else:
        pool: Executor = getattr(executor, "get_executor", lambda: executor)()
        results = pool.map(call, parts)
    yield from tqdm(results, total=len(parts), unit="part", leave=False, delay=1)


def _run_on_spark(call: _Call, parts: Sequence[Part], session: Any) -> list[Any]:
    """Return the results of the partitions; executors send them as Arrow."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result, caught = call(parts[number])
                rows = pa.Table.from_pandas(result)
                with pa.ipc.new_stream(sink := pa.BufferOutputStream(), rows.schema) as writer:
                    writer.write_table(rows)
                said = [f"{category.__name__}: {words}" for category, words in caught]
                values = {"rows": [sink.getvalue().to_pybytes()], "said": [said]}
                yield pa.RecordBatch.from_pydict({"number": [number]} | values)

    numbers = session.range(len(parts)).repartition(max(1, len(parts)))
    done = numbers.mapInArrow(run, "number long, rows binary, said array<string>").collect()
    return [
        (pa.ipc.open_stream(row["rows"]).read_pandas(), [(UserWarning, w) for w in row["said"]])
        for row in sorted(done, key=lambda row: row["number"])
    ]


def _sum(results: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Add up the results of partitions; a text stays if all partitions have the same."""
    figures = [name for name in map(str, results) if name not in keys]
    numbers = [name for name in figures if pd.api.types.is_numeric_dtype(results[name])]
    groups = (
        results.groupby(list(keys), sort=True, dropna=False)
        if keys
        else results.groupby(pd.Series(0, results.index))
    )
    sums = groups[numbers].sum(min_count=1)
    for name in set(figures) - set(numbers):
        sums[name] = groups[name].first().where(groups[name].nunique(dropna=False) == 1)
    return sums.reset_index(drop=not keys)[list(results)]
