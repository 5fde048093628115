"""The fields of a record, and the columns that it becomes: names, types and facts.

Columns, decoders and checks all read a record through `record_fields`.
"""

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import UNSET

from toolkit.contract.operations import Table
from toolkit.contract.records import Record
from toolkit.contract.value_kinds import Kind


class AnnotationParts(NamedTuple):
    """The type in the annotation of a field, and whether null and absence are allowed."""

    type: Any
    null: bool
    absent: bool


def split_annotation(annotation: Any) -> AnnotationParts:
    """Split ``Annotated[X | None | UnsetType, ...]`` into its parts.

    >>> split_annotation(int | None)
    AnnotationParts(type=<class 'int'>, null=True, absent=False)
    """
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (typing.Union, types.UnionType):
        return AnnotationParts(annotation, null=False, absent=False)
    options = get_args(annotation)
    values = [option for option in options if option not in (type(None), msgspec.UnsetType)]
    value_type = functools.reduce(lambda a, b: a | b, values)
    return AnnotationParts(value_type, type(None) in options, msgspec.UnsetType in options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a record, and the column of a frame that it becomes.

    - ``name``: the name of its column
    - ``path``: its name in Python. For a column of a nested record, the place of its value: names
      with dots between them.
    - ``wire``: the same with wire names
    - ``type``: the type of its values, without null and absence
    - ``meaning``: one line for the docs
    - ``null``, ``absent``: whether the specification allows null, and absence
    - ``has_default``: whether `default` replaces a value that is absent or null
    - ``default``: that value
    - ``missing``: whether a value may be missing because it is absent or null on the wire. Values
      of key fields and of fields with a default are never missing.
    - ``expected``: whether the specification says that the value always exists
    - ``older``: another place of the value in older answers, with Python names; empty if there is
      none

    The facts of its kind's call in the record:

    - ``kind``: the kind of its values
    - ``prefix``: a prefix for the column names of a nested record, to keep them unique
    - ``lacked``: whether known answers lack the field although the specification requires it
    - ``older_place_of``: the column that gets this value if the field at the newer place is empty
    - ``beyond``: the section of docs/live_service.md about a field beyond the specification; 0 for
      a field of the specification
    - ``key``: whether every row must have the field. Any other field that is absent or null is a
      missing value.
    """

    name: str
    path: str
    wire: str
    type: Any
    meaning: str
    null: bool
    absent: bool
    has_default: bool
    default: Any
    missing: bool
    expected: bool
    older: str = ""
    kind: Kind
    prefix: str = ""
    lacked: bool = False
    older_place_of: str = ""
    beyond: int = 0
    key: bool = False

    @property
    def may_be_absent(self) -> bool:
        """Whether the specification allows absence, or known answers lack the field."""
        return self.absent or self.lacked

    @property
    def may_be_unreadable(self) -> bool:
        """Whether an unreadable value counts as missing: the field is beyond the specification."""
        return bool(self.beyond) and not self.key

    @property
    def has_records(self) -> bool:
        """Whether records are nested in its values."""
        return self.kind.family == "rows" or is_record(self.type)


@functools.lru_cache(maxsize=512)  # recorded rows with unknown fields make further records
def record_fields(record: type[Record]) -> tuple[Field, ...]:
    """Return the fields of a record in the order of the specification.

    Raise TypeError if the annotation of a field has no kind.
    """
    hints = typing.get_type_hints(record, include_extras=True)
    fields = []
    for field in msgspec.structs.fields(record):
        parts = split_annotation(hints[field.name])
        metas = getattr(hints[field.name], "__metadata__", ())
        meta = next((meta for meta in metas if isinstance(meta, msgspec.Meta) and meta.extra), None)
        if meta is None:
            raise TypeError(
                f"{record.__name__}.{field.name} has no kind: annotate it with one of "
                "toolkit.contract.value_kinds"
            )
        facts = {"column": field.name, "is_presence": False, **(meta.extra or {})}
        column, is_presence = facts.pop("column"), facts.pop("is_presence")
        has_own_default = not field.required and field.default is not UNSET
        default = field.default if has_own_default else False if is_presence else None
        may_be_null = parts.null or (has_own_default and default is None)
        fields.append(
            Field(
                name=column,
                path=field.name,
                wire=field.encode_name,
                **parts._asdict(),
                meaning=meta.description or "",
                has_default=has_own_default or is_presence,
                default=default,
                missing=not facts.get("key") and default is None,
                expected=not (may_be_null or parts.absent or facts.get("lacked")),
                **facts,
            )
        )
    return tuple(fields)


def is_record(annotation: Any) -> bool:
    """Return whether an annotation is a record."""
    return isinstance(annotation, type) and issubclass(annotation, Record)


@functools.cache
def record_columns(record: type[Record]) -> tuple[Field, ...]:
    """Return the columns of a record; nested records become several columns.

    Lists whose entries are rows become none.

    >>> from toolkit.contract.records import FundingRow
    >>> [column.name for column in record_columns(FundingRow)]
    ['user', 'time', 'hash', 'type', 'coin', 'usdc', 'szi', 'funding_rate', 'n_samples']
    """
    fields = record_fields(record)
    older = {field.older_place_of: field.path for field in fields if field.older_place_of}
    columns: list[Field] = []
    for field in fields:
        if is_record(field.type):
            columns += (
                replace(
                    leaf,
                    name=field.prefix + leaf.name,
                    path=f"{field.path}.{leaf.path}",
                    wire=f"{field.wire}.{leaf.wire}",
                    missing=leaf.missing or not field.key,
                    expected=leaf.expected and field.expected,
                    beyond=leaf.beyond or field.beyond,
                    meaning=": ".join(filter(None, (field.prefix and field.meaning, leaf.meaning))),
                )
                for leaf in record_columns(field.type)
            )
        elif field.kind.family != "rows" and not field.older_place_of:
            columns.append(field)
    return tuple(replace(column, older=older.get(column.name, "")) for column in columns)


@functools.cache
def table_columns(table: Table) -> tuple[Field, ...]:
    """Return the columns of one frame of an answer, without those that the operation omits."""
    return tuple(
        column for column in record_columns(table.record) if column.path not in table.omits
    )


def drop_beyond_fields(value: Any) -> Any:
    """Return a record, or a collection of records, without fields beyond the specification.

    >>> from toolkit.contract.records import Delegation
    >>> row = Delegation(validator="0x1", amount="1.5", locked_until_timestamp=0)
    >>> drop_beyond_fields(row) is row
    True
    """
    if isinstance(value, Record):
        changes = {
            name: UNSET if is_beyond else drop_beyond_fields(getattr(value, name))
            for name, is_beyond in _fields_to_drop(type(value))
        }
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, list | tuple):
        return type(value)(map(drop_beyond_fields, value))
    if isinstance(value, Mapping):
        return {key: drop_beyond_fields(item) for key, item in value.items()}
    return value


@functools.cache
def _fields_to_drop(record: type[Record]) -> list[tuple[str, bool]]:
    """Return the fields to leave out (True), and those with nested records (False).

    Every nested record is checked, because a recorded one may have an unknown field.
    """
    # A required field belongs to a record that is itself beyond the specification.
    found = ((field, bool(field.beyond) and field.absent) for field in record_fields(record))
    return [(field.path, beyond) for field, beyond in found if beyond or _names_record(field.type)]


def _names_record(annotation: Any) -> bool:
    """Return whether an annotation contains a record, at any depth of lists, unions and so on."""
    return is_record(annotation) or any(map(_names_record, get_args(annotation)))
