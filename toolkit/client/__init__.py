"""Asking the service: sessions, retries, the points budget, pages."""

from toolkit.client.counts import Counts
from toolkit.client.pages import Batch, Progress, pages
from toolkit.client.session import Session, connect, current_session, forget, use

__all__ = [
    "Batch",
    "Counts",
    "Progress",
    "Session",
    "connect",
    "current_session",
    "forget",
    "pages",
    "use",
]
