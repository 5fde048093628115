"""Values that several sentences of a report share are recomputed once for each report."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Report = TypeVar("Report")
Value = TypeVar("Value")


def compute_once(function: Callable[[Report], Value]) -> Callable[[Report], Value]:
    """Return a function that computes its value once for each report. Nobody changes the value."""
    known: dict[int, tuple[Report, Value]] = {}  # frames have no hash; a kept report keeps its id

    @wraps(function)
    def compute(report: Report) -> Value:
        if id(report) not in known:
            known[id(report)] = report, function(report)
        return known[id(report)][1]

    return compute
