"""The pages of the reference as Markdown, made from the contract by the templates in templates/.

`docs/generate.py` writes them into ``docs/``, and a test compares them with the files there.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import jinja2

from toolkit.contract.fields import Field, is_record, record_fields, table_columns
from toolkit.contract.operations import EXTRA_OPERATIONS, FETCHED, VIEWS, Operation, Parameter
from toolkit.contract.requests import INTERVALS, check_request, describe_cost
from toolkit.errors import BadRequest
from toolkit.frames import column_dtype

DOCS: Final = Path(__file__).resolve().parent
TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(DOCS / "templates"),
    autoescape=False,  # Markdown
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
)
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
    "interval": f"{', '.join([*INTERVALS][:-1])} or 1M",
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


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table without the columns that are empty in every row."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    kept = [i for i in range(len(heads)) if any(row[i] for row in cells)]
    lines = [[heads[i] for i in kept], ["---"] * len(kept)]
    lines += [[row[i] for i in kept] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


def write_changed(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the texts that differ from the files of a folder, and print the names of the files."""
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"wrote {name}")


def reference_pages() -> dict[str, str]:
    """Return the pages of the topics, and of the operations beyond the specification."""
    folder = DOCS.parent / "data/samples"
    samples = {name: json.loads((folder / f"{name}.json").read_text()) for name in FETCHED}
    pages = {}
    for topic in dict.fromkeys(operation.topic for operation in FETCHED.values()):
        own = [operation for operation in FETCHED.values() if operation.topic == topic]
        page = render("topic.md.j2", topic=topic, operations=own, samples=samples)
        pages[f"docs/reference/{topic}.md"] = page
    extra = [row for row in EXTRA_OPERATIONS.values() if not row.has_function]
    archived = [operation.type for operation in extra if operation.from_archive]
    page = render("beyond.md.j2", operations=extra, archived=archived)
    return pages | {"docs/reference/beyond.md": page}


def render(template: str, **values: Any) -> str:
    """Return the text of a template of docs/templates."""
    return TEMPLATES.get_template(template).render(values).rstrip() + "\n"


def operations_table() -> str:
    """Return the table of all operations."""
    return render("operations.md.j2", operations=FETCHED.values())


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


def _required(operation: Operation) -> dict[str, Any]:
    """Return the shortest request of an operation."""
    request: dict[str, Any] = {"type": operation.type}
    for parameter in operation.parameters:
        if parameter.required:
            holder = request.setdefault(parameter.within, {}) if parameter.within else request
            holder[parameter.name] = _EXAMPLES[parameter.kind]
    return request


def _positional(operation: Operation) -> list[str]:
    ends = ("start", "end")
    return [item.python for item in operation.parameters if item.required or item.python in ends]


def _cursor(operation: Operation) -> str:
    wire = {column.path: column.wire for column in table_columns(operation.tables[0])}
    return "_".join(f"<{wire[path]}>" for path in operation.key)


def _parameters_table(operation: Operation) -> str:
    fetched = operation.type in FETCHED
    rows = [
        (
            f"`{item.python}`" if fetched else "",
            f"`{item.within}.{item.name}`" if item.within else f"`{item.name}`",
            _LEGAL[item.kind],
            f"unless `{item.unless}`" if item.unless else "yes" if item.required else "",
            _default_text(item),
            _range_text(item) if fetched else "",
            item.meaning,
        )
        for item in operation.parameters
    ]
    wire = "on the wire" if fetched else "parameter"
    return markdown_table(
        ("argument", wire, "value", "required", "default", "range", "meaning"), rows
    )


def _default_text(parameter: Parameter) -> str:
    default = parameter.default
    shown = json.dumps(default) if default in ("", True, False) else default
    return "" if default is None else f"`{shown}`"


def _range_text(parameter: Parameter) -> str:
    entries = " entries" if parameter.kind in ("addresses", "texts") else ""
    if parameter.least is not None and parameter.most is not None:
        return f"{parameter.least} to {parameter.most}{entries}"
    if parameter.most is not None:
        return f"at most {parameter.most}{entries}"
    if entries and parameter.least == 1:
        return "not empty"
    return "" if parameter.least is None else f"at least {parameter.least}"


def _columns_table(table: Any) -> str:
    rows = [
        (
            f"`{column.name}`",
            f"`{column.wire}`",
            _dtype_name(column),
            column.kind.unit,
            "" if column.expected else "yes",
            _mark_beyond(column.meaning, column.beyond),
        )
        for column in table_columns(table)
    ]
    return markdown_table(("column", "on the wire", "dtype", "unit", "optional", "meaning"), rows)


def _dtype_name(column: Field) -> str:
    """Return the name of a column's dtype; of a nested Arrow type only its outermost part."""
    name = str(column_dtype(column))
    return f"Arrow {re.split(r'[<[]', name)[0]}" if column.kind.family == "nested" else name


def _views(operation: Operation) -> list[Any]:
    return [view for view in VIEWS.values() if view.type == operation.type]


def _further_table(operation: Operation) -> str:
    """Return the fields beyond the specification that have no column, or an empty string."""
    tables = [table for row in (operation, *_views(operation)) for table in row.tables]
    columns = [column for table in tables for column in table_columns(table) if column.beyond]
    known = {column.wire.rpartition(".")[2] for column in columns}
    rows = list(_further_fields(operation.answer, known))
    return markdown_table(("on the wire", "meaning"), rows) if rows else ""


def _further_fields(annotation: Any, known: set[str], place: str = "") -> Iterator[tuple[str, str]]:
    """Yield place and meaning of each field that is beyond the specification and not known.

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
        if field.beyond and not is_record(field.type) and field.wire not in known:
            yield f"`{inner[1:]}`", _mark_beyond(field.meaning, field.beyond)
        if field.has_records:
            yield from _further_fields(field.type, known, inner)


def _mark_beyond(meaning: str, section: int) -> str:
    """Return a meaning with the section of its fact; 0 if it is in the specification."""
    place = f"docs/live_service.md, section {section}"
    return f"{meaning} (beyond the specification: {place})" if section else meaning


def _errors_table(operation: Operation) -> str:
    """Return the first rows of the errors; `check_request` gives the messages of wrong requests."""
    full = _required(operation)
    rows = []
    for item in operation.parameters:
        if item.required:
            part = full[item.within] if item.within else full
            rest = {name: value for name, value in part.items() if name != item.name}
            rows.append((f"no `{item.name}`", full | {item.within: rest} if item.within else rest))
        if item.kind in ("address", "addresses"):
            wrong: Any = "0x12" if item.kind == "address" else ["0x12"]
            rows.append((f"malformed `{item.name}`", full | {item.name: wrong}))
        if item.most is not None and item.kind == "whole":
            rows.append((f"`{item.name}` = {item.most + 1}", full | {item.name: item.most + 1}))
    table = [("400", when, _refusal(operation, request)) for when, request in rows]
    table.append(("401", "no key, or an unknown key", "`Invalid API key`"))
    return markdown_table(("status", "when", "message"), table)


def _refusal(operation: Operation, request: dict[str, Any]) -> str:
    try:
        check_request(operation, request)
    except BadRequest as error:
        return f"`{error.message}`"
    raise AssertionError(f"{operation.type} accepts {request}")


TEMPLATES.filters |= {
    "columns": _columns_table,
    "cost": describe_cost,
    "cursor": _cursor,
    "errors": _errors_table,
    "first_entries": _first_entries,
    "further": _further_table,
    "json": lambda value, indent=1: json.dumps(value, indent=indent),
    "parameters": _parameters_table,
    "positional": _positional,
    "required": _required,
    "views": _views,
}
