"""The query service itself: bytes in, bytes out, on this machine."""

from toolkit.service.access import Access, Key, KeysUnreadable, read_keys
from toolkit.service.answer import answer
from toolkit.service.asked import Answer
from toolkit.service.latest import latest_of
from toolkit.service.mirror import Upstream
from toolkit.service.moving import Moving
from toolkit.service.site import Site
from toolkit.service.store import Store, StoreDamaged, build, open_store

__all__ = [
    "Access",
    "Answer",
    "Key",
    "KeysUnreadable",
    "Moving",
    "Site",
    "Store",
    "StoreDamaged",
    "Upstream",
    "answer",
    "build",
    "latest_of",
    "open_store",
    "read_keys",
]
