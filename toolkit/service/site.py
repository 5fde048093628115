"""A whole service: paths and methods around `answer`, the same on a socket and in process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from toolkit.errors import ServiceError
from toolkit.service.access import Access
from toolkit.service.answer import answer, refusal
from toolkit.service.asked import Answer
from toolkit.service.encodings import encode_answer
from toolkit.service.mirror import Upstream
from toolkit.service.moving import Moving
from toolkit.service.store import Store

__all__ = ["Site"]

_PLAIN: Final = " ,;:=()/"  # what stands in a header as it is


@dataclass(frozen=True, slots=True)
class Site:
    """A service that answers HTTP requests, however their bytes arrive.

    Parameters
    ----------
    store : Store
        What to answer from.
    access : Access
        Who may ask.
    now_ms : callable
        Gives the present of the exchange, in milliseconds.
    at_ms : callable
        Gives the time by which points are counted, in milliseconds.
    inclusive : bool, default False
        Whether a cursor's own rows come again.
    upstream : Upstream, optional
        Who answers the operations that mirror the exchange's info API.
    moving : Moving, optional
        What moves while the clock runs.
    """

    store: Store
    access: Access
    now_ms: Callable[[], int]
    at_ms: Callable[[], int]
    inclusive: bool = False
    upstream: Upstream | None = None
    moving: Moving | None = None

    def respond(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Answer:
        """Answer a request; `headers` has names in lower case."""
        wanted = _METHODS.get(path)
        if wanted is None:
            return refusal(ServiceError(f"There is nothing at {path[:80]}", status=404))
        if method not in wanted:
            return _not_allowed(method, wanted)
        now_ms = self.now_ms()
        if path == "/healthz":
            healthy = Answer(200, {"content-type": "application/json"}, b'{"status":"ok"}')
            return self._introduced(healthy, now_ms)
        plain = answer(
            self.store,
            self.access,
            headers,
            content,
            now_ms=now_ms,
            at_ms=self.at_ms(),
            inclusive=self.inclusive,
            upstream=self.upstream,
            moving=self.moving,
        )
        wanted_encodings = headers.get("accept-encoding", "")
        return self._introduced(encode_answer(plain, wanted_encodings), now_ms)

    def _introduced(self, plain: Answer, now_ms: int) -> Answer:
        """Say who answers: whoever counts ages, or labels figures, does it by this."""
        about = self.store.about
        who = {
            "x-toolkit-now": str(now_ms),
            "x-toolkit-clock": "fixed" if self.moving is None else "live",
            "x-toolkit-source": quote(about["label"], safe=_PLAIN),
            "x-toolkit-simulated": "true" if about["simulated"] else "false",
        }
        if about["history"]:
            who["x-toolkit-history"] = quote(about["history"], safe=_PLAIN)
        return Answer(plain.status, {**plain.headers, **who}, plain.content)


_METHODS: Final[dict[str, tuple[str, ...]]] = {"/info": ("POST",), "/healthz": ("GET", "HEAD")}


def _not_allowed(method: str, wanted: tuple[str, ...]) -> Answer:
    usual = ", ".join(wanted)
    refused = refusal(ServiceError(f"Method {method[:16]} is not allowed; use {usual}", status=405))
    return Answer(405, {**refused.headers, "allow": usual}, refused.content)
