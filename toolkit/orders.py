"""Orders: status transitions, fill ratios, and times to fill."""

from toolkit.analysis.execution.fill_times import (
    FillProbability,
    FillTimes,
    fill_probability,
    time_to_fill,
)
from toolkit.analysis.execution.orders import fill_ratio, mix, transitions
from toolkit.analysis.execution.trigger_delay import trigger_delay
from toolkit.public_names import publish_names

__all__ = [
    "FillProbability",
    "FillTimes",
    "fill_probability",
    "fill_ratio",
    "mix",
    "time_to_fill",
    "transitions",
    "trigger_delay",
]

publish_names(__name__)
