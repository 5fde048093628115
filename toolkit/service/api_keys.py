"""API keys, their add-ons and their points.

Specification, "Authentication". A key may be in either of its two headers.
"""

import base64
import contextlib
import hashlib
import threading
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.errors import InvalidKey, RateLimited

_MINUTE = 60_000


class KeysUnreadable(ValueError):
    """A keys file cannot be used. The message contains no secret."""


@dataclass(frozen=True, slots=True)
class AcceptedKey:
    """An API key.

    Parameters
    ----------
    name : str
        Its name in messages.
    secret : str
        The key itself. It is never shown. Empty if only its hash is known.
    add_ons : frozenset of str or "all"
        The add-on operations that it may use.
    points_per_minute : int or None
        Its quota; None for no limit.
    secret_sha256 : str
        The SHA-256 of the secret, in hexadecimal; by default that of `secret`. A hash protects
        only secrets that nobody can guess, such as random ones.
    """

    name: str
    secret: str = field(default="", repr=False)
    add_ons: frozenset[str] | Literal["all"] = "all"
    points_per_minute: int | None = None
    secret_sha256: str = field(default="", repr=False)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the secret."""
        return bytes.fromhex(self.secret_sha256) or hashlib.sha256(self.secret.encode()).digest()


@dataclass(slots=True)
class _Usage:
    """What a key has used: the points of a minute, and the calls of limited operations."""

    minute: int = 0
    points: int = 0
    calls: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Type of an operation with a call limit -> times of its calls, in milliseconds."""


class KeyQuotas:
    """The keys of a service, and the points that they spend in the current minute.

    Examples
    --------
    >>> access = KeyQuotas([AcceptedKey("mine", "s3cret", points_per_minute=10)])
    >>> key = access.find_key({"authorization": "Bearer s3cret"})
    >>> access.charge(key, 10, at_ms=0)
    >>> access.charge(key, 10, at_ms=59_000)
    Traceback (most recent call last):
    toolkit.errors.RateLimited: Rate limit exceeded (status 429). Wait, or give the session ...
    """

    def __init__(self, keys: Iterable[AcceptedKey]) -> None:
        keys = tuple(keys)
        self._keys = {key.digest: key for key in keys}
        self._usage = defaultdict[str, _Usage](_Usage)
        self._requests = Counter[tuple[str, int, str]]()  # by key, day and type
        self._lock = threading.Lock()

    def find_key(self, headers: Mapping[str, str]) -> AcceptedKey:
        """Return the key that a request sends; names in `headers` are in lower case.

        Clients that set no header send the password of an address like http://key:<secret>@host.

        Raises
        ------
        InvalidKey
            If the request sends no key, or an unknown one.
        """
        # The specification leaves open when X-API-Key is accepted. Here both headers are accepted,
        # and Bearer has priority.
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" and (api_key := headers.get("x-api-key", "").strip()):
            secret = api_key
        elif scheme.lower() == "basic":
            # ASSUMED: The local service also accepts the key as the password of HTTP Basic
            # authentication, which is beyond the specification.
            encoded, secret = secret.strip(), ""
            with contextlib.suppress(ValueError):
                secret = base64.b64decode(encoded, validate=True).decode().partition(":")[2]
        elif scheme.lower() != "bearer":
            secret = ""
        # The duration of a look-up by hash reveals nothing about the secret.
        digest = hashlib.sha256(secret.strip().encode("utf-8", "surrogateescape")).digest()
        key = self._keys.get(digest) if secret.strip() else None
        if key is None:
            raise InvalidKey("Invalid API key")
        return key

    def charge(
        self, key: AcceptedKey, points: int, *, at_ms: int, operation: Operation | None = None
    ) -> None:
        """Charge a request to a key; with 0 points, only check that points remain.

        Parameters
        ----------
        key : AcceptedKey
            The key of the request. A key without a quota is never refused.
        points : int
            The points of the request.
        at_ms : int
            The present, in Unix milliseconds.
        operation : Operation, optional
            The requested operation, which may have a call limit.

        Raises
        ------
        RateLimited
            If the key has too few points in this minute, or reached the operation's call limit.
        """
        if key.points_per_minute is None:
            return
        minute = at_ms // _MINUTE
        with self._lock:
            usage = self._usage[key.name]
            if usage.minute != minute:
                usage.minute, usage.points = minute, 0
            # ASSUMED: The quota is for minutes of the clock, from second 0 to second 60. A request
            # that is refused with 429 costs no points.
            if usage.points + max(points, 1) > key.points_per_minute:
                wait = (_MINUTE - at_ms % _MINUTE + 999) // 1000
                raise RateLimited("Rate limit exceeded", retry_after=wait)
            if operation is not None and operation.limit is not None:
                window = operation.limit.seconds * 1_000
                times = [time for time in usage.calls[operation.type] if time > at_ms - window]
                if len(times) >= operation.limit.calls:
                    # Like its points, a refused call does not count.
                    wait = (times[0] + window - at_ms + 999) // 1_000
                    raise RateLimited("Rate limit exceeded", retry_after=wait)
                usage.calls[operation.type] = [*times, at_ms]
            usage.points += points

    def count_request(self, key: AcceptedKey, day: int, type: str) -> None:
        """Count a request of a key; `day` is the number of days since 1970-01-01."""
        with self._lock:
            self._requests[key.name, day, type] += 1

    def requests_since(self, key: AcceptedKey, day: int) -> list[tuple[int, str, int]]:
        """Return day, type and number of the requests of a key from a day on."""
        with self._lock:
            counts = sorted(self._requests.items())
        return [(at, type, n) for (name, at, type), n in counts if name == key.name and at >= day]

    def charge_rows(self, key: AcceptedKey, points: int) -> None:
        """Charge the rows of an answer, in the minute of its request; nothing is refused."""
        with self._lock:
            self._usage[key.name].points += points


class _KeyEntry(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of a keys file."""

    name: str | None = None
    secret: str | None = None
    secret_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{64}$")] | None = None
    add_ons: Literal["all"] | list[str] = []
    points_per_minute: Annotated[int, msgspec.Meta(ge=1)] | None = None


def read_keys(path: Path) -> list[AcceptedKey]:
    """Read a keys file: TOML, ``[[key]]`` with name, secret, add_ons, points_per_minute.

    ``secret_sha256`` replaces secret, so that the file does not contain the key itself.

    Raises
    ------
    KeysUnreadable
        If the file cannot be read, or its content is wrong.
    """
    try:
        text = path.read_text("utf-8")
        entries = tomllib.loads(text).get("key")
    except OSError as error:
        raise KeysUnreadable(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeysUnreadable(f"{path} is not TOML: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise KeysUnreadable(f"{path} has no [[key]]")
    keys = []
    for number, item in enumerate(entries, 1):
        try:
            entry = msgspec.convert(item, _KeyEntry)
            if (entry.secret is None) == (entry.secret_sha256 is None):
                raise ValueError("give either secret or secret_sha256")
            if entry.secret is not None and not (entry.secret.isascii() and entry.secret.strip()):
                raise ValueError("secret must be ASCII text that is not empty")
            known = [operation.type for operation in OPERATIONS.values() if operation.add_on]
            if entry.add_ons != "all" and not set(entry.add_ons) <= set(known):
                raise ValueError(f'add_ons must be "all" or a list of {", ".join(known)}')
        except ValueError as error:
            raise KeysUnreadable(f"{path}: key {number}: {error}") from None
        key = AcceptedKey(
            name=f"key {number}" if entry.name is None else entry.name,
            secret=entry.secret or "",
            add_ons="all" if entry.add_ons == "all" else frozenset(entry.add_ons),
            points_per_minute=entry.points_per_minute,
            secret_sha256=entry.secret_sha256 or "",
        )
        keys.append(key)
    (name, count), *_ = Counter(key.name for key in keys).most_common(1)
    if count > 1:
        raise KeysUnreadable(
            f"{path}: {count} keys have the name {name!r}. Give each key another name"
        )
    if len({key.digest for key in keys}) < len(keys):
        raise KeysUnreadable(f"{path}: two keys have the same secret. Give each key its own")
    return keys
