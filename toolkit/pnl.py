"""Profit and loss of accounts: attribution, equity, value, positions, and reconciliation."""

from toolkit.analysis.pnl.attribution import attribution
from toolkit.analysis.pnl.audit import audit
from toolkit.analysis.pnl.backward_equity import carried_back
from toolkit.analysis.pnl.drawdown import drawdown
from toolkit.analysis.pnl.equity import equity
from toolkit.analysis.pnl.lots import lots
from toolkit.analysis.pnl.positions import positions, unrealised
from toolkit.analysis.pnl.reconcile import reconcile
from toolkit.analysis.pnl.round_trips import round_trips
from toolkit.analysis.pnl.value import value
from toolkit.public_names import publish_names

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
    "value",
]

publish_names(__name__)
