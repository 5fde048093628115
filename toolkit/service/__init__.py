"""The query service: a request arrives as bytes, and a response leaves as bytes.

The stages of a request, each a function of the stage before: `application` (path, key, points),
`handler_messages` (the checked request), `answers` (rows from the store, then a page of them),
`encodings` (compression).
"""

from toolkit.service.api_keys import AcceptedKey, KeyQuotas, KeysUnreadable, read_keys
from toolkit.service.application import Application
from toolkit.service.handler_messages import Response
from toolkit.service.limits import ServiceLimits
from toolkit.service.live_documents import LiveDocuments, read_last_state
from toolkit.service.mirror import Upstream
from toolkit.service.store import Store, StoreDamaged, build_store, open_store

__all__ = [
    "AcceptedKey",
    "Application",
    "KeyQuotas",
    "KeysUnreadable",
    "LiveDocuments",
    "Response",
    "ServiceLimits",
    "Store",
    "StoreDamaged",
    "Upstream",
    "build_store",
    "open_store",
    "read_keys",
    "read_last_state",
]
