"""Profit and loss of accounts: attribution, equity, positions, and reconciliation."""

from toolkit.analysis.attribution import attribution
from toolkit.analysis.audit import audit
from toolkit.analysis.carried_back import carried_back
from toolkit.analysis.drawdown import drawdown
from toolkit.analysis.equity import equity
from toolkit.analysis.lots import lots
from toolkit.analysis.positions import positions, unrealised
from toolkit.analysis.reconcile import reconcile
from toolkit.analysis.round_trips import round_trips
from toolkit.public_path import set_public_path

__all__ = [
    "attribution",
    "audit",
    "carried_back",
    "drawdown",
    "equity",
    "lots",
    "positions",
    "reconcile",
    "round_trips",
    "unrealised",
]

set_public_path(globals())


def __dir__() -> list[str]:
    return list(__all__)
