"""The rows of a table as `verify` needs them: their texts are read once, checked, and let go.

Of each row some hundred bytes are kept: its place, a hash of its text, and what the checks of a
whole history ask for.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.archive.findings import Finding, error_in, notice_in
from toolkit.archive.layout import ANSWERS, RECORDS, Origin, arrow_rows, columns_known, table_of
from toolkit.archive.series import Series, key_columns
from toolkit.archive.troubles import told
from toolkit.contract.operations import OPERATIONS

__all__ = ["Held"]

_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "fills": ("coin", "side", "tid"),
    "funding": ("user", "coin", "szi", "n_samples"),
}
_REPEATED: Final = ("coin", "user", "side")  # few values, many rows


class _Position(msgspec.Struct, rename="camel"):
    """What a fill says of a position, to the last digit."""

    start_position: str
    sz: str


class Held:
    """Takes a table's rows, some at a time, and gives them by series.

    Parameters
    ----------
    name : str
        The table.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self._kept: dict[tuple[str, str], list[pa.Table]] = defaultdict(list)

    def add(self, rows: pa.Table) -> Iterator[Finding]:
        """Take rows; tell of columns that say something else than their texts."""
        if self.name not in (*RECORDS, ANSWERS):
            return
        for type in pc.unique(rows["_operation"]).to_pylist():
            one = OPERATIONS.get(type)
            if one is None or table_of(one) != self.name:
                yield error_in(self.name, "", "damage", f"rows of an operation {type!r}")
                continue
            of_it = rows.filter(pc.field("_operation") == type)
            if self.name != ANSWERS:
                yield from _typed(self.name, Series(one, "", {}), of_it)
            self._keep(type, of_it)

    def series(self) -> Iterator[tuple[Series, pa.Table]]:
        """Give what is kept of each history."""
        for (type, subject), parts in sorted(self._kept.items()):
            yield Series(OPERATIONS[type], subject, {}), pa.concat_tables(parts)

    def _keep(self, type: str, rows: pa.Table) -> None:
        kept = rows.select(["_subject"]) if self.name == ANSWERS else _slim(self.name, type, rows)
        for subject in pc.unique(rows["_subject"]).to_pylist():
            of_it = kept.filter(pc.field("_subject") == subject).drop_columns(["_subject"])
            self.counts[type, subject] += of_it.num_rows
            if self.name != ANSWERS:
                self._kept[type, subject].append(of_it)


def _slim(name: str, type: str, rows: pa.Table) -> pa.Table:
    order = [*key_columns(OPERATIONS[type]), "_part", "_row"]
    # An archive of an older version may lack a column.
    more = [column for column in _KEPT.get(name, ()) if column in rows.column_names]
    kept = rows.select(list(dict.fromkeys(["_subject", *order, *more])))
    for at, column in enumerate(kept.column_names):
        if column in _REPEATED and column not in order:  # one cannot sort by dictionaries
            kept = kept.set_column(at, column, kept[column].dictionary_encode())
        elif pa.types.is_timestamp(kept[column].type):
            moments = kept[column].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            kept = kept.set_column(at, column, moments)
    texts = rows["_json"].to_pylist()
    hashes = np.fromiter(map(hash, texts), np.int64, len(texts))
    kept = kept.append_column("_hash", pa.array(hashes))
    if type != "userFillsByTime":
        return kept
    found = _positions(texts)
    for field in ("start_position", "sz"):
        values = pa.array([one and getattr(one, field) for one in found], pa.string())
        kept = kept.append_column(f"_{field}", values)
    return kept


def _positions(texts: list[str]) -> list[_Position | None]:
    """Read what fills say of positions; None where a text cannot be read."""
    try:
        return list(msgspec.json.decode(f"[{','.join(texts)}]", type=list[_Position]))
    except (msgspec.DecodeError, TypeError):
        return [None] * len(texts)  # said by `_typed`


def _typed(name: str, series: Series, rows: pa.Table) -> Iterator[Finding]:
    """Compare the columns with the text they were made from."""
    type = series.operation.type
    try:
        texts = rows["_json"].cast(pa.binary()).to_pylist()
        made = arrow_rows(series, texts, 0, 0, Origin("", False, 0))
    except Exception as error:  # whatever a damaged text makes a reader stumble over
        for subject in pc.unique(rows["_subject"]).to_pylist():
            what = f"a text cannot be read: {told(error)}"
            yield error_in(name, f"{type} {subject}", "damage", what)
        return
    current = _current(rows, name)
    for column in made.column_names:
        if column.startswith("_") or column not in rows.column_names:
            continue
        held = rows[column]
        if held.equals(made[column]):
            continue
        other = pc.invert(pc.fill_null(pc.equal(held, made[column]), False))
        other = pc.and_(other, pc.or_(pc.is_valid(held), pc.is_valid(made[column])))
        # What an older version did not know is missing; whatever is there must be right.
        wrong = pc.and_(other, pc.or_(current, pc.is_valid(held)))
        for subject in pc.unique(rows["_subject"].filter(wrong)).to_pylist():
            what = f"column {column} does not say what the texts say"
            yield error_in(name, f"{type} {subject}", "typed", what)
        unknown = pc.and_(other, pc.invert(pc.or_(current, pc.is_valid(held))))
        for subject in pc.unique(rows["_subject"].filter(unknown)).to_pylist():
            what = f"column {column} lacks values that stand in the texts: it was not known then"
            yield notice_in(name, f"{type} {subject}", "typed", what)


def _current(rows: pa.Table, name: str) -> Any:
    """Tell the rows that were written by a version that knew the same columns."""
    if "_columns" not in rows.column_names:
        return pa.array([False] * rows.num_rows)
    return pc.fill_null(pc.equal(rows["_columns"], columns_known(name)), False)
