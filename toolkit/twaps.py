"""TWAP orders: execution quality, adherence to the schedule, and remaining volume."""

from toolkit.analysis.execution.twap_quality import quality
from toolkit.analysis.execution.twaps import adherence, linked, pressure
from toolkit.public_names import publish_names

__all__ = ["adherence", "linked", "pressure", "quality"]

publish_names(__name__)
