"""Write docs/benchmarks.md and docs/scale.md from the figures in docs/benchmarks.json.

`make bench` measures the figures; `python docs/benchmark_pages.py` writes the pages again. The page
docs/scale.md estimates a whole exchange for a year from the measured growth.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reference_pages import TEMPLATES, markdown_table, render, write_changed

DOCS: Final = Path(__file__).resolve().parent
MEASURED: Final = DOCS / "benchmarks.json"
Points = Sequence[Sequence[float]]
"""What a work costs: measured (rows, seconds, megabytes), the sizes in order."""


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


def made_pages() -> dict[str, str]:
    """Return the text of both pages, by file name."""
    sections = json.loads(MEASURED.read_text("utf-8"))
    grown = sections["test_growth"]
    work = {growth["what"]: growth["points"] for growth in grown["growth"]}
    figures = {figure["what"]: figure["value"] for figure in grown["figures"]}
    scale = render("scale.md.j2", date=grown["date"], figures=figures, work=work)
    return {"benchmarks.md": render("benchmarks.md.j2", sections=sections), "scale.md": scale}


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
    "cost_of": cost,
    "count": "{:,.0f}".format,
    "duration": _duration,
    "growth": _growth_table,
    "hours": lambda seconds: f"{seconds / 3_600:,.1f} h",
    "percent": lambda share: f"{100 * share:.0f} %",
    "ratios": _ratios_table,
    "size": _size,
    "wait": lambda s: f"{s / 3_600:,.0f} h" if s >= 3_600 else f"{s / 60:.0f} min",
}


def write_pages() -> None:
    """Write both pages."""
    write_changed(DOCS, made_pages())


if __name__ == "__main__":
    write_pages()
