"""A service on a port that can stop and restart."""

import threading

from toolkit.local_service import application_of
from toolkit.service import AcceptedKey, KeyQuotas
from toolkit.service.http import HttpServer, bind_socket

CANARY = "canary-3f1c96d2-must-never-be-seen"
"""The key of this service; no page and no file may contain it."""


class Service:
    """The local service of a store, always at the same address."""

    def __init__(self, store):
        self._store = store
        self._application = application_of(
            store, KeyQuotas([AcceptedKey("lab", CANARY)]), clock="live"
        )
        self._port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    @property
    def now_ms(self):
        """The end of the history, in Unix milliseconds."""
        end: int = self._store.about["now_ms"]
        return end

    def start(self):
        listener = bind_socket("127.0.0.1", self._port)
        listener.listen()
        self._port = listener.getsockname()[1]
        self._server = HttpServer(self._application, listener)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def stop(self):
        self._server.stop()
        self._thread.join(timeout=20)

    def close(self):
        self.stop()
        self._store.close()
