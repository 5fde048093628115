"""Builders: what they earn, from whom, and how much of their users' trading passes them by."""

from toolkit.analysis.builder_cohorts import LifetimeValue, cohorts, lifetime_value
from toolkit.analysis.builder_revenue import revenue
from toolkit.analysis.builder_routing import attach_rate, routing
from toolkit.analysis.builder_spans import approval_spans

__all__ = [
    "LifetimeValue",
    "approval_spans",
    "attach_rate",
    "cohorts",
    "lifetime_value",
    "revenue",
    "routing",
]


def __dir__() -> list[str]:
    return list(__all__)
