"""A network that fails: drawn from a seed, between a real client and a real service."""

import random
from collections import Counter

import httpx


class Failing(httpx.BaseTransport):
    """Passes requests on, but for those that it answers with a failure of its own.

    Parameters
    ----------
    inner : httpx.BaseTransport
        The way to the service.
    seed : int
        What the failures are drawn from.
    share : float
        How many of the requests fail.
    """

    def __init__(self, inner: httpx.BaseTransport, *, seed: int, share: float) -> None:
        self._inner = inner
        self._draw = random.Random(seed)
        self._share = share
        self.failed: Counter[str] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._draw.random() >= self._share:
            return self._inner.handle_request(request)
        kind = self._draw.choice(["429", "429 and when", "500", "502", "reset", "lost", "cut"])
        self.failed[kind] += 1
        return self._fail(kind, request)

    def _fail(self, kind: str, request: httpx.Request) -> httpx.Response:
        match kind:
            case "429":
                return httpx.Response(429, json={"error": "Rate limit exceeded"})
            case "429 and when":
                wait = {"Retry-After": "1"}
                return httpx.Response(429, json={"error": "Rate limit exceeded"}, headers=wait)
            case "500":
                return httpx.Response(500, json={"error": "An internal error occurred"})
            case "502":
                return httpx.Response(502, json={"error": "Timeout error"})
            case "reset":
                raise httpx.ConnectError("connection reset", request=request)
            case "lost":  # the service has answered, and nobody hears it
                self._inner.handle_request(request).read()
                raise httpx.ReadError("connection reset", request=request)
            case _:
                raise httpx.RemoteProtocolError("peer closed the connection", request=request)
