"""The client of the service: sessions, retries, the points budget."""

from toolkit.client.budget import RequestCounts
from toolkit.client.connection import connect, find_cache_folder, open_session
from toolkit.client.session import RawAnswer, Recipe, Session, current_session, forget, use

__all__ = [
    "RawAnswer",
    "Recipe",
    "RequestCounts",
    "Session",
    "connect",
    "current_session",
    "find_cache_folder",
    "forget",
    "open_session",
    "use",
]
