"""Execution quality: fills against prices, spreads, quotes, impact, and both sides of trades."""

from toolkit.analysis.execution.copy_trading import copy_trading
from toolkit.analysis.execution.counterparties import counterparties, toxicity
from toolkit.analysis.execution.fill_quality import fill_quality
from toolkit.analysis.execution.impact import Impact, impact
from toolkit.analysis.execution.maker_days import maker_days
from toolkit.analysis.execution.markout import Markout, markout
from toolkit.analysis.execution.quotes import quotes
from toolkit.analysis.execution.shortfall import Shortfall, shortfall
from toolkit.analysis.execution.spreads import Spreads, spreads
from toolkit.public_names import publish_names

__all__ = [
    "Impact",
    "Markout",
    "Shortfall",
    "Spreads",
    "copy_trading",
    "counterparties",
    "fill_quality",
    "impact",
    "maker_days",
    "markout",
    "quotes",
    "shortfall",
    "spreads",
    "toxicity",
]

publish_names(__name__)
