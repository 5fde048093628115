"""The reference documents, written from the contract: Markdown text, no files.

`docs/generate.py` writes them; a test compares them with what lies in ``docs/``.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from toolkit.contract.columns import Column, table_columns
from toolkit.contract.costs import describe_cost
from toolkit.contract.extra_operations import EXTRA_OPERATIONS
from toolkit.contract.operations import OPERATIONS, Operation, Parameter
from toolkit.contract.requests import check_request
from toolkit.errors import BadRequest

__all__ = ["beyond_page", "index", "insert", "operations_table", "topic_page", "topics"]

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
        "by cursor `{cursor}`; the size of a page is not known, so reading goes on until a page "
        "brings nothing new"
    ),
    "forward": "by time, from the last time on until nothing new comes",
    "backward": "by time, newest first, until nothing older comes",
}


def topics() -> tuple[str, ...]:
    """Give the topics, in the order in which the specification comes to them.

    Examples
    --------
    >>> topics()[:3]
    ('auctions', 'market', 'snapshots')
    """
    return tuple(dict.fromkeys(operation.topic for operation in OPERATIONS.values()))


def insert(text: str, name: str, block: str) -> str:
    r"""Replace what stands between the markers ``<!-- name:begin -->`` and ``<!-- name:end -->``.

    Raises
    ------
    ValueError
        If the text does not have both markers, once each.

    Examples
    --------
    >>> print(insert("a\n<!-- t:begin -->\nold\n<!-- t:end -->\nb", "t", "new"))
    a
    <!-- t:begin -->
    new
    <!-- t:end -->
    b
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the text must have {begin} and {end}, once each and in this order")
    head, rest = text.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{block.strip()}\n{end}{tail}"


def operations_table(folder: str = "") -> str:
    """Write the table of all operations.

    Parameters
    ----------
    folder : str
        Where the topic pages lie, seen from the document that the table goes into.
    """
    rows = [
        (
            f"[`{one.function}`]({folder}{one.topic}.md#{one.function})",
            f"`{one.type}`",
            one.summary,
            _points(one),
            "yes" if one.add_on else "",
            one.since,
        )
        for one in OPERATIONS.values()
    ]
    return _table(("function", "operation", "what", "points", "add-on", "data since"), rows)


def _points(operation: Operation) -> str:
    scale = operation.scale
    if scale is None:
        return str(operation.points)
    return f"{scale.each} for each of the {scale.entries}, at most {operation.points}, times dexes"


def index() -> str:
    """Write the first page of the reference."""
    return _INDEX.format(operations=operations_table())


def topic_page(topic: str, dtype: Dtype, samples: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page of one topic.

    Parameters
    ----------
    topic : str
        One of `topics`.
    dtype : callable
        Column -> the name of its dtype in a frame.
    samples : mapping
        Type of operation -> one exchange of it, with ``request`` and ``response``.
    """
    parts = [f"# {topic.capitalize()}", _NOTE]
    for operation in OPERATIONS.values():
        if operation.topic == topic:
            parts.extend(_operation(operation, dtype))
            parts.extend(_sample(operation, samples[operation.type]))
    return "\n\n".join(parts) + "\n"


def beyond_page(dtype: Dtype) -> str:
    """Return the page of the operations beyond the specification.

    Parameters
    ----------
    dtype : callable
        Column -> the name of its dtype in a frame.
    """
    parts = ["# Operations beyond the specification", _NOTE, _BEYOND, _extra_table()]
    for operation in EXTRA_OPERATIONS.values():
        parts.extend(_extra(operation, dtype))
    return "\n\n".join(parts) + "\n"


def _extra_table() -> str:
    rows = [
        (f"[`{one.type}`](#{one.type.lower()})", one.topic, one.summary, str(one.points))
        for one in EXTRA_OPERATIONS.values()
    ]
    return _table(("operation", "topic", "what", "points"), rows)


def _extra(operation: Operation, dtype: Dtype) -> Iterator[str]:
    yield f"## {operation.type}"
    yield f"`{_asked(operation)}`"
    yield f"{operation.summary} {describe_cost(operation)}"
    if operation.parameters:
        rows = [
            (
                f"`{one.within}.{one.name}`" if one.within else f"`{one.name}`",
                _LEGAL[one.kind],
                _required(one),
                _default(one),
                one.meaning,
            )
            for one in operation.parameters
        ]
        yield _table(("parameter", "is", "required", "default", "meaning"), rows)
    if not operation.tables:
        yield "`tk.frame` cannot tabulate this answer."
    if len(operation.tables) > 1:
        names = ", ".join(f"`{table.name}`" for table in operation.tables)
        yield f"`tk.frame` returns several frames, as a named tuple: {names}."
    for table in operation.tables:
        of = f"Columns of the frame `{table.name}`" if table.name else "Columns in `tk.frame`"
        yield f"{of}:"
        yield _columns(table_columns(table), dtype)


def _asked(operation: Operation) -> str:
    """Return the call that asks an operation, with its required parameters."""
    request: dict[str, Any] = {"type": operation.type}
    for one in operation.parameters:
        if one.required:
            holder = request.setdefault(one.within, {}) if one.within else request
            holder[one.name] = _EXAMPLES[one.kind]
    return f"tk.info({json.dumps(request)})"


def _operation(operation: Operation, dtype: Dtype) -> Iterator[str]:
    yield f"## {operation.function}"
    yield f"`tk.{operation.function}({', '.join(_positional(operation))})` asks `{operation.type}`."
    yield operation.summary
    yield "\n".join(f"- {fact}" for fact in _facts(operation))
    if operation.parameters:
        yield "### Parameters of " + operation.function
        yield _parameters(operation)
    for table in operation.tables:
        of = f"`{table.name}` of " if table.name else ""
        yield f"### Columns of {of}{operation.function}"
        yield _columns(table_columns(table), dtype)
    yield f"### Errors of {operation.function}"
    yield _table(("status", "when", "message"), _errors(operation))


def _sample(operation: Operation, sample: Mapping[str, Any]) -> Iterator[str]:
    yield f"### Sample of {operation.function}"
    yield _json(sample["request"])
    decoded = ", decoded" if operation.binary else ""
    yield f"is answered (lists cut to their first entry{decoded}):"
    yield _json(_first_entries(sample["response"]))


def _first_entries(value: Any) -> Any:
    """Cut lists of objects alike, and maps of addresses, to their first entry."""
    if isinstance(value, list):
        alike = len({type(one) for one in value}) == 1 and isinstance(value[0], dict | list)
        return [_first_entries(one) for one in (value[:1] if alike else value)]
    if isinstance(value, dict):
        keyed = len(value) > 1 and all(key.startswith("0x") for key in value)
        items = list(value.items())[:1] if keyed else value.items()
        return {key: _first_entries(one) for key, one in items}
    return value


def _json(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=1)}\n```"


def _positional(operation: Operation) -> Iterator[str]:
    for one in operation.parameters:
        if one.required or one.python in ("start", "end"):
            yield one.python


def _facts(operation: Operation) -> Iterator[str]:
    yield describe_cost(operation)
    if operation.add_on:
        yield "An add-on: the key must have bought it."
    if operation.own:
        yield "Exists in this service only, not in the exchange's own API."
    if operation.since:
        yield f"Data since {operation.since}."
    if operation.binary:
        yield "The answer is MessagePack, compressed with zstd."
    if operation.latest:
        yield "One request: the latest rows, newest first."
    if operation.paging != "none":
        cursor = "_".join(f"<{_wire(operation, path)}>" for path in operation.key)
        yield f"Pages: {_PAGING[operation.paging].format(cursor=cursor)}."


def _wire(operation: Operation, path: str) -> str:
    columns = table_columns(operation.tables[0])
    return next(column.wire for column in columns if column.path == path)


def _parameters(operation: Operation) -> str:
    rows = [
        (
            f"`{one.python}`",
            f"`{one.name}`",
            _LEGAL[one.kind],
            _required(one),
            _default(one),
            _range(one),
            one.meaning,
        )
        for one in operation.parameters
    ]
    return _table(
        ("argument", "on the wire", "is", "required", "default", "range", "meaning"), rows
    )


def _required(one: Parameter) -> str:
    if one.unless:
        return f"unless `{one.unless}`"
    return "yes" if one.required else ""


def _default(one: Parameter) -> str:
    if one.default is None:
        return ""
    shown = {"": '""', False: "false", True: "true"}.get(one.default, str(one.default))
    return f"`{shown if one.kind in ('text', 'flag') else one.default}`"


def _range(one: Parameter) -> str:
    entries = " entries" if one.kind in ("addresses", "texts") else ""
    if one.least is not None and one.most is not None:
        return f"{one.least} to {one.most}{entries}"
    if one.most is not None:
        return f"at most {one.most}{entries}"
    if entries and one.least == 1:
        return "not empty"
    return "" if one.least is None else f"at least {one.least}"


def _columns(columns: Sequence[Column], dtype: Dtype) -> str:
    rows = [
        (
            f"`{one.name}`",
            f"`{one.wire}`",
            dtype(one),
            one.kind.unit,
            "" if one.expected else "yes",
            _meaning(one),
        )
        for one in columns
    ]
    return _table(("column", "on the wire", "dtype", "unit", "may be missing", "meaning"), rows)


def _meaning(column: Column) -> str:
    """Return the meaning of a column; one beyond the specification says so."""
    if not column.beyond:
        return column.meaning
    place = f"docs/live_service.md, section {column.beyond}"
    return f"{column.meaning} (beyond the specification: {place})"


def _errors(operation: Operation) -> Iterator[tuple[str, str, str]]:
    """Find the words of refused requests by asking for them."""
    full = {one.name: _EXAMPLES[one.kind] for one in operation.parameters if one.required}
    for one in operation.parameters:
        if one.required:
            without = {name: value for name, value in full.items() if name != one.name}
            yield "400", f"no `{one.name}`", _refusal(operation, without)
        if one.kind in ("address", "addresses"):
            wrong: Any = "0x12" if one.kind == "address" else ["0x12"]
            yield "400", f"malformed `{one.name}`", _refusal(operation, {**full, one.name: wrong})
        if one.most is not None and one.kind == "whole":
            wrong = one.most + 1
            yield "400", f"`{one.name}` = {wrong}", _refusal(operation, {**full, one.name: wrong})
    yield "401", "no key, or one that is not known", "`Invalid API key`"
    if operation.add_on:
        yield "403", "the key has not bought the add-on", "`Permission denied`"
    if operation.topic == "snapshots":
        yield "404", "nothing published yet", "`No snapshots are available yet`"
    yield "429", "too many points in a minute", "`Rate limit exceeded`"
    also = "; depth not yet published" if operation.type == "currentDepth" else ""
    yield "500", f"the service failed{also}", "`An internal error occurred`"
    if not operation.own:
        yield "502", "the exchange behind the service did not answer in time", "`Timeout error`"


def _refusal(operation: Operation, request: dict[str, Any]) -> str:
    try:
        check_request(operation, request)
    except BadRequest as error:
        return f"`{error.message}`"
    raise AssertionError(f"{operation.type} accepts {request}")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table, without columns that are empty in every row."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    lines = [[heads[i] for i in kept], ["---"] * len(kept)]
    lines += [[row[i] for i in kept] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_NOTE: Final = (
    "Written by `docs/generate.py` from the contract; see the [index](index.md) for what all "
    "operations share."
)

_BEYOND: Final = """The specification has 22 operations. The live service answers more, and other
people's clients cannot start without some of them (docs/live_service.md, section 9). The local
service answers those on this page by default, with the contents of its own tables.
`toolkit serve --strict` and `tk.local(strict=True)` restrict it to the specification: then each of
them is an unknown type (400), and fields that the reference marks as beyond the specification are
left out.

They have no function of their own: `tk.info` asks them, and `tk.frame` makes a frame of an answer.
`tk.info` sends one request and returns one answer: it does not page, and the live service may cut a
long range (the exchange's public API at 500 or 2,000 rows). Times are Unix milliseconds.
Of an archive or of recordings only those are answered that can be answered truly
(`clearinghouseState`, `allMids`, `openOrders`, `frontendOpenOrders`, `orderStatus`, `userFunding`,
`userTwapSliceFills`, `exchangeStatus`); the others are refused with a 400."""

_INDEX: Final = """# Reference

Written by `docs/generate.py` from the contract. What the specification leaves open, and what was
assumed, is in [assumptions](../assumptions.md).

{operations}

The local service answers more, as the live one does:
[operations beyond the specification](beyond.md).

## What all functions share

- Required arguments and the range of time are positional, all others keywords.
- `numbers` is the form of number columns: `"float"` (float64), `"exact"` (decimals with 18 digits
  after the point) or `"text"` (the text of the wire). The dtypes on these pages are those of
  `"float"`.
- `session` is where to ask; without it the one that `tk.connect` or `tk.local` made last.
- A time is whole milliseconds, ISO text (`"2025-09-01"`, `"2025-09-01T12:30:00+02:00"`), a date, a
  datetime, or an age counted back from now (`"90s"`, `"15m"`, `"4h"`, `"7d"`, `"2w"`). Without a
  zone it is UTC. Ranges hold both their ends.
- `page_size` is how many rows one request brings, `max_rows` how many are wanted in all. Paged
  functions read all pages; if they cannot, they raise `Incomplete` with the rows so far, or with
  `on_incomplete="warn"` return them marked.
- A frame always has all its columns, in this order and with these dtypes, whether it is empty or
  full. "May be missing" says where a value can be absent or null on the wire.
- An unknown but well-formed address brings an empty frame, not an error.
"""
