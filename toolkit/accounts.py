"""Account values: how they are distributed, their leverage, and how they change."""

from toolkit.analysis.accounts.concentration import concentration, lorenz
from toolkit.analysis.accounts.holders import values
from toolkit.analysis.accounts.leverage import leverage
from toolkit.analysis.accounts.migration import migration
from toolkit.public_path import set_public_path

__all__ = ["concentration", "leverage", "lorenz", "migration", "values"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
