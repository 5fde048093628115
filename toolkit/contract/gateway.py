"""Answers that a gateway in front of the service gave. docs/live_service.md, section 8.

The live service stands behind Cloudflare, which answers by itself where it refuses a client, limits
it, or cannot reach the service: with a web page, or with a line such as ``error code: 1010``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["GATEWAY_DOWN", "GatewayError", "gateway_error", "is_web_page", "sender"]

GATEWAY_DOWN: Final = frozenset(range(520, 531))
"""Statuses of a gateway that could not reach the service, or got no good answer from it."""

_CODE: Final = re.compile(
    rb'error code:?\s*(\d{3,4})|cf-error-code"?>\s*(\d{3,4})|\berror\s+(1\d{3})\b', re.IGNORECASE
)
_LOOKED_AT: Final = 20_000  # bytes of a page in which the code is looked for
_LONGEST: Final = 60  # letters of a header that a message shows

_CLIENT_REFUSED: Final = (
    "This is no missing add-on: the gateway refused the program or network that asks. Give "
    "tk.connect a user_agent that the gateway lets in, such as that of curl, or ask from another "
    "network"
)
_NETWORK_REFUSED: Final = (
    "This is no missing add-on: the gateway refused the network that asks. Ask from another "
    "network, or ask the provider of the service to let yours in"
)
_HINTS: Final[dict[int, str]] = {
    1006: _NETWORK_REFUSED,
    1007: _NETWORK_REFUSED,
    1008: _NETWORK_REFUSED,
    1009: _NETWORK_REFUSED,
    1010: _CLIENT_REFUSED,
    1012: _NETWORK_REFUSED,
    1020: _CLIENT_REFUSED,
    1015: "The gateway limits how often this network may ask: wait, and ask less often",
}
"""Cloudflare's codes of a refused client -> what to do."""

_PAGES: Final[dict[int, str]] = {
    403: _CLIENT_REFUSED,  # such as the page that asks whether a person is there
    404: "Check the base URL: nothing answers /info there",
}
"""Status of a web page without a code -> what to do."""


@dataclass(frozen=True, slots=True)
class GatewayError:
    """What a gateway said instead of the service.

    Attributes
    ----------
    message : str
        What happened, in words.
    hint : str or None
        What to do about it; None: what is usual for the status.
    is_rate_limit : bool
        Whether the client asked too often.
    """

    message: str
    hint: str | None = None
    is_rate_limit: bool = False


def gateway_error(
    headers: Mapping[str, str], content: bytes, status: int = 0
) -> GatewayError | None:
    """Return what a gateway said in an error answer, or None if the service itself answered.

    Parameters
    ----------
    headers : mapping
        HTTP headers, names in lower case.
    content : bytes
        The body.
    status : int
        The HTTP status, where it is known.

    Examples
    --------
    >>> gateway_error({"server": "cloudflare"}, b"error code: 1010").message
    'the gateway (cloudflare) refused this client: error code 1010'
    >>> gateway_error({}, b'{"error": "Permission denied"}') is None
    True
    """
    if content.lstrip()[:1] in (b"{", b"["):
        return None
    found = _CODE.search(content[:_LOOKED_AT])
    code = int(next(filter(None, found.groups()))) if found else 0
    who = f"the gateway ({sender(headers)})" if sender(headers) else "a gateway"
    if code == 1015:
        return GatewayError(f"{who} limits this client: error code 1015", _HINTS[1015], True)
    if code in _HINTS:
        return GatewayError(f"{who} refused this client: error code {code}", _HINTS[code])
    if code:
        return GatewayError(f"{who} answered instead of the service: error code {code}")
    if is_web_page(content):
        words = f"the answer is a web page of {who}, not an answer of the service"
        return GatewayError(words, _PAGES.get(status))
    return None


def is_web_page(content: bytes) -> bool:
    """Whether a body is HTML: neither JSON nor a binary snapshot begins like that.

    Examples
    --------
    >>> is_web_page(b"<!DOCTYPE html>"), is_web_page(b'{"error": "<html>"}')
    (True, False)
    """
    return content[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"


def sender(headers: Mapping[str, str]) -> str:
    """Return who sent an answer, by its headers: the server, and the id that support asks for.

    Examples
    --------
    >>> sender({"server": "cloudflare", "cf-ray": "8f1c-FRA"})
    'cloudflare, cf-ray 8f1c-FRA'
    """
    server, ray = (_plain(headers.get(name, "")) for name in ("server", "cf-ray"))
    return ", ".join(filter(None, (server, ray and f"cf-ray {ray}")))


def _plain(text: str) -> str:
    return text[:_LONGEST] if text.isprintable() else ""
