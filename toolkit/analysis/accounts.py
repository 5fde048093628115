"""Who holds what: how account values are spread, how they are levered, how they move."""

from toolkit.analysis.concentration import concentration, lorenz
from toolkit.analysis.holders import values
from toolkit.analysis.leverage import leverage
from toolkit.analysis.migration import migration

__all__ = ["concentration", "leverage", "lorenz", "migration", "values"]


def __dir__() -> list[str]:
    return list(__all__)
