"""The running clock: documents that change after the end of the history.

A simulated exchange goes on from the last state in the store (`read_last_state`). The documents of
its new states (`LiveDocuments`) replace those of the store.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toolkit.contract.source_tables import LiveTables, Sources
from toolkit.service import answer_documents
from toolkit.service.store import Store

_FEEDS: Final[dict[str, tuple[str, Any]]] = {
    "depth time": ("depth", answer_documents.depth_documents),
    "depth": ("depth", answer_documents.depth_documents),
    "depth of": ("depth", answer_documents.depth_documents),
    "account values at": ("account_values", answer_documents.account_value_documents),
    "account values": ("account_values", answer_documents.account_value_documents),
    "twaps at": ("twaps", answer_documents.twap_documents),
    "twaps": ("twaps", answer_documents.twap_documents),
    "auctions": ("auctions", answer_documents.auction_documents),
}
"""Kind of a document that changes -> method of `LiveTables`, and function that writes its state."""


class LiveDocuments:
    """The documents that change while the clock runs.

    Parameters
    ----------
    live : LiveTables
        Returns the state of the exchange at a time.
    """

    def __init__(self, live: LiveTables) -> None:
        self._live = live
        self._written: dict[str, tuple[Any, list[answer_documents.Document]]] = {}

    def documents(self, kind: str, now_ms: int) -> Mapping[str, bytes] | None:
        """Return the documents of a kind by key, or None if this kind never changes."""
        if kind not in _FEEDS:
            return None
        name, write = _FEEDS[kind]
        state, written = getattr(self._live, name)(now_ms), self._written.get(name)
        if written is None or written[0] is not state:  # they are written anew after a change
            # One assignment: concurrent requests see the old pair or the new one.
            written = self._written[name] = (state, list(write(state)))
        return {key: text for other, key, text in written[1] if other == kind}


def read_last_state(store: Store) -> Sources:
    """Return the depth, the snapshots and the auctions of a store, and no other table.

    Raises
    ------
    ValueError
        If the store has no depth or no snapshots.
    """
    about, data = store.about, store.compressed_document("last state")
    if data is None:
        raise ValueError("the store has no depth or no snapshots, so the clock cannot run on")
    state = msgspec.msgpack.decode(data, type=answer_documents.LastState)
    depth, values, twaps, auctions = state
    return Sources(
        start_ms=about["start_ms"],
        now_ms=about["now_ms"],
        label=about["label"],
        simulated=about["simulated"],
        depth=depth,
        account_snapshots=[values],
        twap_snapshots=[twaps],
        auctions=auctions,
    )
