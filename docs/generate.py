"""Write the generated documents: docs/reference/, analysis.md, assumptions.md and others.

``python docs/generate.py`` writes the files that have changed. With ``--check`` it only lists them.
With ``--example`` it also runs the example of README.md, which builds the demo exchange.
"""

import ast
import contextlib
import inspect
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

# The other scripts of this folder, and the cases of the tests, are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import api_pages
import reference_pages

import toolkit
from toolkit.contract.columns import Column
from toolkit.contract.operations import OPERATIONS
from toolkit.frames import column_dtype
from toolkit.installation import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
MARK = "ASSUMED:"


def documents() -> dict[str, str]:
    """Return every generated document: path from the root -> text."""
    texts = {"docs/reference/index.md": reference_pages.index_page()}
    samples = read_samples()
    for topic in reference_pages.topic_names():
        page = reference_pages.topic_page(topic, dtype_name, samples)
        texts[f"docs/reference/{topic}.md"] = page
    texts["docs/reference/beyond.md"] = reference_pages.beyond_page(dtype_name)
    texts["docs/analysis.md"] = analysis_page()
    texts["docs/assumptions.md"] = assumptions_page()
    texts["docs/live_service.md"] = live_service_page()
    texts["docs/install.md"] = install_page()
    texts["tests/typing/public_api.txt"] = public_api()
    return texts


def read_samples() -> dict[str, Any]:
    """Return the sample of each operation from data/samples.

    Raises
    ------
    FileNotFoundError
        If an operation has no sample.
    """
    samples = {
        path.stem: json.loads(path.read_text()) for path in (ROOT / "data/samples").glob("*")
    }
    if missing := sorted(OPERATIONS.keys() - samples.keys()):
        raise FileNotFoundError(
            f"data/samples has no sample of {', '.join(missing)}: run python docs/samples.py"
        )
    return samples


def install_page() -> str:
    """Return docs/install.md with the table of extras between its markers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = ["| extra | for | libraries |", "| --- | --- | --- |"]
    for extra, purpose in EXTRAS.items():
        names = [re.split(r"[<>=]", text)[0] for text in project["optional-dependencies"][extra]]
        own = [name for name in names if not name.startswith(project["name"])]
        rows.append(f"| `{extra}` | {purpose} | {', '.join(own)} |")
    rows.append("| `all` | all of them | |")
    text = (ROOT / "docs/install.md").read_text()
    return reference_pages.replace_block(text, "extras", "\n".join(rows))


def public_api() -> str:
    """Return every public name with its parameters and their defaults, one on each line."""
    lines = []
    for name, value in sorted(api_pages.public_names().items()):
        if inspect.ismodule(value):
            continue
        is_callable = inspect.isfunction(value) or hasattr(value, "__dataclass_fields__")
        lines.append(f"{name}{_bare_signature(value) if is_callable else ''}")
        if inspect.isclass(value) and not issubclass(value, Exception):
            lines += [
                f"{name}.{key}{_bare_signature(item)}"
                for key, item in sorted(api_pages.list_members(value).items())
                if inspect.isfunction(item) and not key.startswith("_")
            ]
    return "\n".join(lines) + "\n"


def _bare_signature(function: Any) -> str:
    """Return parameters and defaults without types, which mypy and tests/typing check."""
    signature = inspect.signature(function)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    text = str(inspect.Signature(bare))
    return re.sub(r"<[^<>]* at 0x\w+>|<(?:built-in )?function (\w+)[^<>]*>|<factory>", r"...", text)


def run_example() -> tuple[str, str]:
    """Run the example of README.md, and return its text block and its picture.

    It needs the demo exchange, and builds it if it is not in the cache.
    """
    code = (ROOT / "docs/example.py").read_text().split("\n\n", 1)[1]
    output, picture = run_code(code)
    lines = f"```python\n{code.strip()}\n```\n\n```\n{output}\n```"
    return f"{lines}\n\n![From closed PnL to net](docs/pictures/waterfall.svg)", picture


def run_code(code: str) -> tuple[str, str]:
    """Run code, and return what it prints and the picture that it saves as waterfall.svg.

    The picture is the same each time: it has no date and no random ids.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()) as printed,
        matplotlib.rc_context({"svg.hashsalt": "waterfall"}),  # ids are random by default
    ):
        exec(compile(code, "docs/example.py", "exec"), {})
        picture = Path("waterfall.svg").read_text()
    dateless = re.sub(r" *<metadata>.*?</metadata>\n", "", picture, flags=re.S)
    return printed.getvalue().rstrip(), dateless


def dtype_name(column: Column) -> str:
    """Return the name of a column's dtype; of a nested Arrow type only its outermost part."""
    name = str(column_dtype(column))
    if column.kind.family == "nested":
        return f"Arrow {name.split('<', maxsplit=1)[0].split('[', maxsplit=1)[0]}"
    return name


def assumptions_page() -> str:
    """Return the page of all assumptions in the code, by module."""
    parts = ["# Assumptions", ASSUMPTIONS.strip()]
    for path in sorted((ROOT / "toolkit").rglob("*.py")):
        if found := list(assumed_in(path.read_text())):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            parts.append(f"## `{module.removesuffix('.__init__')}`")
            parts.append("\n".join(f"- {sentence}" for sentence in found))
    return "\n\n".join(parts) + "\n"


def live_service_page() -> str:
    """Return the page of facts about the live service, from docs/live_service.toml."""
    known = tomllib.loads((ROOT / "docs/live_service.toml").read_text())
    sure = [f"| {word} | {meaning} |" for word, meaning in known["sure"].items()]
    parts = [LIVE_SERVICE.strip(), "\n".join(["| known from | meaning |", "| --- | --- |", *sure])]
    for section in known["section"]:
        parts += [f"## {section['number']}. {section['title']}", _one_line(section["about"])]
        parts.append("\n".join(_facts_table(section)))
        parts.append(f"Tests: {', '.join(f'`{path}`' for path in section['tests'])}.")
    return "\n\n".join(parts) + "\n"


def _facts_table(section: dict[str, Any]) -> Iterator[str]:
    yield "| fact | known from | what this project does |"
    yield "| --- | --- | --- |"
    for fact in section["fact"]:
        cells = (fact["statement"], fact["sure"], fact["does"])
        yield f"| {' | '.join(map(_one_line, cells))} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def assumed_in(source: str) -> Iterator[str]:
    """Yield the assumptions in the comments and docstrings of a source text, in its order."""
    found = [*_in_comments(source), *_in_docstrings(source)]
    yield from (sentence for _, sentence in sorted(found))


def _in_comments(source: str) -> Iterator[tuple[int, str]]:
    blocks: list[tuple[int, int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        (line, column), words = token.start, token.string.lstrip("# ").rstrip()
        continues = blocks and blocks[-1][:2] == (line - len(blocks[-1][2]), column)
        if words.startswith(MARK):
            blocks.append((line, column, [words.removeprefix(MARK).strip()]))
        elif continues:
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

This document lists facts about the live service that the specification does not contain, and states
how each fact is known. Nobody sent a request to the live service to find them. The specification is
binding, and the local service implements all of it. By default, the local service also has the
fields and operations of this document, so that it behaves like the live service. `toolkit serve
--strict` and `tk.local(strict=True)` leave them out. The fetch functions read all of these fields
without an error, a lost row or a wrong figure. `tk.info` sends the additional operations.

`docs/generate.py` writes this document from `docs/live_service.toml`. Code, docs and tests cite its
sections by number.
"""

ASSUMPTIONS = """The specification leaves some questions open, so the code has to choose. A comment
`ASSUMED:` in the code marks each choice, and `docs/generate.py` collects them here. The live
service may differ: see the [facts about the live service](live_service.md).
"""


ANALYSIS = """# Analysis

Every helper takes frames as the fetch functions return them. It returns a frame, or a result that
has frames, such as `.params` of an estimate. It does not change its arguments and it downloads
nothing. Its docstring (`help(tk.pnl.attribution)`) states the columns that it needs, the units and
signs, and the source of each formula. `tk.describe(result)` explains the columns of a result. Money
is positive if it is good for the account. The notebooks show an example of each topic.

A helper runs on the engine of its frame: pandas, Polars (eager and lazy), DuckDB or PySpark. In the
tables below, the column `result` states whether the result is in the engine of the input or in
pandas. Every helper takes floats and exact decimals (`numbers="exact"`). Estimates are always
floats. In the tables below, the column `memory` states how much of a lazy frame (Polars lazy,
DuckDB, PySpark) the helper reads into memory, in addition to its result:

- `streams`: the engine processes all rows, and the helper collects only a few totals. On Polars and
  DuckDB, the check for repeated rows collects one integer for each row.
- `account by account`: the helper collects accounts in groups of at most 200,000 rows. A larger
  account is a group of its own. The result is a scan of a temporary file, which exists until the
  end of the process. Files that are sorted by `user` are read once. Other files are read once for
  each group of accounts. On PySpark the executors compute (`applyInArrow`), one account after the
  other. Only `reconcile` computes on the driver.
- `in memory`: the helper collects the columns that it needs. On PySpark it computes on the driver,
  and returns a Spark frame if the column `result` says so. To compute in the executors instead,
  call it for each account yourself, with `applyInPandas`.

`docs/generate.py` writes the tables of helpers below from `tests/scale/cases/`, the list of what
each helper promises. `tests/scale/` checks the promises:

- Each engine returns the same result. An empty frame and a frame with one row return the same
  columns.
- A missing column raises an error that names it.
- The order of rows and the case of addresses do not change a result. Neither do repeated rows.

`make bench` also runs each helper with a million rows and checks the result.

**Repeated rows** count once in every helper, and a `RepeatedRows` warning states how many were left
out. Two rows are the same if their identity is equal. The identity is:

| record | columns of the identity |
| --- | --- |
| fill | trade id, order id, coin, price, size, time, side, and the account if it is known |
| funding payment | account, coin, time, amount, size, rate |
| order event | order id, status, time, and account and transaction index if they are known |
| ledger update with a hash, snapshot row | all columns except nested ones |

`ROW_IDENTITIES` in `toolkit/analysis/common/repeated_rows.py` lists the columns. Rows without an
identity, such as fills with trade id 0, are never left out. If two fills are equal and only one
names its account, they count as one. You can therefore concatenate a user's own fills and a
builder's fills. Payments and transfers that do not name their account all count, even if they are
equal. Two accounts may have equal payments, or they may be the two sides of one transfer.

**Rows of several accounts** need a column that names the account. `tk.many` and `tk.concat` add it.
A helper that follows the history of one account (positions, lots, round trips, equity, audit)
raises an error if the column is missing and the rows are of several accounts. It detects this in
the provenance, or in the fills themselves:

- One trade id has both a buy and a sell.
- The start position of a fill equals the end position of an earlier fill, but not of the previous
  one.

If you concatenate a few fills of two accounts with `pandas.concat`, they look like the fills of one
account with missing fills. An `UnnamedAccount` warning appears if a fill does not start from the
position that the fill before it left, and if neither the frame nor its provenance names the
account. If the two accounts traded different coins, there is no such place and no warning. The
results per coin are right, but totals and counts over all coins are those of both accounts
together.

How `tk.pnl` treats real fills ([facts about the live service](live_service.md), by section):

- If the fee of a spot buy is paid in the bought token, it is a part of the cost (section 3).
  `attribution` does not deduct it again. `fees_in_cost` shows its value.
- If a spot balance has a gap, `positions` and `audit` treat the difference as a separate disposal
  or addition. `chain_break` marks the next fill, and the column `gap` of `positions` has the size.
- Conversions of outcome tokens (section 7) change the cost basis. `conversions` counts them, and
  `fills` and `volume` do not.
- Money of a dex with another collateral (section 6) counts at par, and `at_par` shows it. With
  `prices={"USDH": 0.998}`, closed PnL, fees and funding count at that price.
- A round trip that ended with a liquidation of the account (section 2) has the status `liquidated`.
  The column `forced` is true if the exchange closed the round trip: by a liquidation, or by
  auto-deleveraging.
- Funding outside the time range of the fills is not part of `net`. `funding_outside` has the sum of
  this funding, and `covers` states its number of rows.

**From fills to a performance sheet.** `tk.performance` describes an account by its returns.
`returns` computes returns per day from an equity curve, and removes the effect of deposits. `sheet`
computes figures such as the Sharpe ratio, each with its confidence interval. `trip_sheet` computes
the figures of round trips only, and `leaderboard` ranks accounts. `tk.plots.growth_curve`,
`return_calendar` and `leaderboard` draw the results.

```python
import toolkit as tk

session = tk.local(seed=7, size="tiny")
user = tk.reports.example_account()
fills, ledger = tk.user_fills_by_time(user, 0), tk.user_non_funding_ledger_updates(user)
curve = tk.pnl.equity(fills, ledger=ledger)
returns = tk.performance.returns(curve, value="realised")  # without prices of open positions
trips = tk.pnl.round_trips(fills)
complete = trips[trips["status"].isin(["closed", "liquidated"])]
sheet = tk.performance.sheet(returns, trips=complete)
assert {"total_return", "sharpe", "win_rate"} <= set(sheet["figure"])
tk.plots.growth_curve(returns)
```

With funding rows and the prices of open positions (`funding` and `marks` of `tk.pnl.equity`), the
returns also contain unrealised PnL. [Notebook 13](../notebooks/13_performance.py) shows this.

**How markets move.** Four helpers describe how prices and positions move:

- `tk.execution.impact` estimates how far orders move prices.
- `tk.liquidations.cascade` estimates what liquidations add to a price shock.
- `tk.accounts.positioning` computes who is long and who is short.
- `tk.funding.basis` estimates how fast the basis reverts.

Each result has `.plot()`, except the frame of `positioning`, which `tk.plots.positioning` draws.

The tests simulate data with known true values, and count how often a 95 % confidence interval
contains the true value. `python -m tests.analysis.interval_coverage` prints the shares. This was
the last run:

| helper | known value | intervals | contain it |
| --- | --- | --- | --- |
| cascade | final price move after a shock, with the impact of known books | 150 | 95 % |
| impact | exponent and size of the impact, and its decay | 1,050 | 94 % |
| basis | share of the basis that remains after one hour, 0.9 | 1,050 | 94 % |
| positioning | net long share, 0.3 | 1,000 | 93 % |

In the simulated exchange, trades do not move prices. `impact` therefore finds no significant effect
there. The basis there has an hourly autocorrelation of 0.9.
"""

ENGINES_TEXT = """## Engines

The tests compare each helper on each engine with its result on pandas. Floats have to be equal to
nine significant digits, and exact numbers have to be equal. DuckDB and PySpark run in a session
with a time zone other than UTC. The tests use exact numbers on local PySpark, and floats over Spark
Connect. On a cluster of two executors the tests run 8 calls. Together they cover each kind of
`memory`: `streams` (sums, quantiles, calendar groups), `account by account`, and `in memory` (a
running total, an estimate).

**PySpark** is the engine for data that do not fit on one machine. Install the extra `spark`, and
Java 17 or newer. The toolkit must be installed on the executors, too. `archive.scan("fills",
engine="spark", session=spark)` reads an archive with Spark's own reader of Parquet. If an executor
processes the rows of an account, errors about their values appear when the result is computed, and
warnings stay in the log of the executor.

A call in this table is one combination of helper, arguments and kind of numbers (float or exact):
"""


def analysis_page() -> str:
    """Return the page of analysis helpers by topic, with what each reads into memory.

    Raises
    ------
    ValueError
        If a helper does not take floats and exact numbers, which the page says of all helpers.
    """
    from tests.scale import case as scale_cases

    cases = scale_cases.cases()
    if wrong := [str(case) for case in cases if set(case.numbers) != {"float", "exact"}]:
        raise ValueError(f"describe the numbers of {wrong} in docs/analysis.md")
    parts = [ANALYSIS.strip(), _engine_table(cases)]
    for topic in scale_cases.topics():
        parts.append(f"## `tk.{topic}`\n\n{_first_line(getattr(toolkit, topic))}")
        own = [case for case in cases if case.topic == topic]
        names = sorted({case.helper for case in own})
        rows = [_helper_row(name, [case for case in own if case.helper == name]) for name in names]
        head = ["helper", "what it does", "memory", "result"]
        table = [head, ["---"] * len(head), *rows]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in table))
    return "\n\n".join(parts) + "\n"


def _engine_table(cases: list[Any]) -> str:
    """Return how many calls of helpers the tests compare with pandas on each engine."""
    from tests.engines import ENGINES
    from tests.scale.case import ON_EXECUTORS

    helpers = len({case.helper for case in cases})
    both = sum(len(case.numbers) for case in cases)
    few = {case.helper for case in cases if str(case) in ON_EXECUTORS}
    rows = [[name, helpers, both, "test_cases.py"] for name in ENGINES[1:]]
    rows += [
        ["PySpark, `local[2]`", helpers, len(cases), "test_spark.py"],
        ["PySpark, Spark Connect", helpers, len(cases), "test_spark.py"],
        [
            "PySpark, `local-cluster[2,1,1024]`",
            len(few),
            len(ON_EXECUTORS),
            "test_spark_executors.py",
        ],
    ]
    head = ["engine", "helpers", "calls", "test in `tests/scale/`"]
    table = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return ENGINES_TEXT.strip() + "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in table)


def _helper_row(name: str, cases: list[Any]) -> list[str]:
    same = all(case.gives == "same" for case in cases)
    return [
        f"`{name.split('.')[1]}`",
        _first_line(cases[0].function),
        cases[0].memory,
        "same engine" if same else "pandas",
    ]


def _first_line(documented: Any) -> str:
    return str(documented.__doc__).strip().splitlines()[0].replace("|", r"\|")


def main(arguments: list[str]) -> int:
    """Write the documents that have changed; with ``--check`` list them and return 1."""
    texts = documents()
    if "--example" in arguments:
        block, texts["docs/pictures/waterfall.svg"] = run_example()
        readme = (ROOT / "README.md").read_text()
        texts["README.md"] = reference_pages.replace_block(readme, "example", block)
    is_stale = False
    for path, text in ((ROOT / name, text) for name, text in texts.items()):
        if path.exists() and path.read_text() == text:
            continue
        is_stale = True
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is stale: run python docs/generate.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return int(is_stale and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
