"""Write docs/benchmarks.md and docs/scale.md from the figures in docs/benchmarks.json.

`make bench` measures the figures; `python docs/benchmark_pages.py` writes the pages again.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scale_estimate import growth_exponent, scale_page, table

DOCS: Final = Path(__file__).resolve().parent
MEASURED: Final = DOCS / "benchmarks.json"

_HEAD: Final = """\
# Benchmarks

`make bench` measures these figures and writes this document. `make bench ARGS="-k growth"` measures
one section again. `ARGS="--most-rows 10000000"` adds larger sizes to the tables of growth.

A comparison runs the two programs in turn, on the same data. Times are processor time, because
other programs disturb it less. Only rows with "wall time" show wall-clock time. A line such as
"6.05 s (9.18 s of processor)" shows the wall-clock time first, and the processor time of all
threads in parentheses. Only ratios are meaningful. The column "promised" has the ratio that this
project promises on an idle machine. If a measured ratio is below it, the cell says "not reached".
`make bench` fails only if a ratio is below half of the promised one, because measurements are
noisy. Some sections also name a target, which is higher than the promise.

Each section states the load of its machine. If the load is above the number of processors, other
programs disturbed the measurement. Then measure again on an idle machine before you rely on a
figure.
"""


def benchmarks_page(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of docs/benchmarks.md."""
    lines = [_HEAD]
    for name, section in sections.items():
        lines += [f"## {section['title']}", ""]
        if section["about"]:
            lines += [section["about"], ""]
        lines += [f"`tests/benchmarks/{name}.py`, {section['date']}: {section['machine']}.", ""]
        if section["ratios"]:
            rows = [_ratio_row(ratio) for ratio in section["ratios"]]
            lines += table(("what", "this", "compared with", "times as fast", "promised"), rows)
            lines.append("")
        if section["growth"]:
            longest = max((growth["points"] for growth in section["growth"]), key=len)
            sizes = [f"{point[0]:,} rows" for point in longest]
            rows = [_growth_row(growth, len(sizes)) for growth in section["growth"]]
            lines += table(("processor time, peak of memory", *sizes, "exponent of time"), rows)
            lines.append("")
        lines += [f"- {line.strip()}" for line in section["lines"]]
        lines += [f"- {figure['what']}: {figure['value']:.3g}" for figure in section["figures"]]
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _ratio_row(ratio: Mapping[str, Any]) -> tuple[str, ...]:
    times = ratio["slow_ms"] / ratio["fast_ms"]
    return (
        ratio["what"],
        f"{ratio['fast'].rstrip(',')}: {_milliseconds(ratio['fast_ms'])}",
        f"{ratio['slow'].rstrip(',')}: {_milliseconds(ratio['slow_ms'])}",
        f"{times:.1f}" if times >= 1 else f"{times:.2g}",
        _stated(ratio),
    )


def _stated(ratio: Mapping[str, Any]) -> str:
    """Return the promised ratio, with a remark if the measured one, as shown, is below it."""
    if not ratio["stated"]:
        return ""
    is_reached = round(ratio["slow_ms"] / ratio["fast_ms"], 1) >= ratio["stated"]
    return f"{ratio['stated']:g}" if is_reached else f"{ratio['stated']:g}, not reached"


def _growth_row(growth: Mapping[str, Any], sizes: int) -> tuple[str, ...]:
    """Return the row of a work; the cells of sizes that were not measured are empty."""
    points = growth["points"]
    cells = [f"{_milliseconds(1e3 * seconds)}, {size:.0f} MB" for _, seconds, size in points]
    exponent = f"{growth_exponent(points):.2f}" if len(points) > 1 else ""
    return growth["what"], *cells, *[""] * (sizes - len(cells)), exponent


def _milliseconds(value: float) -> str:
    return f"{value / 1e3:,.1f} s" if value >= 1e3 else f"{value:.3g} ms"


def write_pages() -> None:
    """Write both pages."""
    sections = json.loads(MEASURED.read_text("utf-8"))
    (DOCS / "benchmarks.md").write_text(benchmarks_page(sections), "utf-8")
    (DOCS / "scale.md").write_text(scale_page(sections), "utf-8")


if __name__ == "__main__":
    write_pages()
