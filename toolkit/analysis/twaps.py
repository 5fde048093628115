"""TWAP orders: what they achieved, whether they keep their schedule, what they will still trade."""

from toolkit.analysis.twap_links import linked
from toolkit.analysis.twap_quality import quality
from toolkit.analysis.twap_snapshots import adherence, pressure

__all__ = ["adherence", "linked", "pressure", "quality"]


def __dir__() -> list[str]:
    return list(__all__)
