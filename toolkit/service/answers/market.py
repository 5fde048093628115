"""Answers about markets. Specification, "Market data"."""

from toolkit.contract.dexes import canonical, native_bare
from toolkit.errors import ServiceDown
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store
from toolkit.times import SECOND

__all__ = ["current_depth", "meta", "meta_and_asset_ctxs", "perp_dex_limits", "slippage_history"]


def current_depth(store: Store, asked: Asked) -> Answer:
    """Give the depth of all markets, or of those of a dex."""
    computed = asked.document(store, "depth time")
    if computed is None:
        raise ServiceDown("An internal error occurred")
    # It is computed every second: on a clock that runs, the latest batch is never older.
    time = int(computed) + (asked.now_ms - int(computed)) // SECOND * SECOND
    if asked["dex"] is None:
        markets = asked.document(store, "depth")
    else:
        markets = asked.document(store, "depth of", canonical(asked["dex"]))
    return good(b'{"timestampMs":%d,"data":%b}' % (time, markets or b"[]"))


def meta(store: Store, asked: Asked) -> Answer:
    """Give the perps of a dex; a dex that is not known has none."""
    # ASSUMED: meta of an unknown dex is an empty universe, not an error.
    return good(store.document("meta", canonical(asked["dex"])) or b'{"universe":[]}')


def meta_and_asset_ctxs(store: Store, asked: Asked) -> Answer:
    """Give the perps of a dex with the state of their markets."""
    return good(store.document("contexts", canonical(asked["dex"])) or b'[{"universe":[]},[]]')


def perp_dex_limits(store: Store, asked: Asked) -> Answer:
    """Give the limits of a dex, null if it has none."""
    return good(store.document("limits", canonical(asked["dex"])) or b"null")


def slippage_history(store: Store, asked: Asked) -> Answer:
    """Give samples in a range of time, oldest first."""
    return good(
        store.array(
            "slippage",
            "SELECT row FROM slippage WHERE coin = ? AND amount = ? AND time BETWEEN ? AND ? "
            "ORDER BY time LIMIT ?",
            native_bare(asked["coin"]),
            asked["amount"],
            asked["start"],
            asked.end,
            asked["page_size"],
        )
    )
