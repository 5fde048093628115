"""Performance of accounts: returns, the figures of a performance sheet, and rankings."""

from toolkit.analysis.performance.leaderboard import leaderboard
from toolkit.analysis.performance.returns import returns
from toolkit.analysis.performance.sheet import sheet
from toolkit.analysis.performance.skill import Skill, skill
from toolkit.analysis.performance.trip_statistics import trip_sheet
from toolkit.public_names import publish_names

__all__ = [
    "Skill",
    "leaderboard",
    "returns",
    "sheet",
    "skill",
    "trip_sheet",
]

publish_names(__name__)
