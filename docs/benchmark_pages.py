"""Write docs/benchmarks.md and docs/scale.md from the figures in docs/benchmarks.json.

`make bench` measures the figures; `python docs/benchmark_pages.py` writes the pages again. The page
docs/scale.md estimates a whole exchange for a year from the measured growth.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reference_pages import TEMPLATES, markdown_table, render

DOCS: Final = Path(__file__).resolve().parent
MEASURED: Final = DOCS / "benchmarks.json"
Sections = Mapping[str, Mapping[str, Any]]
Points = Sequence[Sequence[float]]
"""What a work costs: measured (rows, seconds, megabytes), the sizes in order."""

FILLS: Final = 5_000_000_000
ACCOUNTS: Final = 2_000_000
A_DAY: Final = FILLS / 365
PAGE: Final = 2_000
PAGE_POINTS: Final = 10
SNAPSHOTS: Final = 2 * 720
"""Points of the most snapshots of all accounts in a day: the service allows 5 in 10 minutes."""
LARGEST: Final = 0.01
"""Share of all fills that the largest account has (assumed)."""
MOVING: Final = 0.05
"""Share of the accounts that trade on one day (assumed)."""
WANTED_SECONDS: Final = 60
"""How long a question about everything should take on the cluster."""


@dataclass(frozen=True)
class Question:
    """A common question: how many rows it reads, and which measured work it is like."""

    text: str
    rows: float
    work: str


_SCAN: Final = "scan and sum fees by coin, duckdb"
QUESTIONS: Final = (
    Question("the fills of one account as a frame", FILLS / ACCOUNTS, "frame of the account"),
    Question("PnL attribution of one account", FILLS / ACCOUNTS, "pnl.attribution, pandas"),
    Question("equity curve of one account", FILLS / ACCOUNTS, "pnl.equity, pandas"),
    Question("positions of the largest account", FILLS * LARGEST, "pnl.positions, pandas"),
    Question("volume of one coin on one day", A_DAY / 400, _SCAN),
    Question("liquidations of one day", A_DAY, _SCAN),
    Question("fees of a builder in a month", FILLS / 12, _SCAN),
    Question("fees and volume by coin", FILLS, _SCAN),
    Question("PnL attribution of all accounts", FILLS, "pnl.attribution, pandas"),
    Question("round trips of all accounts, for a ranking", FILLS, "pnl.round_trips, pandas"),
)


def cost(points: Points, rows: float) -> tuple[float, float]:
    """Return seconds and bytes for some rows; few rows cost what the next size took.

    Examples
    --------
    >>> points = [(10, 1.0, 1.0), (100, 5.0, 2.0)]
    >>> cost(points, 3), cost(points, 11), cost(points, 1_000)
    ((1.0, 1000000.0), (5.0, 2000000.0), (50.0, 20000000.0))
    """
    for size, seconds, megabytes in points:
        if rows <= size:
            return seconds, megabytes * 1e6
    return rows * seconds / size, rows * megabytes * 1e6 / size


def growth_exponent(points: Points) -> float:
    """Return the exponent of time between the last two sizes: 1 is linear.

    Examples
    --------
    >>> growth_exponent([(10, 1.0, 0), (100, 1.5, 0), (1_000, 15, 0)])
    1.0
    """
    (rows, seconds, _), (more_rows, more_seconds, _) = points[-2:]
    return math.log(more_seconds / seconds) / math.log(more_rows / rows)


def measured_work(sections: Sections) -> dict[str, Points]:
    """Return what each work cost, by its name."""
    return {growth["what"]: growth["points"] for growth in sections["test_growth"]["growth"]}


def scale_page(sections: Sections) -> str:
    """Return the text of docs/scale.md."""
    work = measured_work(sections)
    a_row = {name: cost(points, 1e9)[0] / 1e9 for name, points in work.items()}
    figures = {figure["what"]: figure["value"] for figure in sections["test_growth"]["figures"]}
    bytes_a_row = figures["bytes of an archived fill"]
    requests = FILLS / (PAGE - 1) + ACCOUNTS
    new_pages = A_DAY / (PAGE - 1)
    changed = f"each day, the {_percent(MOVING)} of the accounts that changed"
    costs = [cost(work[question.work], question.rows) for question in QUESTIONS]
    return render(
        "scale.md.j2",
        fills=FILLS,
        accounts=ACCOUNTS,
        date=sections["test_growth"]["date"],
        largest=LARGEST,
        moving=MOVING,
        bytes_a_row=bytes_a_row,
        total=FILLS * bytes_a_row,
        page=PAGE,
        page_points=PAGE_POINTS,
        requests=requests,
        snapshots=SNAPSHOTS,
        loads={
            "the year, once": requests * PAGE_POINTS,
            "each day, every account": (ACCOUNTS + new_pages) * PAGE_POINTS,
            changed: (ACCOUNTS * MOVING + new_pages) * PAGE_POINTS + SNAPSHOTS,
        },
        fetch=a_row["fetch from a service in the same process, rows checked"],
        append=a_row["append: the first refresh, with its fetching"],
        compact=a_row["compact"],
        verify=a_row["verify"],
        refresh=figures["seconds of a refresh without new rows"],
        frame_bytes=cost(work["frame of the account"], 1e9)[1] / 1e9,
        wanted=WANTED_SECONDS,
        questions=[
            {"text": question.text, "rows": question.rows, "work": question.work}
            | {"seconds": seconds, "memory": memory}
            for question, (seconds, memory) in zip(QUESTIONS, costs, strict=True)
        ],
        most=max(seconds for seconds, _ in costs),
    )


def benchmarks_page(sections: Sections) -> str:
    """Return the text of docs/benchmarks.md."""
    return render("benchmarks.md.j2", sections=sections)


def _ratios_table(ratios: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of ratios; a cell says if a ratio, as shown, is below its promise."""
    rows = []
    for ratio in ratios:
        times = ratio["slow_ms"] / ratio["fast_ms"]
        reached = "" if round(times, 1) >= ratio["stated"] else ", not reached"
        rows.append(
            (
                ratio["what"],
                f"{ratio['fast'].rstrip(',')}: {_milliseconds(ratio['fast_ms'])}",
                f"{ratio['slow'].rstrip(',')}: {_milliseconds(ratio['slow_ms'])}",
                f"{times:.1f}" if times >= 1 else f"{times:.2g}",
                f"{ratio['stated']:g}{reached}" if ratio["stated"] else "",
            )
        )
    return markdown_table(("what", "this", "compared with", "times as fast", "promised"), rows)


def _growth_table(growth: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of growth; the cells of sizes that were not measured are empty."""
    longest = max((each["points"] for each in growth), key=len)
    rows = []
    for each in growth:
        points = each["points"]
        cells = [f"{_milliseconds(1e3 * seconds)}, {size:.0f} MB" for _, seconds, size in points]
        exponent = f"{growth_exponent(points):.2f}" if len(points) > 1 else ""
        rows.append((each["what"], *cells, *[""] * (len(longest) - len(cells)), exponent))
    sizes = [f"{point[0]:,} rows" for point in longest]
    return markdown_table(("processor time, peak of memory", *sizes, "exponent of time"), rows)


def _milliseconds(value: float) -> str:
    return f"{value / 1e3:,.1f} s" if value >= 1e3 else f"{value:.3g} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:,.1f} ms"
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 3_600:,.1f} h"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


TEMPLATES.filters |= {
    "cores": lambda seconds: f"{max(1, math.ceil(seconds / WANTED_SECONDS)):,}",
    "count": "{:,.0f}".format,
    "duration": _duration,
    "growth": _growth_table,
    "hours": lambda seconds: f"{seconds / 3_600:,.1f} h",
    "percent": _percent,
    "ratios": _ratios_table,
    "size": _size,
    "wait": lambda s: f"{s / 3_600:,.0f} h" if s >= 3_600 else f"{s / 60:.0f} min",
}


def write_pages() -> None:
    """Write both pages."""
    sections = json.loads(MEASURED.read_text("utf-8"))
    (DOCS / "benchmarks.md").write_text(benchmarks_page(sections), "utf-8")
    (DOCS / "scale.md").write_text(scale_page(sections), "utf-8")


if __name__ == "__main__":
    write_pages()
