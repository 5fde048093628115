"""The running clock: documents that change after the end of the history.

A simulated exchange goes on from the last state in the store (`read_last_state`). The documents of
its new states (`LiveDocuments`) replace those of the store.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import zstandard

from toolkit.contract.dexes import canonical_dex
from toolkit.contract.records import (
    AccountValueRow,
    BranchMargin,
    Depth,
    MarketDepth,
    SnapshotMetadata,
    TwapRow,
)
from toolkit.contract.source_tables import (
    AccountSnapshot,
    Auction,
    LiveTables,
    Sources,
    TwapSnapshot,
)
from toolkit.service.answer_documents import (
    Document,
    account_value_documents,
    auction_documents,
    depth_documents,
    twap_documents,
)
from toolkit.service.store import Store

__all__ = ["LiveDocuments", "read_last_state"]


class LiveDocuments:
    """The documents that change while the clock runs.

    Parameters
    ----------
    live : LiveTables
        Returns the state of the exchange at a time.
    """

    def __init__(self, live: LiveTables) -> None:
        depth = _Feed(live.depth, depth_documents)
        values = _Feed(live.account_values, account_value_documents)
        twaps = _Feed(live.twaps, twap_documents)
        self._feeds = {
            "depth time": depth,
            "depth": depth,
            "depth of": depth,
            "account values at": values,
            "account values": values,
            "twaps at": twaps,
            "twaps": twaps,
            "auctions": _Feed(live.auctions, auction_documents),
        }

    def documents(self, kind: str, now_ms: int) -> Mapping[str, bytes] | None:
        """Return the documents of a kind by key, or None if this kind never changes."""
        feed = self._feeds.get(kind)
        if feed is None:
            return None
        return {key: text for name, key, text in feed.at(now_ms) if name == kind}


class _Feed:
    """The documents of one changing state; they are written anew only when it has changed."""

    def __init__(
        self, state_at: Callable[[int], Any], write: Callable[[Any], Iterable[Document]]
    ) -> None:
        self._state_at = state_at
        self._write = write
        self._last: tuple[Any, list[Document]] | None = None

    def at(self, now_ms: int) -> list[Document]:
        state, last = self._state_at(now_ms), self._last
        if last is None or last[0] is not state:
            # One assignment: concurrent requests see the old pair or the new one.
            last = self._last = (state, list(self._write(state)))
        return last[1]


def read_last_state(store: Store) -> Sources:
    """Return the depth, the snapshots and the auctions of a store, and no other table.

    Raises
    ------
    ValueError
        If the store has no depth or no snapshots.
    """
    about = store.about
    return Sources(
        start_ms=about["start_ms"],
        now_ms=about["now_ms"],
        label=about["label"],
        simulated=about["simulated"],
        depth=Depth(
            timestamp_ms=int(_required_document(store, "depth time")),
            data=msgspec.json.decode(_required_document(store, "depth"), type=list[MarketDepth]),
        ),
        account_snapshots=[_read_account_snapshot(store)],
        twap_snapshots=[_read_twap_snapshot(store)],
        auctions=[
            auction
            for kind in store.document_keys("auctions")
            for auction in msgspec.json.decode(
                _required_document(store, "auctions", kind), type=list[Auction]
            )
        ],
    )


def _read_account_snapshot(store: Store) -> AccountSnapshot:
    snapshot_id, time = _read_metadata(store, "account values at")
    values = {}
    for key in store.document_keys("account values"):
        dex, _, token = key.partition(":")
        users = _unpack_snapshot(store, "account values", key)
        values[canonical_dex(dex), token] = [
            _account_row(snapshot_id, token, user, numbers) for user, numbers in users.items()
        ]
    return AccountSnapshot(snapshot_id, time, values)


def _account_row(snapshot_id: str, token: str, user: str, numbers: list[Any]) -> AccountValueRow:
    value, long, short, is_unified, mode, *portfolio = numbers
    ratio, branches, total = portfolio or (None, None, None)
    return AccountValueRow(
        snapshot_id=snapshot_id,
        collateral_token=token,
        user=user,
        account_value=value,
        total_long_notional=long,
        total_short_notional=short,
        is_unified=is_unified,
        account_mode=mode,
        pm_ratio=ratio,
        pm_avail_by_branch=branches
        and [BranchMargin(token=token, available=available) for token, available in branches],
        pm_total_account_value=total,
    )


def _read_twap_snapshot(store: Store) -> TwapSnapshot:
    snapshot_id, time = _read_metadata(store, "twaps at")
    names = [field.name for field in msgspec.structs.fields(TwapRow)][2:]
    twaps = {
        market: [
            TwapRow(snapshot_id=snapshot_id, market=market, **dict(zip(names, values, strict=True)))
            for values in _unpack_snapshot(store, "twaps", market)
        ]
        for market in store.document_keys("twaps")
    }
    return TwapSnapshot(snapshot_id, time, twaps)


def _unpack_snapshot(store: Store, kind: str, key: str) -> Any:
    """Return the rows of a packed snapshot, which follow its id and its name."""
    packed = zstandard.ZstdDecompressor().decompress(_required_document(store, kind, key))
    return msgspec.msgpack.decode(packed)[2]


def _read_metadata(store: Store, kind: str) -> tuple[str, int]:
    metadata = msgspec.json.decode(_required_document(store, kind), type=SnapshotMetadata)
    return metadata.snapshot_id, metadata.timestamp * 1000


def _required_document(store: Store, kind: str, key: str = "") -> bytes:
    text = store.document(kind, key)
    if text is None:
        raise ValueError(f"the store has no {kind.removesuffix(' at')}, so the clock cannot run on")
    return text
