"""Values that several sentences of a report share are recomputed once for each report."""

from functools import wraps
from typing import Any, ParamSpec, TypeVar

Report = TypeVar("Report")
Value = TypeVar("Value")
Rest = ParamSpec("Rest")


def compute_once(function):
    """Return a function that computes its value once for each report and further arguments.

    Nobody changes the value.
    """
    known: dict[Any, tuple[Report, Value]] = {}  # frames have no hash; a kept report keeps its id

    @wraps(function)
    def compute(report, *args, **named):
        key = (id(report), args, tuple(named.items()))
        if key not in known:
            known[key] = report, function(report, *args, **named)
        return known[key][1]

    return compute
