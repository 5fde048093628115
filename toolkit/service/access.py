"""Who may ask: keys, add-ons, points. Specification, "Authentication"; clarifications, "Keys"."""

import base64
import hmac
import threading
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolkit.contract.operations import OPERATIONS, CallLimit, Operation
from toolkit.errors import InvalidKey, RateLimited

__all__ = ["Access", "Key", "KeysUnreadable", "read_keys"]

_MINUTE = 60_000


class KeysUnreadable(ValueError):
    """A keys file that cannot be used; the message says why, without a secret."""


@dataclass(frozen=True, slots=True)
class Key:
    """One API key.

    Parameters
    ----------
    name : str
        What it is called, in messages.
    secret : str
        The key itself; never shown.
    add_ons : frozenset of str or "all"
        Add-on operations that it may use.
    points_per_minute : int or None
        Its quota; None for no limit.
    """

    name: str
    secret: str = field(repr=False)
    add_ons: frozenset[str] | Literal["all"] = "all"
    points_per_minute: int | None = None

    def may(self, operation: Operation) -> bool:
        """Say whether it may use an operation."""
        return not operation.add_on or self.add_ons == "all" or operation.type in self.add_ons


@dataclass(slots=True)
class _Spent:
    minute: int = 0
    points: int = 0
    calls: dict[str, list[int]] = field(default_factory=dict)
    """Type of an operation with a limit of its own -> when it was asked, in milliseconds."""


class Access:
    """The keys of a service, and the points they have spent in the current minute.

    Examples
    --------
    >>> access = Access([Key("mine", "s3cret", points_per_minute=10)])
    >>> key = access.key_of({"authorization": "Bearer s3cret"})
    >>> access.charge(key, 10, at_ms=0)
    >>> access.charge(key, 10, at_ms=59_000)
    Traceback (most recent call last):
    toolkit.errors.RateLimited: Rate limit exceeded (status 429). Wait, or give the session ...
    """

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)
        self._spent = {key.name: _Spent() for key in self._keys}
        self._lock = threading.Lock()

    def key_of(self, headers: Mapping[str, str]) -> Key:
        """Find the key that a request carries; `headers` has names in lower case.

        Raises
        ------
        InvalidKey
            If it carries none, or one that is not known.
        """
        given = _carried(headers).encode("utf-8", "surrogateescape")
        found = None
        for key in self._keys:
            # Every key is compared, whichever matches: the time taken tells nothing.
            if hmac.compare_digest(given, key.secret.encode()):
                found = key
        if found is None or not given:
            raise InvalidKey("Invalid API key")
        return found

    def charge(
        self, key: Key, points: int, *, at_ms: int, operation: Operation | None = None
    ) -> None:
        """Spend points of a key; 0 asks only whether there are any left.

        Parameters
        ----------
        key : Key
            Who asks; a key without a quota is never refused.
        points : int
            What the request costs.
        at_ms : int
            The present, in milliseconds.
        operation : Operation, optional
            What is asked: it may have a limit of its own.

        Raises
        ------
        RateLimited
            If the key has too few left in this minute, or asked this operation too often.
        """
        if key.points_per_minute is None:
            return
        minute = at_ms // _MINUTE
        with self._lock:
            spent = self._spent[key.name]
            if spent.minute != minute:
                spent.minute, spent.points = minute, 0
            # ASSUMED: the quota counts whole minutes of the clock, and a refused request is free.
            if spent.points + max(points, 1) > key.points_per_minute:
                wait = (_MINUTE - at_ms % _MINUTE + 999) // 1000
                raise RateLimited("Rate limit exceeded", retry_after=wait)
            if operation is not None and operation.limit is not None:
                _count_call(spent.calls.setdefault(operation.type, []), operation.limit, at_ms)
            spent.points += points


def _count_call(asked: list[int], limit: CallLimit, at_ms: int) -> None:
    """Count a call, or refuse it if the limit is reached; `asked` holds the earlier ones."""
    window = limit.seconds * 1_000
    asked[:] = [time for time in asked if at_ms - window < time <= at_ms]
    if len(asked) >= limit.calls:
        # Like points, a refused call does not count.
        wait = (asked[0] + window - at_ms + 999) // 1_000
        raise RateLimited("Rate limit exceeded", retry_after=wait)
    asked.append(at_ms)


def read_keys(path: Path) -> list[Key]:
    """Read a keys file: TOML, ``[[key]]`` with name, secret, add_ons, points_per_minute.

    Raises
    ------
    KeysUnreadable
        If it cannot be read or says something else.
    """
    try:
        text = path.read_text("utf-8")
        entries = tomllib.loads(text).get("key")
    except OSError as error:
        raise KeysUnreadable(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeysUnreadable(f"{path} is no TOML: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise KeysUnreadable(f"{path} has no [[key]]")
    keys = [_key(path, number, entry) for number, entry in enumerate(entries, 1)]
    for what in ("name", "secret"):
        if len({getattr(key, what) for key in keys}) < len(keys):
            raise KeysUnreadable(f"{path}: two keys have the same {what}")
    return keys


def _key(path: Path, number: int, entry: Any) -> Key:
    def refuse(what: str) -> KeysUnreadable:
        return KeysUnreadable(f"{path}: key {number}: {what}")

    if not isinstance(entry, dict):
        raise refuse("is no table")
    if wrong := entry.keys() - {"name", "secret", "add_ons", "points_per_minute"}:
        raise refuse(f"there is no setting {', '.join(sorted(wrong))}")
    name, secret = entry.get("name", f"key {number}"), entry.get("secret")
    if not isinstance(name, str):
        raise refuse("name must be text")
    if not isinstance(secret, str) or not secret.isascii() or not secret.strip():
        raise refuse("secret must be ASCII text that is not empty")
    points = entry.get("points_per_minute")
    if points is not None and (not isinstance(points, int) or points < 1):
        raise refuse("points_per_minute must be a whole number from 1")
    return Key(name, secret, _add_ons(entry.get("add_ons", []), refuse), points)


def _add_ons(given: Any, refuse: Any) -> frozenset[str] | Literal["all"]:
    if given == "all":
        return "all"
    known = [one.type for one in OPERATIONS.values() if one.add_on]
    if not isinstance(given, list) or not all(one in known for one in given):
        raise refuse(f'add_ons must be "all" or a list of {", ".join(known)}')
    return frozenset(given)


def _carried(headers: Mapping[str, str]) -> str:
    # Decided in the clarifications: either header will do, and Bearer wins.
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return secret.strip()
    if named := headers.get("x-api-key", "").strip():
        return named
    return _password(secret.strip()) if scheme.lower() == "basic" else ""


def _password(credentials: str) -> str:
    """Return the password of Basic credentials; empty where they cannot be read.

    Clients that set no header send the password of an address like http://key:<secret>@host.
    """
    # ASSUMED: beyond the specification, the local service takes the key as a Basic password, too.
    try:
        return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
