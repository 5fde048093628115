"""Errors of responses: from the status, the headers and the body of the service or of a gateway.

The live service is behind Cloudflare. This gateway answers itself if it refuses a client, limits
it, or cannot reach the service: with a web page, or with a line such as ``error code: 1010``.
docs/live_service.md, section 8.
"""

import contextlib
import json
import math
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from toolkit import errors
from toolkit.contract.operations import Headers, Operation
from toolkit.errors import AnswerInvalid, RateLimited, ServiceDown, ServiceError

_ERRORS: Final[dict[int, type[ServiceError]]] = {
    **dict.fromkeys((400, 422), errors.BadRequest),  # 422: of the exchange's own API
    401: errors.InvalidKey,
    403: errors.NotPermitted,
    404: errors.NotReady,
    429: RateLimited,
    # From 520 on: a gateway could not reach the service, or got no good answer from it.
    **dict.fromkeys((500, 502, 503, 504, *range(520, 531)), ServiceDown),
}
_CODE: Final = re.compile(
    rb'error code:?\s*(\d{3,4})|cf-error-code"?>\s*(\d{3,4})|\berror\s+(1\d{3})\b', re.IGNORECASE
)
_CODE_BYTES: Final = 20_000  # bytes of a page that may contain the code
_HEADER_LETTERS: Final = 60  # letters of a header that a message shows
_ERROR_LETTERS: Final = 1_000  # letters of the field that the specification has for messages
_BODY_LETTERS: Final = 200  # letters of any other text
_LONGEST_ERROR: Final = 10_000  # bytes of an answer with status 200 that may be only an error
_RATE_LIMIT: Final = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_PAGE_PART: Final = re.compile(r"</|<(?:!doctype|html|head|body|script)\b", re.IGNORECASE)
_NO_MESSAGE: Final = "the answer has no error message"

_WRONG_URL: Final = "Check the base URL: it has no /info endpoint"
_REDIRECTED: Final = (
    "Check the base URL. The client does not follow redirects, so that the key is sent to no other "
    "address"
)
_CLIENT_REFUSED: Final = (
    "The cause is not a missing add-on: the gateway refuses your program or your network. Set "
    "user_agent in tk.connect to one that the gateway accepts, such as that of curl, or use "
    "another network"
)
_NETWORK_REFUSED: Final = (
    "The cause is not a missing add-on: the gateway refuses your network. Use another network, or "
    "ask the provider of the service to allow yours"
)
_CODE_HINTS: Final[dict[int, str]] = {
    **dict.fromkeys((1006, 1007, 1008, 1009, 1012), _NETWORK_REFUSED),
    **dict.fromkeys((1010, 1020), _CLIENT_REFUSED),
    1015: "The gateway limits the requests of your network: wait, and send fewer requests",
}
"""Cloudflare's codes for a refused client -> what to do."""


def response_error(
    operation: Operation, status: int, headers: Headers, content: bytes
) -> ServiceError:
    """Return the error for a response with an error status.

    - ``operation``: the operation of the request
    - ``status``: HTTP status
    - ``headers``: HTTP headers, names in lower case
    - ``content``: the body
    """
    error_type = _ERRORS.get(status, ServiceError)
    message, hint = _gateway_message(status, headers, content)
    is_own = not message
    message = message or _error_message(content)
    if hint == _CODE_HINTS[1015]:
        error_type = RateLimited
    elif error_type is RateLimited and operation.limit is not None:
        calls, minutes = operation.limit.calls, operation.limit.seconds // 60
        hint = (
            f"The limit is {calls} requests in {minutes} minutes: wait, or set points_per_minute "
            "of the session, so that it waits by itself"
        )
    elif status == 404 and (hint is not None or (is_own and operation.unpublished != 404)):
        error_type = ServiceError  # it is not the 404 of a missing snapshot
        if is_own:  # it may say no more than that there is nothing at its address
            is_json = content.lstrip()[:1] == b"{"
            says_nothing = message.startswith(_NO_MESSAGE) or message.lower() == "not found"
            hint = "" if is_json and not says_nothing else _WRONG_URL
    return error_type(
        message,
        status=status,
        operation=operation.type,
        retry_after=_stated_wait(headers),
        hint=hint,
    )


def error_in_answer(operation: Operation, headers: Headers, content: bytes) -> ServiceError | None:
    """Return the error of an object with status 200 that has only an error message, else None.

    No record has a field ``error``, so such an object would become a row of missing values.

    >>> from toolkit.contract.operations import OPERATIONS
    >>> error_in_answer(OPERATIONS["meta"], {}, b'{"error": "Rate limit exceeded"}')
    RateLimited('Rate limit exceeded')
    """
    answer = None
    with contextlib.suppress(ValueError, RecursionError):
        answer = json.loads(content) if len(content) <= _LONGEST_ERROR else None
    error = answer.get("error") if isinstance(answer, dict) and len(answer) == 1 else None
    if not isinstance(error, str):
        return None
    message, wait = _error_message(content), _stated_wait(headers)
    error_type = RateLimited if _RATE_LIMIT.search(message) else ServiceError
    return error_type(message, status=200, operation=operation.type, retry_after=wait)


def check_no_web_page(operation: Operation, headers: Headers, content: bytes) -> None:
    """Raise AnswerInvalid if an answer with status 200 is a web page."""
    if _is_web_page(content):
        sender = _sender_name(headers)
        raise AnswerInvalid(
            f"the answer is a web page{sender and f' (from {sender})'}, not an answer of the "
            "service. Check the base URL, and whether there is a proxy or a login page",
            operation=operation.type,
        )


def _gateway_message(status: int, headers: Headers, content: bytes) -> tuple[str, str | None]:
    """Return what a gateway answered instead of the service, and what to do about it.

    The text is empty if the service itself answered. The hint is None if the usual one of the
    status holds.

    >>> _gateway_message(403, {"server": "cloudflare"}, b"error code: 1010")[0]
    'the gateway (cloudflare) refused this client: error code 1010'
    >>> _gateway_message(403, {}, b'{"error": "Permission denied"}')
    ('', None)
    """
    target = re.split("[?#]", headers.get("location", ""))[0]  # the query may name the key
    if 300 <= status < 400 and target:
        return f"the service redirects to {_clean_text(target)}", _REDIRECTED
    if content.lstrip()[:1] in (b"{", b"["):
        return "", None
    match = _CODE.search(content[:_CODE_BYTES])
    code = int(next(filter(None, match.groups()))) if match else 0
    sender = _sender_name(headers)
    gateway = f"the gateway ({sender})" if sender else "a gateway"
    if code:
        did = "refused this client" if code in _CODE_HINTS else "answered instead of the service"
        did = "limits this client" if code == 1015 else did
        return f"{gateway} {did}: error code {code}", _CODE_HINTS.get(code)
    if not _is_web_page(content):
        return "", None
    # 403: such as the page that checks whether the client is a person
    hint = {403: _CLIENT_REFUSED, 404: _WRONG_URL}.get(status)
    return f"the answer is a web page of {gateway}, not an answer of the service", hint


def _is_web_page(content: bytes) -> bool:
    """Return whether a body is HTML; neither JSON nor a binary snapshot begins with ``<``."""
    return content[:1_000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<"


def _sender_name(headers: Headers) -> str:
    """Return the server in the headers, and the ray id that Cloudflare's support needs."""
    texts = (headers.get(name, "") for name in ("server", "cf-ray"))
    server, ray = (text[:_HEADER_LETTERS] if text.isprintable() else "" for text in texts)
    return ", ".join(filter(None, (server, ray and f"cf-ray {ray}")))


def _error_message(content: bytes) -> str:
    """Return what the body of an error says.

    The specification has the field ``error``. Other servers send ``message`` or ``detail``, or a
    text that is not JSON.

    >>> _error_message(b'{"detail": "user is missing"}')
    'user is missing'
    """
    try:
        body = _clean_text(content.decode())
        answer = json.loads(content)
    except UnicodeDecodeError:
        return _NO_MESSAGE
    except (ValueError, RecursionError):
        return body or _NO_MESSAGE
    fields = answer if isinstance(answer, dict) else {}
    for name in ("error", "message", "detail"):
        if value := fields.get(name):
            most = _ERROR_LETTERS if name == "error" else _BODY_LETTERS
            text = _clean_text(value if isinstance(value, str) else json.dumps(value), most)
            return text or _NO_MESSAGE
    return f"{_NO_MESSAGE}: {body}"


def _clean_text(text: str, most: int = _BODY_LETTERS) -> str:
    """Return a text on one line, without control characters and without a web page in it."""
    page = _PAGE_PART.search(text)
    shown = text[: page.start() if page else None][: 10 * most]
    words = " ".join("".join(c if c.isprintable() else " " for c in shown).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _stated_wait(headers: Headers) -> float | None:
    """Return the seconds of a Retry-After header; None if there are none.

    A date counts from the date of the answer, so that the clock of this machine does not matter.
    """
    text = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        seconds = float(text)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with contextlib.suppress(ValueError, OverflowError):
        until, sent = map(parsedate_to_datetime, (text, headers.get("date", "")))
        # HTTP dates are always UTC, whether they say so or not.
        return max(0.0, (until.replace(tzinfo=UTC) - sent.replace(tzinfo=UTC)).total_seconds())
    return None
