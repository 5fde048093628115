"""Answers about snapshots. Specification, "Snapshot endpoints (compressed binary)"."""

from typing import Final

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, join_coin
from toolkit.contract.snapshots import assemble
from toolkit.errors import NotReady
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.store import Store

_NO_SNAPSHOTS: Final = "No snapshots are available yet"


def account_value_snapshot_timestamp(store: Store, request: CheckedRequest) -> bytes:
    """Return the id and the time of the latest snapshot of account values."""
    return _require(request.find_document(store, "account values at"))


def perp_twap_snapshot_timestamp(store: Store, request: CheckedRequest) -> bytes:
    """Return the id and the time of the latest snapshot of TWAPs."""
    return _require(request.find_document(store, "twaps at"))


def account_value_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the account values of ``ALL``, ``<token>`` or ``<dex>:<token>``."""
    selected = set()
    for pattern in request["collateral_tokens"]:
        dex, colon, token = pattern.rpartition(":")
        selected.add((canonical_dex(dex) if colon else None, token))
    names = []
    for name in request.document_keys(store, "account values"):
        dex, _, token = name.partition(":")
        if selected & {(None, "ALL"), (None, token), (dex, token)}:
            names.append(name)
    return _send_snapshots(store, request, "account values", names)


def perp_twap_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the TWAPs of markets, ``ALL`` native ones, ``ALL:<dex>`` or ``ALL:ALL_DEXES``."""
    markets, dexes = set(), set()
    for pattern in request["market_names"]:
        first, colon, dex = pattern.partition(":")
        if first == "ALL":
            dexes.add(canonical_dex(dex))
        else:
            markets.add(join_coin(first, dex) if colon else pattern)
    names = [
        name
        for name in request.document_keys(store, "twaps")
        if name in markets or dexes & {ALL_DEXES, coin_dex(name)}
    ]
    return _send_snapshots(store, request, "twaps", names)


def _send_snapshots(store: Store, request: CheckedRequest, kind: str, names: list[str]) -> Response:
    # ASSUMED: If no snapshot matches the request, the status is 404, the same as if no snapshot
    # existed.
    blobs = [_require(request.find_document(store, kind, name)) for name in names]
    if not blobs:
        raise NotReady(_NO_SNAPSHOTS)
    return Response(200, *assemble(blobs))


def _require(text: bytes | None) -> bytes:
    if text is None:
        raise NotReady(_NO_SNAPSHOTS)
    return text
