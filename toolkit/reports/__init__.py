"""Reports: one self-contained HTML file each, the same bytes for the same data."""

from toolkit.reports import blocks
from toolkit.reports.building import template
from toolkit.reports.example import example_account
from toolkit.reports.making import builder, market, market_quality, run, wallet

__all__ = [
    "blocks",
    "builder",
    "example_account",
    "market",
    "market_quality",
    "run",
    "template",
    "wallet",
]


def __dir__() -> list[str]:
    return list(__all__)
