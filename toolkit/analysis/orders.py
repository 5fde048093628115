"""What becomes of orders: the ways they go, how they end, how much is filled, and how fast."""

from toolkit.analysis.order_counts import fill_ratio, mix, transitions
from toolkit.analysis.order_times import FillTimes, time_to_fill
from toolkit.analysis.order_triggers import trigger_delay

__all__ = ["FillTimes", "fill_ratio", "mix", "time_to_fill", "transitions", "trigger_delay"]


def __dir__() -> list[str]:
    return list(__all__)
