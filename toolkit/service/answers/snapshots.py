"""Answers with snapshots. Specification, "Snapshot endpoints (compressed binary)"."""

from collections.abc import Callable, Iterable

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, join_coin
from toolkit.contract.snapshots import assemble
from toolkit.errors import NotReady
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = [
    "account_value_snapshot_timestamp",
    "account_value_snapshots",
    "perp_twap_snapshot_timestamp",
    "perp_twap_snapshots",
]


def account_value_snapshot_timestamp(store: Store, asked: Asked) -> Answer:
    """Say which snapshot of account values is the latest."""
    return good(_published(asked.document(store, "account values at")))


def perp_twap_snapshot_timestamp(store: Store, asked: Asked) -> Answer:
    """Say which snapshot of TWAPs is the latest."""
    return good(_published(asked.document(store, "twaps at")))


def account_value_snapshots(store: Store, asked: Asked) -> Answer:
    """Give the account values of the collateral tokens that were asked for."""
    return _snapshots(store, asked, "account values", asked["collateral_tokens"], _has_token)


def perp_twap_snapshots(store: Store, asked: Asked) -> Answer:
    """Give the TWAPs of the markets that were asked for."""
    return _snapshots(store, asked, "twaps", asked["market_names"], _has_market)


def _snapshots(
    store: Store,
    asked: Asked,
    kind: str,
    wanted: Iterable[str],
    has: Callable[[str, str], bool],
) -> Answer:
    # What is there is gone through, not what is wanted: nothing can come twice, and a pattern
    # covers the markets that stand beside it.
    patterns = set(wanted)
    found = [
        name for name in asked.keys(store, kind) if any(has(pattern, name) for pattern in patterns)
    ]
    # ASSUMED: 404 also when there are snapshots, but none of what was asked for.
    blobs = [_published(asked.document(store, kind, name)) for name in found]
    if not blobs:
        raise _not_ready()
    headers, content = assemble(blobs)
    return Answer(200, {name.lower(): value for name, value in headers.items()}, content)


def _has_token(pattern: str, name: str) -> bool:
    """Say whether ``dex:token`` is meant by ``ALL``, ``<token>`` or ``<dex>:<token>``."""
    dex, _, token = name.partition(":")
    wanted_dex, colon, wanted_token = pattern.rpartition(":")
    if not colon:
        return pattern in ("ALL", token)
    return (canonical_dex(wanted_dex), wanted_token) == (dex, token)


def _has_market(pattern: str, name: str) -> bool:
    """Say whether a market is meant by its name, ``ALL``, ``ALL:<dex>`` or ``ALL:ALL_DEXES``."""
    every, colon, dex = pattern.partition(":")
    if every == "ALL":
        return dex == ALL_DEXES or coin_dex(name) == canonical_dex(dex)
    return name == (join_coin(every, dex) if colon else pattern)


def _published(text: bytes | None) -> bytes:
    if text is None:
        raise _not_ready()
    return text


def _not_ready() -> NotReady:
    return NotReady("No snapshots are available yet")
