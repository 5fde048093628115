"""The handlers of all operations, by topic.

A handler has the name of the operation's fetch function. It takes the store and a checked request,
and returns the text of an answer in JSON, or a response.
"""

from collections.abc import Callable
from typing import Final

from toolkit.contract.dexes import canonical_dex
from toolkit.contract.operations import EXTRA_OPERATIONS, OPERATIONS
from toolkit.service.answers import accounts, fills, market, orders, profiles, snapshots, trades
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.store import Store

Handler = Callable[[Store, CheckedRequest], bytes | Response]

_TOPICS = (accounts, fills, market, orders, profiles, snapshots, trades)

# ASSUMED: For an unknown dex, `meta` returns an empty `universe`, not an error.
_DOCUMENTS: Final = {
    "meta": ("meta", "dex", b'{"universe":[]}'),
    "perpDexLimits": ("limits", "dex", b"null"),
    "spotMeta": ("spot meta", "", b'{"universe":[],"tokens":[]}'),
    "spotMetaAndAssetCtxs": ("spot contexts", "", b'[{"universe":[],"tokens":[]},[]]'),
    "perpDexs": ("perp dexes", "", b"[null]"),
    "allMids": ("mids", "dex", b"{}"),
    "outcomeMeta": ("outcome meta", "", b'{"outcomes":[],"questions":[]}'),
    "borrowLendUserState": (
        "borrow lend",
        "user",
        b'{"tokenToState":[],"health":"healthy","healthFactor":null}',
    ),
    "spotClearinghouseState": ("spot state", "user", accounts.NO_BALANCES),
    "userVaultEquities": ("vault equities", "user", b"[]"),
    "userRole": ("role", "user", b'{"role":"missing"}'),
    "userAbstraction": ("mode", "user", b'"default"'),
    "delegations": ("delegations", "user", b"[]"),
    "delegatorSummary": (
        "stake",
        "user",
        b'{"delegated":"0.0","undelegated":"0.0","totalPendingWithdrawal":"0.0",'
        b'"nPendingWithdrawals":0}',
    ),
    "delegatorHistory": ("stake events", "user", b"[]"),
    "delegatorRewards": ("stake rewards", "user", b"[]"),
    # No user here has a named agent or a multi-signature account.
    "extraAgents": ("agents", "user", b"[]"),
    "userToMultiSigSigners": ("signers", "user", b"null"),
}
"""Type of an operation that returns a document -> its kind, the parameter that is its key (empty if
there is one document), and the answer if there is no document."""


def _find_document(store: Store, request: CheckedRequest) -> bytes:
    """Return the document that answers a request."""
    kind, parameter, missing = _DOCUMENTS[request.operation.type]
    key = request[parameter] if parameter else ""
    return store.document(kind, canonical_dex(key) if parameter == "dex" else key) or missing


HANDLERS: Final[dict[str, Handler]] = dict.fromkeys(_DOCUMENTS, _find_document) | {
    type: getattr(topic, operation.function)
    for type, operation in (OPERATIONS | EXTRA_OPERATIONS).items()
    for topic in _TOPICS
    if hasattr(topic, operation.function)
}
"""Type of an operation -> its handler."""
