"""The client of the service: sessions, retries, the points budget."""

from toolkit.client.budget import LimitWarning
from toolkit.client.connection import connect, current_session, forget, use
from toolkit.client.counts import Counts
from toolkit.client.progress import Progress
from toolkit.client.recipe import Recipe
from toolkit.client.session import Session

__all__ = [
    "Counts",
    "LimitWarning",
    "Progress",
    "Recipe",
    "Session",
    "connect",
    "current_session",
    "forget",
    "use",
]
