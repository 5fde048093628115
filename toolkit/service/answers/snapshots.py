"""Answers about snapshots. Specification, "Snapshot endpoints (compressed binary)"."""

from collections.abc import Callable
from typing import Final

from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, join_coin
from toolkit.contract.snapshots import assemble
from toolkit.errors import NotReady
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.store import Store

_Selection = tuple[str | None, str | None]
"""Parts of a name; None: every dex."""

_NO_SNAPSHOTS: Final = "No snapshots are available yet"


def account_value_snapshot_timestamp(store: Store, request: CheckedRequest) -> bytes:
    """Return the id and the time of the latest snapshot of account values."""
    return _require(request.find_document(store, "account values at"))


def perp_twap_snapshot_timestamp(store: Store, request: CheckedRequest) -> bytes:
    """Return the id and the time of the latest snapshot of TWAPs."""
    return _require(request.find_document(store, "twaps at"))


def account_value_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the account values of the requested collateral tokens."""
    return _find_snapshots(
        store,
        request,
        "account values",
        set(map(_token_selection, request["collateral_tokens"])),
        _token_selections,
    )


def perp_twap_snapshots(store: Store, request: CheckedRequest) -> Response:
    """Return the TWAPs of the requested markets."""
    selected = set(map(_market_selection, request["market_names"]))
    return _find_snapshots(store, request, "twaps", selected, _market_selections)


def _find_snapshots(
    store: Store,
    request: CheckedRequest,
    kind: str,
    selected: set[_Selection],
    selections_of: Callable[[str], set[_Selection]],
) -> Response:
    # Go through the documents, not through the patterns: so no document is sent twice, even if
    # two patterns match it, and many patterns take no longer.
    names = [
        name
        for name in request.document_keys(store, kind)
        if not selected.isdisjoint(selections_of(name))
    ]
    # ASSUMED: If no snapshot matches the request, the status is 404, the same as if no snapshot
    # existed.
    blobs = [_require(request.find_document(store, kind, name)) for name in names]
    if not blobs:
        raise NotReady(_NO_SNAPSHOTS)
    headers, content = assemble(blobs)
    return Response(200, {name.lower(): value for name, value in headers.items()}, content)


def _token_selection(pattern: str) -> _Selection:
    """Return what ``ALL``, ``<token>`` or ``<dex>:<token>`` selects."""
    dex, colon, token = pattern.rpartition(":")
    return (canonical_dex(dex) if colon else None), token


def _token_selections(name: str) -> set[_Selection]:
    """Return all selections that contain a document ``dex:token``."""
    dex, _, token = name.partition(":")
    return {(None, "ALL"), (None, token), (dex, token)}


def _market_selection(pattern: str) -> _Selection:
    """Return what a name, ``ALL``, ``ALL:<dex>`` or ``ALL:ALL_DEXES`` selects."""
    first, colon, dex = pattern.partition(":")
    if first == "ALL":
        return "ALL", None if dex == ALL_DEXES else canonical_dex(dex)
    return "", join_coin(first, dex) if colon else pattern


def _market_selections(name: str) -> set[_Selection]:
    """Return all selections that contain a market."""
    return {("ALL", None), ("ALL", coin_dex(name)), ("", name)}


def _require(text: bytes | None) -> bytes:
    if text is None:
        raise NotReady(_NO_SNAPSHOTS)
    return text
