"""TWAP orders: execution quality, adherence to the schedule, and remaining volume."""

from toolkit.analysis.execution.twap_quality import quality
from toolkit.analysis.execution.twaps import adherence, linked, pressure
from toolkit.public_path import set_public_path

__all__ = ["adherence", "linked", "pressure", "quality"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
