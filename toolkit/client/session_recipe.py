"""The recipe of a session: how another process makes a session like it, without the key.

A session has a key, sockets and locks, and cannot be pickled; its recipe can. In the process of the
session the recipe returns that very session. In any other process it makes one session, with the
key from the environment there.
"""

import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from toolkit.contract.apis import SERVICE
from toolkit.errors import NotConnected

if TYPE_CHECKING:
    from toolkit.client.session import Session


@dataclass(frozen=True, slots=True)
class Recipe:
    """Makes a session in the process where it is unpickled.

    Attributes
    ----------
    make : callable
        The function that makes the session; it is pickled by its name.
    arguments : mapping
        The arguments of that function; never a key.
    needs_key : bool
        Whether the session has a key, so that the other process needs one too.
    """

    make: Callable[..., "Session"]
    arguments: Mapping[str, Any]
    needs_key: bool
    _token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    @property
    def lacks_key(self) -> bool:
        """Whether the environment lacks the key that another process needs."""
        is_at_home = self.arguments.get("base_url", "").lower() in SERVICE.addresses.values()
        names = ("TOOLKIT_API_KEY", "HYDROMANCER_API_KEY")[: 1 + is_at_home]
        return self.needs_key and not any(map(os.environ.get, names))

    def register_session(self, session: "Session") -> None:
        """Register the session of this recipe in this process."""
        _living[self._process_token()] = session

    def get_session(self) -> "Session":
        """Return the session of this recipe; make it if this process has none.

        Raises
        ------
        NotConnected
            If it has to be made and needs a key, and there is no key in the environment.
        """
        living = _living.get(self._process_token())
        if living is not None:
            return living
        if self._process_token() not in _made:
            if self.lacks_key:
                raise NotConnected(
                    "the key is not sent to other processes. Set TOOLKIT_API_KEY in the "
                    "environment of the workers, or use threads"
                )
            _made[self._process_token()] = self.make(**self.arguments, default=False)
        return _made[self._process_token()]

    def _process_token(self) -> tuple[str, int]:
        # A forked child has its parent's memory, but must not use its parent's sockets.
        return self._token, os.getpid()


_living: Final[WeakValueDictionary[tuple[str, int], "Session"]] = WeakValueDictionary()
_made: Final[dict[tuple[str, int], "Session"]] = {}
