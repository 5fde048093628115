"""Answers about snapshots. Specification, "Snapshot endpoints (compressed binary)"."""

from collections.abc import Callable, Iterable
from typing import Final

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, join_coin
from toolkit.contract.snapshots import assemble
from toolkit.errors import NotReady
from toolkit.service.messages import CheckedRequest, Response, json_response
from toolkit.service.store import Store

__all__ = [
    "account_value_snapshot_timestamp",
    "account_value_snapshots",
    "perp_twap_snapshot_timestamp",
    "perp_twap_snapshots",
]

_NO_SNAPSHOTS: Final = "No snapshots are available yet"


def account_value_snapshot_timestamp(store: Store, request: CheckedRequest) -> Response:
    """Return the id and the time of the latest snapshot of account values."""
    return json_response(_require(request.find_document(store, "account values at")))


def perp_twap_snapshot_timestamp(store: Store, request: CheckedRequest) -> Response:
    """Return the id and the time of the latest snapshot of TWAPs."""
    return json_response(_require(request.find_document(store, "twaps at")))


def account_value_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the account values of the requested collateral tokens."""
    return _find_snapshots(
        store, request, "account values", request["collateral_tokens"], _is_token_match
    )


def perp_twap_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the TWAPs of the requested markets."""
    return _find_snapshots(store, request, "twaps", request["market_names"], _is_market_match)


def _find_snapshots(
    store: Store,
    request: CheckedRequest,
    kind: str,
    patterns: Iterable[str],
    is_match: Callable[[str, str], bool],
) -> Response:
    # Go through the documents, not through the patterns: so no document is sent twice, even if
    # two patterns match it.
    unique_patterns = set(patterns)
    names = [
        name
        for name in request.document_keys(store, kind)
        if any(is_match(pattern, name) for pattern in unique_patterns)
    ]
    # ASSUMED: the status is 404 also if there are snapshots, but none that the request matches.
    blobs = [_require(request.find_document(store, kind, name)) for name in names]
    if not blobs:
        raise NotReady(_NO_SNAPSHOTS)
    headers, content = assemble(blobs)
    return Response(200, {name.lower(): value for name, value in headers.items()}, content)


def _is_token_match(pattern: str, name: str) -> bool:
    """Return whether ``ALL``, ``<token>`` or ``<dex>:<token>`` matches a name ``dex:token``."""
    dex, _, token = name.partition(":")
    pattern_dex, colon, pattern_token = pattern.rpartition(":")
    if not colon:
        return pattern in ("ALL", token)
    return (canonical_dex(pattern_dex), pattern_token) == (dex, token)


def _is_market_match(pattern: str, name: str) -> bool:
    """Return whether a name, ``ALL``, ``ALL:<dex>`` or ``ALL:ALL_DEXES`` matches a market."""
    first, colon, dex = pattern.partition(":")
    if first == "ALL":
        return dex == ALL_DEXES or coin_dex(name) == canonical_dex(dex)
    return name == (join_coin(first, dex) if colon else pattern)


def _require(text: bytes | None) -> bytes:
    if text is None:
        raise NotReady(_NO_SNAPSHOTS)
    return text
