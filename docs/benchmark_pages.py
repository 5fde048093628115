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

`make bench` measures these figures and writes this page. `make bench ARGS="-k growth"` measures
one section again. `ARGS="--most-rows 10000000"` extends the tables of growth.

Both ways of a comparison work on the same data, in turn. Times are processor time, which other
programs disturb less, but only ratios are meaningful. "Stated" is what this project promises:
`make bench` fails below half of it. It does not fail for noise.
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
            lines += table(("what", "this", "beside", "times as fast", "stated"), rows)
            lines.append("")
        if section["growth"]:
            sizes = [str(f"{point[0]:,} rows") for point in section["growth"][0]["points"]]
            rows = [_growth_row(growth) for growth in section["growth"]]
            lines += table(("processor time, peak of memory", *sizes, "exponent of time"), rows)
            lines.append("")
        lines += [f"- {line.strip()}" for line in section["lines"]]
        lines += [f"- {figure['what']}: {figure['value']:.3g}" for figure in section["figures"]]
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _ratio_row(ratio: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        ratio["what"],
        f"{ratio['fast'].rstrip(',')}: {_milliseconds(ratio['fast_ms'])}",
        f"{ratio['slow'].rstrip(',')}: {_milliseconds(ratio['slow_ms'])}",
        f"{ratio['slow_ms'] / ratio['fast_ms']:.1f}",
        f"{ratio['stated']:g}" if ratio["stated"] else "",
    )


def _growth_row(growth: Mapping[str, Any]) -> tuple[str, ...]:
    points = [f"{_milliseconds(1e3 * point[1])}, {point[2]:.0f} MB" for point in growth["points"]]
    return growth["what"], *points, f"{growth_exponent(growth['points']):.2f}"


def _milliseconds(value: float) -> str:
    return f"{value / 1e3:,.1f} s" if value >= 1e3 else f"{value:.3g} ms"


def write_pages() -> None:
    """Write both pages."""
    sections = json.loads(MEASURED.read_text("utf-8"))
    (DOCS / "benchmarks.md").write_text(benchmarks_page(sections), "utf-8")
    (DOCS / "scale.md").write_text(scale_page(sections), "utf-8")


if __name__ == "__main__":
    write_pages()
