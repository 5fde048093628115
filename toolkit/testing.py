"""Faults on purpose: a transport that damages answers, to test code that fetches.

>>> import toolkit as tk
>>> from toolkit.client import open_session
>>> session = tk.local(seed=7, size="tiny")
>>> user = session.world["users"][0]
>>> transport = tk.testing.faulty(session, {1: "reset", 2: "status 502"})
>>> damaged = open_session("http://localhost", transport=transport)
>>> fills = tk.user_fills_by_time(user, 0, session=damaged)
>>> tk.provenance(fills)["complete"], tk.provenance(fills)["retries"]
('yes', {'502': 1, 'connection broken': 1})
>>> [fault.name for fault in transport.injected]
['reset', 'status 502']

`FAULTS` lists all faults. docs/faults.md says which of them the fetch functions find.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from toolkit.client import Session

__all__ = ["FAULTS", "FaultyTransport", "InjectedFault", "faulty"]

FAULTS: Final[Mapping[str, str]] = {
    "status 429": "the service refuses the request; `status 403`, `status 500` or any other works",
    "status 502": "a gateway fails",
    "web page": "a gateway answers with HTML and status 200",
    "refused": "no connection",
    "reset": "the connection breaks before the answer",
    "cut": "the connection breaks in the middle of the answer",
    "short": "the answer ends in the middle, and no header shows it",
    "stall": "the answer stops in the middle, and the connection stays open",
    "slow": "the bytes of the answer come in a hundred pieces, one every `pause` seconds",
    "flipped byte": "one byte of the answer is changed",
    "invalid utf-8": "a text contains a byte that is not UTF-8",
    "wrong type": "a field of one row has a value of another type",
    "null": "a field of one row is null",
    "row dropped": "one row is missing",
    "row doubled": "one row comes twice",
    "rows swapped": "two rows exchange their places",
    "page empty": "the answer has no rows",
    "page cut": "the answer ends after some of its rows, as valid JSON",
    "page doubled": "all rows of the answer come twice, one after the other",
    "page dropped": "the answer is the page after the requested one",
    "page repeated": "the answer is the page before the requested one",
    "cursor ignored": "the answer is the first page, whatever was requested",
}
"""Name of a fault -> what happens."""

_OTHER_PAGES: Final = ("page dropped", "page repeated", "cursor ignored")
_BREAKS: Final = {
    "reset": httpx.ReadError,
    "cut": httpx.RemoteProtocolError,
    "stall": httpx.ReadTimeout,
}
_PAIR: Final = 2
_SHORTEST: Final = 3  # shortest answer, in bytes, that a fault can damage
_MOVES: Final = ("cursor", "startTime", "endTime")  # what changes from page to page
_TIMES: Final = ("time", "timestamp", "statusTimestamp")

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault that was injected.

    Attributes
    ----------
    number : int
        The number of the request, from 1.
    operation : str
        The ``type`` of the request.
    name : str
        The name of the fault.
    """

    number: int
    operation: str
    name: str


def faulty(
    inner: Session | httpx.BaseTransport,
    faults: str | Iterable[str] | Mapping[int, str] = tuple(FAULTS),
    *,
    share: float = 0.3,
    seed: int = 0,
    pause: float = 0.01,
    sleep: Callable[[float], None] = time.sleep,
) -> "FaultyTransport":
    """Return a transport that damages some of the answers of another one.

    Pass it to `toolkit.connect` as `transport`. Requests to the service are counted from 1; a
    retry is a request, too. If a fault cannot be injected, because an answer has no rows for
    example, the answer is unchanged.

    Parameters
    ----------
    inner : Session or httpx.BaseTransport
        Who answers: a session, such as that of `toolkit.local`, with its key; or a transport.
    faults : str, iterable of str, or mapping of int to str
        The faults, names of `FAULTS`: those from which faults are drawn, or the number of a
        request -> its fault.
    share : float, default 0.3
        The share of the requests that get a fault, if faults are drawn.
    seed : int, default 0
        The seed of all draws. The same seed and requests give the same faults.
    pause : float, default 0.01
        Seconds between two pieces of a slow answer.
    sleep : callable, default time.sleep
        The function that waits.

    Returns
    -------
    FaultyTransport

    Raises
    ------
    ValueError
        If there is no such fault, or if the share is not from 0 to 1.

    Examples
    --------
    The positions of fills show that one is missing:

    >>> import toolkit as tk
    >>> from toolkit.client import open_session
    >>> session = tk.local(seed=7, size="tiny")
    >>> transport = faulty(session, "row dropped", share=1.0)
    >>> damaged = open_session("http://localhost", transport=transport)
    >>> import warnings
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     fills = tk.user_fills_by_time(tk.example.LARGE, 0, session=damaged)
    >>> print(caught[0].message)
    incomplete: userFillsByTime: the rows contradict each other: ...fills are missing in between...
    >>> tk.provenance(fills)["complete"]
    'no'
    >>> transport.injected
    [InjectedFault(number=1, operation='userFillsByTime', name='row dropped')]

    Without the fault, the same transport passes every answer on:

    >>> transport.is_active = False
    >>> fills = tk.user_fills_by_time(tk.example.LARGE, 0, session=damaged)
    >>> tk.provenance(fills)["complete"]
    'yes'
    """
    if isinstance(inner, Session):
        inner = _SessionTransport(inner)
    schedule = dict(faults) if isinstance(faults, Mapping) else {}
    drawn = () if schedule else (faults,) if isinstance(faults, str) else tuple(map(str, faults))
    for name in (*schedule.values(), *drawn):
        if name not in FAULTS and not _status_of(name):
            raise ValueError(f"unknown fault {name!r}; choose one of {', '.join(FAULTS)}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be a number from 0 to 1, not {share!r}")
    return FaultyTransport(inner, schedule, drawn, share, random.Random(seed), pause, sleep)


def _status_of(name: str) -> int:
    """Return the status that a fault names, else 0."""
    word, _, number = name.partition(" ")
    is_status = word == "status" and number.isascii() and number.isdigit() and len(number) == 3
    return int(number) if is_status else 0


class FaultyTransport(httpx.BaseTransport):
    """A transport that damages answers; `faulty` makes it.

    It may be used from many threads; which request gets which fault then depends on their order.

    Attributes
    ----------
    injected : list of InjectedFault
        The faults so far, by the number of the request.
    is_active : bool
        Whether faults are injected. If not, requests are neither damaged nor counted.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        schedule: Mapping[int, str],
        drawn: Sequence[str],
        share: float,
        draw: random.Random,
        pause: float,
        sleep: Callable[[float], None],
    ) -> None:
        self.injected: list[InjectedFault] = []
        self.is_active = True
        self._inner, self._schedule, self._drawn = inner, schedule, drawn
        self._share, self._draw = share, draw
        self._pause, self._sleep = pause, sleep
        self._lock = threading.Lock()
        self._requests = 0
        self._bodies: dict[str, list[Body]] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer of the inner transport, or a damaged one, or raise its failure."""
        if not self.is_active or request.method != "POST":
            return self._inner.handle_request(request)
        body = json.loads(request.read())
        with self._lock:
            self._requests += 1
            number = self._requests
            name = self._schedule.get(number, "")
            if self._drawn and self._draw.random() < self._share:
                name = self._draw.choice(self._drawn)
            draw = random.Random(self._draw.random())
            # The bodies of the pull so far, from that of the first page to this one.
            subject = json.dumps({item: body[item] for item in sorted({*body} - {*_MOVES})})
            pages = self._bodies.get(subject, [])
            if body in pages:  # a retry, or a new pull
                pages = pages[: pages.index(body)]
            self._bodies[subject] = pages = [*pages, body]
        made = self._damage(name, request, pages, draw) if name else None
        if made is None:
            return self._inner.handle_request(request)
        with self._lock:
            self.injected.append(InjectedFault(number, str(body.get("type")), name))
            self.injected.sort(key=lambda fault: fault.number)
        if isinstance(made, httpx.TransportError):
            raise made
        return made

    def close(self) -> None:
        """Do nothing: the inner transport or session stays open."""

    def _damage(
        self, name: str, request: httpx.Request, pages: Sequence[Body], draw: random.Random
    ) -> httpx.Response | httpx.TransportError | None:
        """Return a damaged answer, or a failure to raise, or None if the fault is not possible."""
        if name in _OTHER_PAGES:
            return self._ask_other_page(name, request, pages)
        if name == "refused":  # the request does not reach the service
            return httpx.ConnectError("injected fault: refused", request=request)
        if name == "web page" or _status_of(name):
            page = {"html": "<!DOCTYPE html><html>Just a moment...</html>"}
            fault: dict[str, Any] = {"json": {"error": f"injected fault: {name}"}}
            return httpx.Response(_status_of(name) or 200, **(fault if _status_of(name) else page))
        answer = self._ask(request, pages[-1])
        content = b"".join(answer.iter_raw())
        if answer.status_code != 200 or len(content) < _SHORTEST:
            return None
        if error_type := _BREAKS.get(name):
            error = error_type(f"injected fault: {name}", request=request)
            return error if name == "reset" else _streamed(answer, _broken_off(content, error))
        is_binary = "json" not in answer.headers.get("content-type", "")
        changed = _change_content(name, content, draw, is_binary=is_binary)
        pieces = self._pieces(content) if name == "slow" else changed and [changed]
        return _streamed(answer, pieces) if pieces else None

    def _ask_other_page(
        self, name: str, request: httpx.Request, pages: Sequence[Body]
    ) -> httpx.Response | None:
        """Return another page than the requested one, or None if there is no other page."""
        if name != "page dropped":
            others = pages[-2:-1] if name == "page repeated" else pages[:-1][:1]
            return self._ask(request, others[0]) if others else None
        body = pages[-1]
        found = _decode_rows(b"".join(self._ask(request, body).iter_raw()))
        if found is None or not body.keys() & {*_MOVES}:
            return None
        last, moved = found[1][-1], {name: body[name] for name in body if name != "cursor"}
        for field_name in _TIMES:
            if field_name in last:
                moved |= {"startTime": last[field_name] + 1}
        if "week" in last:
            moved |= {"endTime": last["week"] - 1}
        return self._ask(request, moved)

    def _ask(self, request: httpx.Request, body: Body) -> httpx.Response:
        """Send another body in the place of a request; the answer is not compressed."""
        headers = {**request.headers, "accept-encoding": "identity"}
        del headers["content-length"]
        sent = httpx.Request(
            request.method, request.url, headers=headers, json=body, extensions=request.extensions
        )
        answer = self._inner.handle_request(sent)
        return _streamed(answer, [b"".join(answer.iter_raw())])

    def _pieces(self, content: bytes) -> Iterator[bytes]:
        step = max(1, len(content) // 100)
        for at in range(0, len(content), step):
            self._sleep(self._pause)
            yield content[at : at + step]


class _SessionTransport(httpx.BaseTransport):
    """The way to the service of a session, with its key."""

    def __init__(self, session: Session) -> None:
        self._client = session.client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        dropped = ("host", "authorization", "content-length")
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        url, content = request.url.path, request.read()
        sent = self._client.build_request(request.method, url, headers=headers, content=content)
        answer = self._client.send(sent, stream=True)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=answer.stream)


def _streamed(answer: httpx.Response, pieces: Iterable[bytes]) -> httpx.Response:
    """Return an answer with another body, and without headers that state its length."""
    # The answer was requested without compression; only a snapshot is compressed nevertheless.
    dropped = ("content-length", "transfer-encoding")
    headers = [(name, value) for name, value in answer.headers.items() if name not in dropped]
    return httpx.Response(answer.status_code, headers=headers, content=pieces)


def _broken_off(content: bytes, error: httpx.TransportError) -> Iterator[bytes]:
    """Yield the first half of a body, then raise."""
    yield content[: len(content) // 2]
    raise error


def _decode_rows(content: bytes) -> tuple[Any, list[Any]] | None:
    """Return an answer and the longest list of objects in it, or None if there is none."""
    try:
        answer = json.loads(content)
    except ValueError:
        return None
    lists: list[list[Any]] = []
    waiting = [answer]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            lists.append(value)
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            waiting += [child for child in children if isinstance(child, dict | list)]
    return (answer, max(lists, key=len)) if lists else None


def _change_content(
    name: str, content: bytes, draw: random.Random, *, is_binary: bool
) -> bytes | None:
    """Return a damaged body, or None if the fault is not possible."""
    if name == "short":
        return content[: len(content) // 2]
    if name == "flipped byte":
        changed = bytearray(content)
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    if name == "invalid utf-8" and not is_binary:
        letters = [place for place, byte in enumerate(content) if chr(byte).isalpha()]
        at = draw.choice(letters or [0])
        return content[:at] + b"\xff" + content[at + 1 :]
    found = None if is_binary else _decode_rows(content)
    if found is None or (name in ("rows swapped", "page cut") and len(found[1]) < _PAIR):
        return None
    answer, rows = found
    at = draw.randrange(len(rows))
    match name:
        case "row dropped":
            del rows[at]
        case "row doubled":
            rows.insert(at, rows[at])
        case "rows swapped":
            other = draw.choice([row for row in range(len(rows)) if row != at])
            rows[at], rows[other] = rows[other], rows[at]
        case "page empty":
            rows.clear()
        case "page cut":
            del rows[draw.randrange(1, len(rows)) :]
        case "page doubled":
            rows += rows
        case "wrong type" | "null":
            row, value = rows[at], None if name == "null" else {"injected": "fault"}
            row[draw.choice(sorted(row))] = value
    return json.dumps(answer).encode()
