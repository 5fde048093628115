"""Write the generated documents: docs/reference/, analysis.md, assumptions.md and others.

``python docs/generate.py`` writes what has changed; with ``--check`` it only says what would, and
with ``--example`` it also runs the example of README.md, which takes the demo exchange.
"""

import ast
import contextlib
import importlib
import io
import json
import re
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

from toolkit.contract import reference
from toolkit.contract.columns import Column
from toolkit.frames import column_dtype

ROOT = Path(__file__).resolve().parents[1]
MARK = "ASSUMED:"


def documents() -> dict[str, str]:
    """Give every generated document: path from the root -> text."""
    made = {"docs/reference/index.md": reference.index()}
    for topic in reference.topics():
        made[f"docs/reference/{topic}.md"] = reference.topic_page(topic, dtype_name, samples())
    made["docs/reference/beyond.md"] = reference.beyond_page(dtype_name)
    made["docs/analysis.md"] = analysis()
    made["docs/assumptions.md"] = assumptions()
    made["docs/live_service.md"] = live_service()
    if "<!-- operations:begin -->" in (ROOT / "README.md").read_text():
        made["README.md"] = readme()
    return made


def samples() -> dict[str, Any]:
    """Read one exchange of each operation from data/samples."""
    return {path.stem: json.loads(path.read_text()) for path in (ROOT / "data/samples").glob("*")}


def readme() -> str:
    """Give README.md with the table of operations between its markers."""
    table = reference.operations_table("docs/reference/")
    return reference.insert((ROOT / "README.md").read_text(), "operations", table)


def example() -> tuple[str, str]:
    """Run the example of README.md; give its block for the page, and its picture.

    It takes the demo exchange, which is built where it is not cached.
    """
    code = (ROOT / "docs/example.py").read_text().split("\n\n", 1)[1]
    output, picture = run(code)
    lines = f"```python\n{code.strip()}\n```\n\n```\n{output}\n```"
    return f"{lines}\n\n![From closed PnL to net](docs/pictures/waterfall.svg)", picture


def run(code: str) -> tuple[str, str]:
    """Run code that prints, and saves a picture; give both, the same each time."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        matplotlib.rc_context({"svg.hashsalt": "waterfall"}),  # else ids are drawn at random
    ):
        exec(compile(code, "docs/example.py", "exec"), {})
        picture = Path("waterfall.svg").read_text()
    dateless = re.sub(r" *<metadata>.*?</metadata>\n", "", picture, flags=re.S)
    return printed.getvalue().rstrip(), dateless


def dtype_name(column: Column) -> str:
    """Name the dtype of a column; Arrow types of nested cells are named by their kind alone."""
    name = str(column_dtype(column))
    if column.kind.family == "nested":
        return f"Arrow {name.split('<', maxsplit=1)[0].split('[', maxsplit=1)[0]}"
    return name


def assumptions() -> str:
    """Gather what the code assumes, by module."""
    parts = ["# Assumptions", ABOUT.strip()]
    for path in sorted((ROOT / "toolkit").rglob("*.py")):
        if found := list(assumed_in(path.read_text())):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            parts.append(f"## `{module.removesuffix('.__init__')}`")
            parts.append("\n".join(f"- {sentence}" for sentence in found))
    return "\n\n".join(parts) + "\n"


def live_service() -> str:
    """Return the page of what is known of the live service, from docs/live_service.toml."""
    known = tomllib.loads((ROOT / "docs/live_service.toml").read_text())
    sure = [f"| {word} | {meaning} |" for word, meaning in known["sure"].items()]
    parts = [LIVE_SERVICE.strip(), "\n".join(["| how sure | |", "| --- | --- |", *sure])]
    for section in known["section"]:
        parts += [f"## {section['number']}. {section['title']}", _line(section["about"])]
        parts.append("\n".join(_facts_table(section)))
    return "\n\n".join(parts) + "\n"


def _facts_table(section: dict[str, Any]) -> Iterator[str]:
    yield "| what is known | how sure | what this project does | held by |"
    yield "| --- | --- | --- | --- |"
    for fact in section["fact"]:
        tests = ", ".join(f"`{one}`" for one in fact.get("tests", section.get("tests", [])))
        cells = (fact["statement"], fact["sure"], fact["does"], tests)
        yield f"| {' | '.join(map(_line, cells))} |"


def _line(text: str) -> str:
    return " ".join(text.split())


def assumed_in(source: str) -> Iterator[str]:
    """Give the assumptions of one source text, in its order: in comments and in docstrings."""
    found = [*_in_comments(source), *_in_docstrings(source)]
    yield from (sentence for _, sentence in sorted(found))


def _in_comments(source: str) -> Iterator[tuple[int, str]]:
    blocks: list[tuple[int, int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, column), words = token.start, token.string.lstrip("# ").rstrip()
        goes_on = blocks and blocks[-1][:2] == (line - len(blocks[-1][2]), column)
        if words.startswith(MARK):
            blocks.append((line, column, [words.removeprefix(MARK).strip()]))
        elif goes_on:
            blocks[-1][2].append(words)
    for line, _, sentence in blocks:
        yield line, " ".join(filter(None, sentence))


def _in_docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        for found in re.finditer(rf"^\s*{MARK}(.*?)(?:\n\s*\n|\Z)", node.value, re.M | re.S):
            line = node.lineno + node.value[: found.start(1)].count("\n")
            yield line, " ".join(found[1].split())


LIVE_SERVICE = """
# The live service

What is known of the live service beyond the specification, and how sure. Nothing here was asked of
the live service itself. The specification stays the authority: the local service answers all of it.
By default it also has the fields and operations of this page, so that work offline is as work with
the live service; `toolkit serve --strict` and `tk.local(strict=True)` leave them out. A reader
takes all of it without an error, a loss, or a wrong figure.

This page is made by `docs/generate.py` from `docs/live_service.toml`. Code, docs and tests cite its
sections by number.
"""

ABOUT = """Where the specification is silent, the code had to choose. Each choice is marked
`ASSUMED:` where it is made, and gathered here by `docs/generate.py`. The live service may differ;
[what is known of it](live_service.md) stands on a page of its own.
"""


ANALYSIS = """# Analysis

Frame in, frame out: every helper takes frames as the fetch functions give them, changes none of
them and downloads nothing. Its docstring (`help(tk.pnl.attribution)`) says which columns it needs,
units, signs, and where each formula comes from; `tk.describe(result)` says what the columns of a
result mean. Money is positive where it is good for the account. The notebooks show each topic at
work.

A helper runs on the engine of the frame that it is given. `all` engines are pandas, Polars (eager
and lazy) and DuckDB; another is refused or not tested. The result is of the same engine, lazy where
the input is, or pandas, as estimates are. Numbers are floats or, of frames fetched with
`numbers="exact"`, exact decimals.

The tables are written by `docs/generate.py` from `tests/scale/cases/`, the list of what each helper
promises. `tests/scale/` holds them to it: the same result on each engine, the same columns of
nothing and of one row, a clear error for a missing column, any order of rows, addresses in any
case, rows given twice, a million rows. PySpark is not among the dependencies, and no helper is
tested on it.

**Rows given twice** count once in every helper, and a `RepeatedRows` warning says how many were
left out. A row is given twice where it has an identity and another row has the same one: a fill by
its trade id, order id, coin, price, size, time and side (and account); a funding payment by
account, coin, time and amount; a ledger update with a hash, an order event, a slippage or depth
sample, a validator's week and a snapshot row by all that they say. Rows without an identity, such
as fills with trade id 0, are never left out.

**Rows of several accounts** need a column that names the account, as `tk.many` and `tk.concat` add
it. A helper that walks along one account's history (positions, lots, round trips, equity, audit)
refuses a frame that lacks it where the frame's provenance or its chains of positions show several.

What `tk.pnl` makes of real fills ([facts of the live service](live_service.md), by section):

- A spot buy's fee in the bought token is a part of its cost (section 3). `attribution` does not
  deduct it again; `fees_in_cost` says what it was worth. A gap in a spot balance is disposed of
  or added by itself, and shown as `gap` and `chain_break`.
- Conversions of outcome tokens (section 7) are in the cost basis, and in no count and no volume.
- Money of a dex with another collateral (section 6) counts at par, which `at_par` says, or at
  `prices={"USDH": 0.998}`: closed PnL, fees and funding alike.
- A trip that a liquidation of the account ended (section 2) has the status `liquidated`; `forced`
  is also true of auto-deleveraging.
- Funding of more time than the fills is not part of `net`; `funding_outside` and `covers` say it.
"""

_ENGINES = {
    "pandas": "pandas",
    "polars": "Polars",
    "polars lazy": "Polars lazy",
    "duckdb": "DuckDB",
}


def analysis() -> str:
    """Give the table of analysis helpers by topic: what each does, and on which engines."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    promised = importlib.import_module("tests.scale.case")
    cases = promised.cases()
    parts = [ANALYSIS.strip()]
    for topic in promised.topics():
        module = importlib.import_module(f"toolkit.{topic}")
        parts.append(f"## `tk.{topic}`\n\n{_first_line(module)}")
        own = [case for case in cases if case.topic == topic]
        names = sorted({case.helper for case in own})
        rows = [_helper(name, [case for case in own if case.helper == name]) for name in names]
        head = ["helper", "what it gives", "engines", "numbers", "result"]
        table = [head, ["---"] * len(head), *rows]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in table))
    return "\n\n".join(parts) + "\n"


def _helper(name: str, cases: list[Any]) -> list[str]:
    on = [name for key, name in _ENGINES.items() if all(key in case.engines for case in cases)]
    numbers = [kind for kind in ("float", "exact") if all(kind in case.numbers for case in cases)]
    same = all(case.gives == "same" for case in cases)
    return [
        f"`{name.split('.')[1]}`",
        _first_line(cases[0].function),
        "all" if len(on) == len(_ENGINES) else ", ".join(on),
        ", ".join(numbers),
        "same engine" if same else "pandas",
    ]


def _first_line(documented: Any) -> str:
    return str(documented.__doc__).strip().splitlines()[0].replace("|", r"\|")


def read(path: str) -> str | None:
    """Give what lies at a path from the root, None where nothing does."""
    return (ROOT / path).read_text() if (ROOT / path).exists() else None


def main(arguments: list[str]) -> int:
    """Write the documents that have changed, or only name them; 1 where a check finds one."""
    made = documents()
    if "--example" in arguments:
        block, made["docs/pictures/waterfall.svg"] = example()
        made["README.md"] = reference.insert(made["README.md"], "example", block)
    stale = {path: text for path, text in made.items() if read(path) != text}
    for path, text in stale.items():
        if "--check" in arguments:
            print(f"{path} is stale: run python docs/generate.py")
        else:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
            print(f"wrote {path}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
