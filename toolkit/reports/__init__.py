"""Reports: one self-contained HTML file each, the same bytes for the same data."""

from toolkit.reports import blocks
from toolkit.reports.building import template
from toolkit.reports.example import example_account
from toolkit.reports.making import run, wallet

__all__ = ["blocks", "example_account", "run", "template", "wallet"]


def __dir__() -> list[str]:
    return list(__all__)
