"""Asking the service: sessions, retries, the points budget, pages."""

from toolkit.client.budget import LimitWarning
from toolkit.client.connecting import connect, current_session, forget, use
from toolkit.client.counts import Counts
from toolkit.client.pages import Batch, Progress, pages
from toolkit.client.recipe import Recipe
from toolkit.client.session import Session

__all__ = [
    "Batch",
    "Counts",
    "LimitWarning",
    "Progress",
    "Recipe",
    "Session",
    "connect",
    "current_session",
    "forget",
    "pages",
    "use",
]
