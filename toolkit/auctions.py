"""Deploy auctions: how the price falls, and what the winner paid."""

from toolkit.analysis.auctions import decay
from toolkit.public_path import set_public_path

__all__ = ["decay"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
