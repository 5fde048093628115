"""Reports: one self-contained HTML file each, the same bytes for the same data."""

from toolkit.reports.example import example_account
from toolkit.reports.wallet_report import wallet

__all__ = ["example_account", "wallet"]


def __dir__() -> list[str]:
    return list(__all__)
