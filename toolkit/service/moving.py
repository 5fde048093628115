"""What moves while the clock runs: texts that stand in place of the store's."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolkit.contract.sources import Live
from toolkit.service.documents import (
    Document,
    account_value_texts,
    auction_texts,
    depth_texts,
    twap_texts,
)

__all__ = ["Moving"]


class Moving:
    """The texts that a running clock changes.

    Parameters
    ----------
    live : Live
        What there is at a moment.
    """

    def __init__(self, live: Live) -> None:
        depth = _Part(live.depth, depth_texts)
        values = _Part(live.account_values, account_value_texts)
        twaps = _Part(live.twaps, twap_texts)
        self._parts = {
            "depth time": depth,
            "depth": depth,
            "depth of": depth,
            "account values at": values,
            "account values": values,
            "twaps at": twaps,
            "twaps": twaps,
            "auctions": _Part(live.auctions, auction_texts),
        }

    def texts(self, kind: str, now_ms: int) -> Mapping[str, bytes] | None:
        """Give the texts of a kind by key, None where the store's do not move."""
        part = self._parts.get(kind)
        if part is None:
            return None
        return {key: text for made, key, text in part.at(now_ms) if made == kind}


class _Part:
    """Makes the texts of one thing, anew only when it has changed."""

    def __init__(
        self, latest: Callable[[int], Any], texts: Callable[[Any], Iterable[Document]]
    ) -> None:
        self._latest = latest
        self._texts = texts
        self._made: tuple[Any, list[Document]] | None = None

    def at(self, now_ms: int) -> list[Document]:
        latest, made = self._latest(now_ms), self._made
        if made is None or made[0] is not latest:
            # One assignment: others who ask at the same time see the old pair or the new one.
            made = self._made = (latest, list(self._texts(latest)))
        return made[1]
