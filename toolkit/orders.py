"""Orders: status transitions, fill ratios, and times to fill."""

from toolkit.analysis.execution.fill_times import FillTimes, time_to_fill
from toolkit.analysis.execution.orders import fill_ratio, mix, transitions
from toolkit.analysis.execution.trigger_delay import trigger_delay
from toolkit.public_names import publish_names

__all__ = ["FillTimes", "fill_ratio", "mix", "time_to_fill", "transitions", "trigger_delay"]

publish_names(__name__)
