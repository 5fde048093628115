"""Builders: their revenue, their users, and the share of trading routed through them."""

from toolkit.analysis.builders.activity import activity
from toolkit.analysis.builders.approvals import approval_spans
from toolkit.analysis.builders.cohorts import LifetimeValue, cohorts, lifetime_value
from toolkit.analysis.builders.revenue import attach_rate, revenue, routing
from toolkit.public_names import publish_names

__all__ = [
    "LifetimeValue",
    "activity",
    "approval_spans",
    "attach_rate",
    "cohorts",
    "lifetime_value",
    "revenue",
    "routing",
]

publish_names(__name__)
