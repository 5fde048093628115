"""What a store shows of the present, read back into records: a running clock goes on from it."""

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
from toolkit.contract.sources import AccountSnapshot, Auction, Sources, TwapSnapshot
from toolkit.service.store import Store

__all__ = ["latest_of"]


def latest_of(store: Store) -> Sources:
    """Give the depth, the snapshots and the auctions of a store, and no other table.

    Raises
    ------
    ValueError
        If it has no depth, or no snapshots.
    """
    about = store.about
    return Sources(
        start_ms=about["start_ms"],
        now_ms=about["now_ms"],
        label=about["label"],
        simulated=about["simulated"],
        depth=_depth(store),
        account_snapshots=[_account_values(store)],
        twap_snapshots=[_twaps(store)],
        auctions=[
            auction
            for kind in store.keys("auctions")
            for auction in msgspec.json.decode(_needed(store, "auctions", kind), type=list[Auction])
        ],
    )


def _depth(store: Store) -> Depth:
    return Depth(
        timestamp_ms=int(_needed(store, "depth time")),
        data=msgspec.json.decode(_needed(store, "depth"), type=list[MarketDepth]),
    )


def _account_values(store: Store) -> AccountSnapshot:
    snapshot_id, time = _published(store, "account values at")
    values = {}
    for key in store.keys("account values"):
        dex, _, token = key.partition(":")
        users = _unpacked(store, "account values", key)
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


def _twaps(store: Store) -> TwapSnapshot:
    snapshot_id, time = _published(store, "twaps at")
    names = [field.name for field in msgspec.structs.fields(TwapRow)][2:]
    twaps = {
        market: [
            TwapRow(snapshot_id=snapshot_id, market=market, **dict(zip(names, values, strict=True)))
            for values in _unpacked(store, "twaps", market)
        ]
        for market in store.keys("twaps")
    }
    return TwapSnapshot(snapshot_id, time, twaps)


def _unpacked(store: Store, kind: str, key: str) -> Any:
    """Give what a packed snapshot holds behind its id and its name."""
    packed = zstandard.ZstdDecompressor().decompress(_needed(store, kind, key))
    return msgspec.msgpack.decode(packed)[2]


def _published(store: Store, kind: str) -> tuple[str, int]:
    found = msgspec.json.decode(_needed(store, kind), type=SnapshotMetadata)
    return found.snapshot_id, found.timestamp * 1000


def _needed(store: Store, kind: str, key: str = "") -> bytes:
    text = store.document(kind, key)
    if text is None:
        raise ValueError(f"there is no {kind.removesuffix(' at')} from which a clock could run on")
    return text
