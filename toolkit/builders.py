"""Builders: their revenue, their users, and the share of trading routed through them."""

from toolkit.analysis.builder_cohorts import LifetimeValue, cohorts, lifetime_value
from toolkit.analysis.builder_revenue import revenue
from toolkit.analysis.builder_routing import attach_rate, routing
from toolkit.analysis.builder_spans import approval_spans
from toolkit.public_path import set_public_path

__all__ = [
    "LifetimeValue",
    "approval_spans",
    "attach_rate",
    "cohorts",
    "lifetime_value",
    "revenue",
    "routing",
]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
