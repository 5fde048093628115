"""What a handler is given, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.contract.operations import Operation
from toolkit.contract.requests import parse_cursor

if TYPE_CHECKING:
    from toolkit.service.moving import Moving
    from toolkit.service.store import Store

__all__ = ["Answer", "Asked", "good"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers with names in lower case, and a body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose parameters have been checked.

    Parameters
    ----------
    operation : Operation
        What was asked.
    parameters : mapping
        Python name -> value, every default filled in.
    now_ms : int
        The present of the exchange.
    inclusive : bool
        Whether a cursor's own rows come again.
    moving : Moving, optional
        What moves while the clock runs; without it everything is as the store has it.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    now_ms: int
    inclusive: bool = False
    moving: "Moving | None" = None

    def document(self, store: "Store", kind: str, key: str = "") -> bytes | None:
        """Give a text that is served whole, as it is at the present; None if there is none."""
        moved = self._moved(kind)
        return store.document(kind, key) if moved is None else moved.get(key)

    def keys(self, store: "Store", kind: str) -> list[str]:
        """Give the keys of the texts of a kind, as they are at the present."""
        moved = self._moved(kind)
        return store.keys(kind) if moved is None else list(moved)

    def _moved(self, kind: str) -> Mapping[str, bytes] | None:
        return None if self.moving is None else self.moving.texts(kind, self.now_ms)

    def __getitem__(self, name: str) -> Any:
        """Give a parameter by its Python name."""
        return self.parameters[name]

    @property
    def cursor(self) -> tuple[Any, ...] | None:
        """The key that the cursor names, or None."""
        given = self.parameters["cursor"]
        return None if given is None else parse_cursor(self.operation, given)

    @property
    def from_here(self) -> tuple[str, tuple[Any, ...]]:
        """Where a page of rows with the key (time, transaction) begins: comparison and key."""
        cursor = self.cursor
        return (">=", (self.parameters["start"], 0)) if cursor is None else (self.after, cursor)

    @property
    def after(self) -> str:
        """The SQL comparison between a row's key and the cursor's."""
        return ">=" if self.inclusive else ">"

    @property
    def end(self) -> int:
        """The last time, inclusive; now when it was not given."""
        given: int | None = self.parameters["end"]
        return self.now_ms if given is None else given


def good(content: bytes) -> Answer:
    """Make the answer of a request that went well, of its JSON text."""
    return Answer(200, {"content-type": "application/json"}, content)
