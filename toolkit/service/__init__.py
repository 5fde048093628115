"""The query service itself: bytes in, bytes out, on this machine."""

from toolkit.service.access import Access, Key, KeysUnreadable, read_keys
from toolkit.service.answer import answer
from toolkit.service.asked import Answer
from toolkit.service.mirror import Upstream
from toolkit.service.site import Site
from toolkit.service.store import Store, StoreDamaged, build, open_store

__all__ = [
    "Access",
    "Answer",
    "Key",
    "KeysUnreadable",
    "Site",
    "Store",
    "StoreDamaged",
    "Upstream",
    "answer",
    "build",
    "open_store",
    "read_keys",
]
