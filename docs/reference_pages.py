"""The pages of the reference as Markdown text, made from the contract.

`docs/generate.py` writes them into ``docs/``, and a test compares them with the files there.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from toolkit.contract.columns import Column, table_columns
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.fields import is_record, record_fields
from toolkit.contract.operations import OPERATIONS, VIEWS, Operation, Parameter
from toolkit.contract.requests import check_request, describe_cost
from toolkit.errors import BadRequest

__all__ = [
    "beyond_page",
    "index_page",
    "operations_table",
    "replace_block",
    "topic_names",
    "topic_page",
]

Dtype = Callable[[Column], str]

_LEGAL: Final = {
    "address": "0x and 40 hex digits, any case",
    "addresses": "list of addresses",
    "text": "text",
    "texts": "list of texts",
    "whole": "whole number",
    "time": "time",
    "usd": "USD notional",
    "flag": "true or false",
    "cursor": "cursor",
    "venue": "2 to 4 letters, any case",
    "interval": "1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h, 8h, 12h, 1d, 3d, 1w or 1M",
    "order": "order id, or client order id (0x and 32 hex digits)",
}
_EXAMPLES: Final[dict[str, Any]] = {
    "address": "0x" + "0" * 40,
    "addresses": ["0x" + "0" * 40],
    "text": "BTC",
    "texts": ["ALL"],
    "time": 0,
    "usd": 1_000,
    "interval": "1h",
    "order": 1,
}
_PAGING: Final = {
    "cursor": "by cursor `{cursor}`, read to the end; every row comes exactly once",
    "open cursor": (
        "by cursor `{cursor}`; the size of a page is not known, so the last page is one without "
        "new rows"
    ),
    "forward": "by time, oldest first, until a page has no new rows",
    "backward": "by time, newest first, until a page has no older rows",
}


def topic_names() -> tuple[str, ...]:
    """Return the topics in the order of the specification.

    Examples
    --------
    >>> topic_names()[:3]
    ('auctions', 'market', 'snapshots')
    """
    return tuple(dict.fromkeys(operation.topic for operation in OPERATIONS.values()))


def replace_block(text: str, name: str, block: str) -> str:
    r"""Replace the text between the markers ``<!-- name:begin -->`` and ``<!-- name:end -->``.

    Raises
    ------
    ValueError
        If the text does not have each marker exactly once.

    Examples
    --------
    >>> print(replace_block("a\n<!-- t:begin -->\nold\n<!-- t:end -->\nb", "t", "new"))
    a
    <!-- t:begin -->
    new
    <!-- t:end -->
    b
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"The text must contain {begin} and {end} once each, in this order.")
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{block.strip()}\n{end}{tail}"


def operations_table() -> str:
    """Return the table of all operations."""
    rows = [
        (
            f"[`{operation.function}`]({operation.topic}.md#{operation.function})",
            f"`{operation.type}`",
            operation.summary,
            _points_text(operation),
            "yes" if operation.add_on else "",
            operation.since,
        )
        for operation in OPERATIONS.values()
    ]
    return _markdown_table(
        ("function", "operation", "what", "points", "add-on", "data since"), rows
    )


def _points_text(operation: Operation) -> str:
    scale = operation.scale
    if scale is None:
        return str(operation.points)
    words = f"{scale.each} for each of the {scale.entries}, at most {operation.points}"
    return f"{words}; times the number of dexes with ALL_DEXES"


def index_page() -> str:
    """Return the first page of the reference."""
    return _INDEX.format(operations=operations_table())


def topic_page(topic: str, dtype: Dtype, samples: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of one topic.

    Parameters
    ----------
    topic : str
        One of `topic_names`.
    dtype : callable
        Function that returns the name of a column's dtype.
    samples : mapping
        Type of operation -> a sample with ``request`` and ``response``.
    """
    parts = [f"# {topic.capitalize()}", _NOTE]
    for operation in OPERATIONS.values():
        if operation.topic == topic:
            parts.extend(_operation_section(operation, dtype))
            parts.extend(_sample_section(operation, samples[operation.type]))
    return "\n\n".join(parts) + "\n"


def beyond_page(dtype: Dtype) -> str:
    """Return the page of the operations beyond the specification.

    Parameters
    ----------
    dtype : callable
        Function that returns the name of a column's dtype.
    """
    parts = ["# Operations beyond the specification", _NOTE, _about_extra(), _extra_table()]
    for operation in EXTRA_OPERATIONS.values():
        parts.extend(_extra_section(operation, dtype))
    return "\n\n".join(parts) + "\n"


def _about_extra() -> str:
    names = [
        f"`{operation.type}`" for operation in EXTRA_OPERATIONS.values() if operation.from_archive
    ]
    return _EXTRA.format(archived=f"{', '.join(names[:-1])} and {names[-1]}")


def _extra_table() -> str:
    rows = [
        (
            f"[`{operation.type}`](#{operation.type.lower()})",
            operation.topic,
            operation.summary,
            str(operation.points),
        )
        for operation in EXTRA_OPERATIONS.values()
    ]
    return _markdown_table(("operation", "topic", "what", "points"), rows)


def _extra_section(operation: Operation, dtype: Dtype) -> Iterator[str]:
    yield f"## {operation.type}"
    yield f"`{_example_call(operation)}`"
    yield f"{operation.summary} {describe_cost(operation)}"
    if operation.parameters:
        rows = [
            (
                f"`{parameter.within}.{parameter.name}`"
                if parameter.within
                else f"`{parameter.name}`",
                _LEGAL[parameter.kind],
                _required_text(parameter),
                _default_text(parameter),
                parameter.meaning,
            )
            for parameter in operation.parameters
        ]
        yield _markdown_table(("parameter", "value", "required", "default", "meaning"), rows)
    if not operation.tables:
        yield "`tk.frame` cannot make a frame of this answer."
    if len(operation.tables) > 1:
        names = ", ".join(f"`{table.name}`" for table in operation.tables)
        yield f"`tk.frame` returns several frames, as a named tuple: {names}."
    for table in operation.tables:
        of = f"Columns of the frame `{table.name}`" if table.name else "Columns in `tk.frame`"
        yield f"{of}:"
        yield _columns_table(table_columns(table), dtype)


def _example_call(operation: Operation) -> str:
    """Return a call of `tk.info` with the required parameters of an operation."""
    request: dict[str, Any] = {"type": operation.type}
    for parameter in operation.parameters:
        if parameter.required:
            holder = request.setdefault(parameter.within, {}) if parameter.within else request
            holder[parameter.name] = _EXAMPLES[parameter.kind]
    return f"tk.info({json.dumps(request)})"


def _operation_section(operation: Operation, dtype: Dtype) -> Iterator[str]:
    yield f"## {operation.function}"
    arguments = ", ".join(_positional_names(operation))
    yield f"`tk.{operation.function}({arguments})` sends `{operation.type}`."
    yield operation.summary
    yield "\n".join(f"- {fact}" for fact in _fact_lines(operation))
    if operation.parameters:
        yield "### Parameters of " + operation.function
        yield _parameters_table(operation)
    for table in operation.tables:
        of = f"`{table.name}` of " if table.name else ""
        yield f"### Columns of {of}{operation.function}"
        yield _columns_table(table_columns(table), dtype)
    for view in VIEWS.values():
        if view.type == operation.type:
            yield f"### Columns of {view.function}"
            yield f"`tk.{view.function}` makes another frame of the same answer. {view.summary}"
            yield _columns_table(table_columns(view.tables[0]), dtype)
    if further := list(_further_fields(operation.answer, _beyond_columns(operation))):
        yield f"### Further fields of {operation.function}"
        yield "Fields of the answer that have no column of their own:"
        yield _markdown_table(("on the wire", "meaning"), further)
    yield f"### Errors of {operation.function}"
    yield _markdown_table(("status", "when", "message"), _error_rows(operation))


def _sample_section(operation: Operation, sample: Mapping[str, Any]) -> Iterator[str]:
    yield f"### Sample of {operation.function}"
    yield _json_block(sample["request"])
    answer = "The decoded answer" if operation.binary else "The answer"
    yield f"{answer}. This page shows only the first entry of each list:"
    yield _json_block(_first_entries(sample["response"]))


def _first_entries(value: Any) -> Any:
    """Return a sample with lists of similar objects and maps of addresses cut to one entry."""
    if isinstance(value, list):
        alike = len({type(entry) for entry in value}) == 1 and isinstance(value[0], dict | list)
        return [_first_entries(entry) for entry in (value[:1] if alike else value)]
    if isinstance(value, dict):
        keyed = len(value) > 1 and all(key.startswith("0x") for key in value)
        items = list(value.items())[:1] if keyed else value.items()
        return {key: _first_entries(one) for key, one in items}
    return value


def _json_block(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```"


def _positional_names(operation: Operation) -> Iterator[str]:
    for parameter in operation.parameters:
        if parameter.required or parameter.python in ("start", "end"):
            yield parameter.python


def _fact_lines(operation: Operation) -> Iterator[str]:
    yield describe_cost(operation)
    if operation.add_on:
        yield "An add-on: the key needs a permission for it."
    if operation.own:
        yield "Exists only in this service, not in the exchange's own API."
    if operation.since:
        yield f"Data since {operation.since}."
    if operation.binary:
        yield "The answer is MessagePack, compressed with zstd."
    if operation.latest:
        yield "One request returns the latest rows, newest first."
    if operation.paging != "none":
        cursor = "_".join(f"<{_wire_name(operation, path)}>" for path in operation.key)
        yield f"Pages: {_PAGING[operation.paging].format(cursor=cursor)}."


def _wire_name(operation: Operation, path: str) -> str:
    columns = table_columns(operation.tables[0])
    return next(column.wire for column in columns if column.path == path)


def _parameters_table(operation: Operation) -> str:
    rows = [
        (
            f"`{parameter.python}`",
            f"`{parameter.name}`",
            _LEGAL[parameter.kind],
            _required_text(parameter),
            _default_text(parameter),
            _range_text(parameter),
            parameter.meaning,
        )
        for parameter in operation.parameters
    ]
    return _markdown_table(
        ("argument", "on the wire", "value", "required", "default", "range", "meaning"), rows
    )


def _required_text(parameter: Parameter) -> str:
    if parameter.unless:
        return f"unless `{parameter.unless}`"
    return "yes" if parameter.required else ""


def _default_text(parameter: Parameter) -> str:
    if parameter.default is None:
        return ""
    shown = {"": '""', False: "false", True: "true"}.get(parameter.default, str(parameter.default))
    return f"`{shown if parameter.kind in ('text', 'flag') else parameter.default}`"


def _range_text(parameter: Parameter) -> str:
    entries = " entries" if parameter.kind in ("addresses", "texts") else ""
    if parameter.least is not None and parameter.most is not None:
        return f"{parameter.least} to {parameter.most}{entries}"
    if parameter.most is not None:
        return f"at most {parameter.most}{entries}"
    if entries and parameter.least == 1:
        return "not empty"
    return "" if parameter.least is None else f"at least {parameter.least}"


def _columns_table(columns: Sequence[Column], dtype: Dtype) -> str:
    rows = [
        (
            f"`{column.name}`",
            f"`{column.wire}`",
            dtype(column),
            column.kind.unit,
            "" if column.expected else "yes",
            _meaning_text(column),
        )
        for column in columns
    ]
    return _markdown_table(("column", "on the wire", "dtype", "unit", "optional", "meaning"), rows)


def _beyond_columns(operation: Operation) -> set[str]:
    """Return the fields beyond the specification that have a column in a frame of an answer."""
    views = [view for view in VIEWS.values() if view.type == operation.type]
    tables = [table for row in (operation, *views) for table in row.tables]
    columns = [column for table in tables for column in table_columns(table)]
    return {column.wire.rpartition(".")[2] for column in columns if column.beyond}


def _further_fields(annotation: Any, known: set[str], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield place and meaning of each field beyond the specification that has no column.

    - ``annotation``: the type of an answer, or of a part of it
    - ``known``: the fields that have a column
    - ``place``: the place of the part in the answer: wire names, each with a dot before it
    """
    if not is_record(annotation):
        for part in get_args(annotation):
            yield from _further_fields(part, known, place)
        return
    for field in record_fields(annotation):
        inner = f"{place}.{field.wire}"
        if field.note.beyond and not is_record(field.type) and field.wire not in known:
            yield f"`{inner[1:]}`", _mark_beyond(field.meaning, field.note.beyond)
        if field.has_records:
            yield from _further_fields(field.type, known, inner)


def _meaning_text(column: Column) -> str:
    """Return the meaning of a column, with a note if it is beyond the specification."""
    return _mark_beyond(column.meaning, column.beyond)


def _mark_beyond(meaning: str, section: int) -> str:
    """Return a meaning with the section of its fact; 0 if it is in the specification."""
    if not section:
        return meaning
    place = f"docs/live_service.md, section {section}"
    return f"{meaning} (beyond the specification: {place})"


def _error_rows(operation: Operation) -> Iterator[tuple[str, str, str]]:
    """Yield status, cause and message of each error; `check_request` gives the messages."""
    full = {
        parameter.name: _EXAMPLES[parameter.kind]
        for parameter in operation.parameters
        if parameter.required
    }
    for parameter in operation.parameters:
        if parameter.required:
            without = {name: value for name, value in full.items() if name != parameter.name}
            yield "400", f"no `{parameter.name}`", _refusal_message(operation, without)
        if parameter.kind in ("address", "addresses"):
            wrong: Any = "0x12" if parameter.kind == "address" else ["0x12"]
            yield (
                "400",
                f"malformed `{parameter.name}`",
                _refusal_message(operation, {**full, parameter.name: wrong}),
            )
        if parameter.most is not None and parameter.kind == "whole":
            wrong = parameter.most + 1
            yield (
                "400",
                f"`{parameter.name}` = {wrong}",
                _refusal_message(operation, {**full, parameter.name: wrong}),
            )
    yield "401", "no key, or an unknown key", "`Invalid API key`"
    if operation.add_on:
        yield "403", "the key has no permission for the add-on", "`Permission denied`"
    if operation.unpublished == 404:
        yield "404", "nothing published yet", "`No snapshots are available yet`"
    yield "429", "too many points in a minute", "`Rate limit exceeded`"
    also = "; nothing published yet" if operation.unpublished == 500 else ""
    yield "500", f"the service failed{also}", "`An internal error occurred`"
    if not operation.own:
        yield "502", "the exchange behind the service did not answer in time", "`Timeout error`"


def _refusal_message(operation: Operation, request: dict[str, Any]) -> str:
    try:
        check_request(operation, request)
    except BadRequest as error:
        return f"`{error.message}`"
    raise AssertionError(f"{operation.type} accepts {request}")


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table without the columns that are empty in every row."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    lines = [[heads[i] for i in kept], ["---"] * len(kept)]
    lines += [[row[i] for i in kept] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_NOTE: Final = (
    "`docs/generate.py` writes this document from the contract. The [index](index.md) describes "
    "what all operations have in common."
)

_EXTRA: Final = """The specification has 22 operations. The live service answers further
operations, and some third-party clients need them at start ([section 9](../live_service.md)). The
local service answers the operations in this document by default. `toolkit serve --strict` and
`tk.local(strict=True)` restrict it to the specification. It then refuses these operations as
unknown types (status 400), and omits the fields that the reference marks as beyond the
specification.

These operations have no fetch function. `tk.info` sends one request and returns one answer.
`tk.frame` makes a frame of the answer. `tk.info` does not read further pages, and the live service
may cut a long range (the exchange's public API cuts at 500 or 2,000 rows). Times are Unix
milliseconds.

A service that serves an archive or recorded answers supports only these operations of this
document: {archived}.
It refuses the others with status 400, because their answers need data that an archive lacks."""


_INDEX: Final = """# Reference

`docs/generate.py` writes these documents from the contract. The
[assumptions](../assumptions.md) are the choices that the specification leaves open.

{operations}

Like the live service, the local service also answers
[operations beyond the specification](beyond.md).

## What all functions have in common

- Required arguments and the range of time are positional. All other arguments are keywords.
- `numbers` is the form of number columns: `"float"` (float64), `"exact"` (decimals with 18 digits
  after the point) or `"text"` (the text that the service sent). These pages show the dtypes of
  `"float"`.
- `session` is the session that sends the request. By default it is the last one that `tk.connect`
  or `tk.local` made.
- A time is one of: whole milliseconds, ISO text (`"2025-09-01"`, `"2025-09-01T12:30:00+02:00"`), a
  date, a datetime, or an age (`"90s"`, `"15m"`, `"4h"`, `"7d"`, `"2w"`). An age counts back from
  the current time of the source. A time without a zone is UTC. A range includes both ends.
- `page_size` is the number of rows of one request. `max_rows` is the largest number of rows of the
  frame. Paged functions read all pages. If they cannot, they raise `Incomplete`, which has the rows
  so far. With `on_incomplete="warn"` they return these rows and mark the frame as incomplete.
- A frame always has all its columns, in this order and with these dtypes, even if it is empty.
- An *optional* column can be absent or null according to the specification. Fields beyond the
  specification are optional, too, and so are fields that some known answers lack. In a live answer,
  every field except the key fields can be missing
  ([Fetching](../fetching.md#missing-and-unknown-fields)).
- The unit "fee token" is the token in the column `fee_token`. The native token is HYPE. The unit
  "units of the token" is the token that the row names. For the gas of deploy auctions, the
  specification does not name the token.
- For a well-formed address that the service does not know, the frame is empty. There is no error.
"""
