"""The columns that a record becomes: its leaves, in the order of the specification."""

import functools
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin

import msgspec

from toolkit.contract.kinds import Kind, Note, field_note
from toolkit.contract.operations import Table
from toolkit.contract.records import Record

__all__ = ["Column", "Shape", "record_columns", "shape_of", "table_columns"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame.

    Attributes
    ----------
    name : str
        Its name in the frame.
    path : str
        Where its value stands in a record, in Python names, dotted.
    wire : str
        The same in wire names.
    kind : Kind
        What the value is.
    missing : bool
        Whether a value may be missing: absent or null on the wire. Only key fields may not, and
        fields that have a default.
    meaning : str
        One line.
    type : object
        The Python type of the value when it is there.
    beyond : int
        The section of docs/live_service.md that it comes from; 0: the specification has it.
    older : str
        Another place of the value in older answers, in Python names; empty where there is none.
    expected : bool
        Whether the specification says that the value is always there.
    default : object
        What stands for a value that is absent or null; None where it is missing then.
    """

    name: str
    path: str
    wire: str
    kind: Kind
    missing: bool
    meaning: str
    type: Any
    beyond: int = 0
    older: str = ""
    expected: bool = True
    default: Any = None

    @property
    def is_rows(self) -> bool:
        """Whether it is no value, but rows of another record."""
        return self.kind.family == "rows"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the annotation of a field says, taken apart."""

    type: Any
    null: bool
    absent: bool


def shape_of(annotation: Any) -> Shape:
    """Take ``Annotated[X | None | UnsetType, ...]`` apart.

    Examples
    --------
    >>> shape_of(int | None)
    Shape(type=<class 'int'>, null=True, absent=False)
    """
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (typing.Union, types.UnionType):
        return Shape(annotation, null=False, absent=False)
    options = get_args(annotation)
    rest = [one for one in options if one not in (type(None), msgspec.UnsetType)]
    bare = functools.reduce(lambda a, b: a | b, rest)
    return Shape(bare, type(None) in options, msgspec.UnsetType in options)


@functools.cache
def record_columns(record: type[Record]) -> tuple[Column, ...]:
    """Give the columns of a record, nested records flattened.

    Examples
    --------
    >>> from toolkit.contract.records import FundingRow
    >>> [column.name for column in record_columns(FundingRow)]
    ['user', 'time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    older = {note.fills: field.name for field, note in _notes(record) if note.fills}
    return tuple(replace(one, older=older.get(one.name, "")) for one in _leaves(record))


def _notes(record: type[Record]) -> Iterator[tuple[msgspec.structs.FieldInfo, Note]]:
    hints = typing.get_type_hints(record, include_extras=True)
    for field in msgspec.structs.fields(record):
        note = field_note(hints[field.name])
        if note is None:
            raise TypeError(f"{record.__name__}.{field.name} does not say what it is")
        yield field, note


@functools.cache
def table_columns(table: Table) -> tuple[Column, ...]:
    """Give the columns of one frame of an answer, without those that it omits."""
    return tuple(one for one in record_columns(table.record) if one.path not in table.omits)


def _leaves(record: type[Record]) -> Iterator[Column]:
    hints = typing.get_type_hints(record, include_extras=True)
    for field, note in _notes(record):
        annotation = hints[field.name]
        shape = shape_of(annotation)
        if note.fills:  # an older place of another column's value: see `Column.older`
            continue
        may_lack = shape.null or shape.absent or bool(note.lacks) or field.default is None
        has_default = not field.required and field.default not in (msgspec.UNSET, None)
        if isinstance(shape.type, type) and issubclass(shape.type, Record):
            about = _meaning(annotation)
            for leaf in record_columns(shape.type):
                yield replace(
                    leaf,
                    name=note.prefix + leaf.name,
                    path=f"{field.name}.{leaf.path}",
                    wire=f"{field.encode_name}.{leaf.wire}",
                    missing=leaf.missing or not note.key,
                    expected=leaf.expected and not may_lack,
                    beyond=leaf.beyond or note.beyond,
                    meaning=f"{about}: {leaf.meaning}" if note.prefix else leaf.meaning,
                )
        else:
            yield Column(
                name=note.column or field.name,
                path=field.name,
                wire=field.encode_name,
                kind=note.kind,
                missing=not note.key and not has_default,
                expected=not may_lack,
                default=field.default if has_default else None,
                meaning=_meaning(annotation),
                type=shape.type,
                beyond=note.beyond,
            )


def _meaning(annotation: Any) -> str:
    return next(
        meta.description or "" for meta in annotation.__metadata__ if isinstance(meta, msgspec.Meta)
    )
