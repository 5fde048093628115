"""What is served whole, or nearly so: one finished text for each thing that can be asked for."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, dex_name_in
from toolkit.contract.records import AccountValueRow, Depth, SnapshotMetadata, TwapRow
from toolkit.contract.snapshots import AccountValueSnapshot, TwapSnapshot, pack
from toolkit.contract.sources import AccountSnapshot, Auction, Evidence, Sources
from toolkit.contract.sources import TwapSnapshot as TwapsAtOnce
from toolkit.service.validators import weeks

__all__ = [
    "Document",
    "account_value_texts",
    "auction_texts",
    "depth_texts",
    "documents",
    "state_key",
    "twap_texts",
]

Document = tuple[str, str, bytes]
"""Kind, key, text."""

_TWAP_COLUMNS: Final = tuple(one.name for one in msgspec.structs.fields(TwapRow))[2:]


def documents(sources: Sources) -> Iterator[Document]:
    """Give every text of `sources`."""
    yield "dexes", "", encode(_dexes(sources))
    for dex, meta in sources.metas.items():
        yield "meta", dex, encode(meta)
        if dex in sources.contexts:
            yield "contexts", dex, encode([meta, list(sources.contexts[dex])])
    for dex, limits in sources.limits.items():
        yield "limits", dex, encode(limits)
    if sources.depth is not None:
        yield from depth_texts(sources.depth)
    yield from auction_texts(sources.auctions)
    yield from _accounts(sources)
    for validator, entries in weeks(sources.rewards).items():
        yield "weeks", validator, encode(entries)
    if sources.evidence is not None:
        yield from _evidence(sources.evidence)
    if (values := _latest(sources.account_snapshots, sources.now_ms)) is not None:
        yield from account_value_texts(values)
    if (twaps := _latest(sources.twap_snapshots, sources.now_ms)) is not None:
        yield from twap_texts(twaps)


def _evidence(evidence: Evidence) -> Iterator[Document]:
    """Return which requests a partial source answers in full."""
    for name, coverage in evidence.histories.items():
        yield "covered", name, encode(coverage)
    for name, most in evidence.answers.items():
        yield "answered", name, encode(most)


def state_key(dex: str, user: str) -> str:
    """Name the state of an account on a dex."""
    return f"{dex} {user}"


def _dexes(sources: Sources) -> list[str]:
    """List every dex that there is, the native one first."""
    return list(dict.fromkeys(["", *sources.metas, *sources.states]))


def depth_texts(depth: Depth) -> Iterator[Document]:
    """Give the texts of the depth: its time, all markets, and those of each dex."""
    by_dex = defaultdict(list)
    for market in depth.data:
        by_dex[canonical_dex(market.dex)].append(market)
    yield "depth time", "", encode(depth.timestamp_ms)
    yield "depth", "", encode([one for markets in by_dex.values() for one in markets])
    for dex, markets in by_dex.items():
        yield "depth of", dex, encode(markets)


def auction_texts(auctions: Sequence[Auction]) -> Iterator[Document]:
    """Give the texts of the auctions, one for each kind."""
    by_kind = defaultdict(list)
    for one in auctions:
        by_kind[one.kind].append(one)
    for kind, some in by_kind.items():
        yield "auctions", kind, encode(some)


def _accounts(sources: Sources) -> Iterator[Document]:
    for dex, states in sources.states.items():
        for user, state in states.items():
            yield "state", state_key(dex, user), encode(state)
    for user in sources.unavailable:
        yield "unavailable", user, b"null"
    for user, lent in sources.borrow_lend.items():
        yield "borrow lend", user, encode(lent)
    for user, delegations in sources.delegations.items():
        yield "delegations", user, encode(list(delegations))


def _latest(snapshots: Sequence[Any], now_ms: int) -> Any:
    past = [one for one in snapshots if one.time <= now_ms]
    return max(past, key=lambda one: one.time, default=None)


def _metadata(snapshot: AccountSnapshot | TwapsAtOnce) -> bytes:
    return encode(
        SnapshotMetadata(snapshot_id=snapshot.snapshot_id, timestamp=snapshot.time // 1000)
    )


def account_value_texts(snapshot: AccountSnapshot) -> Iterator[Document]:
    """Give the texts of a snapshot of account values: which it is, and one for each token."""
    yield "account values at", "", _metadata(snapshot)
    for (dex, token), rows in snapshot.values.items():
        # Known of the live service: docs/live_service.md, section 8.
        name = f"{dex_name_in('rows', dex)}:{token}"
        users = {row.user: _account_tuple(row) for row in rows}
        packed = pack(AccountValueSnapshot(snapshot.snapshot_id, name, users))
        yield "account values", f"{canonical_dex(dex)}:{token}", packed


def _account_tuple(row: AccountValueRow) -> tuple[Any, ...]:
    usual = (
        row.account_value,
        row.total_long_notional,
        row.total_short_notional,
        row.is_unified,
        row.account_mode,
    )
    if row.pm_ratio is None:
        return usual
    branches = [(one.token, one.available) for one in row.pm_avail_by_branch or ()]
    return *usual, row.pm_ratio, branches, row.pm_total_account_value


def twap_texts(snapshot: TwapsAtOnce) -> Iterator[Document]:
    """Give the texts of a snapshot of TWAPs: which it is, and one for each market."""
    yield "twaps at", "", _metadata(snapshot)
    twaps: Mapping[str, Sequence[TwapRow]] = snapshot.twaps
    for market, rows in twaps.items():
        tuples = [tuple(getattr(row, name) for name in _TWAP_COLUMNS) for row in rows]
        yield "twaps", market, pack(TwapSnapshot(snapshot.snapshot_id, market, tuples))
