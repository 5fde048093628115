"""Execution quality: fills against prices before and after, spreads, and quotes."""

from toolkit.analysis.execution.fills import fill_quality
from toolkit.analysis.execution.markout import Markout, markout
from toolkit.analysis.execution.spreads import Spreads, spreads
from toolkit.analysis.execution.tape import quotes
from toolkit.public_path import set_public_path

__all__ = ["Markout", "Spreads", "fill_quality", "markout", "quotes", "spreads"]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
