"""Answers about markets. Specification, "Market data"."""

import msgspec

from toolkit.contract.answers import encode
from toolkit.contract.dexes import canonical_dex, strip_native_dex
from toolkit.contract.records import FundingRate, L2Book
from toolkit.errors import BadRequest, ServiceDown
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.books import cut, grouped
from toolkit.service.candles import candles
from toolkit.service.store import Store
from toolkit.times import SECOND

__all__ = [
    "all_mids",
    "candle_snapshot",
    "current_depth",
    "exchange_status",
    "funding_history",
    "l2_book",
    "meta",
    "meta_and_asset_ctxs",
    "outcome_meta",
    "perp_dex_limits",
    "perp_dexs",
    "slippage_history",
    "spot_meta",
    "spot_meta_and_asset_ctxs",
]


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
        markets = asked.document(store, "depth of", canonical_dex(asked["dex"]))
    return good(b'{"timestampMs":%d,"data":%b}' % (time, markets or b"[]"))


def meta(store: Store, asked: Asked) -> Answer:
    """Give the perps of a dex; a dex that is not known has none."""
    # ASSUMED: meta of an unknown dex is an empty universe, not an error.
    return good(store.document("meta", canonical_dex(asked["dex"])) or b'{"universe":[]}')


def meta_and_asset_ctxs(store: Store, asked: Asked) -> Answer:
    """Give the perps of a dex with the state of their markets."""
    return good(store.document("contexts", canonical_dex(asked["dex"])) or b'[{"universe":[]},[]]')


def perp_dex_limits(store: Store, asked: Asked) -> Answer:
    """Give the limits of a dex, null if it has none."""
    return good(store.document("limits", canonical_dex(asked["dex"])) or b"null")


def slippage_history(store: Store, asked: Asked) -> Answer:
    """Give samples in a range of time, oldest first."""
    return good(
        store.array(
            "slippage",
            "SELECT row FROM slippage WHERE coin = ? AND amount = ? AND time BETWEEN ? AND ? "
            "ORDER BY time LIMIT ?",
            strip_native_dex(asked["coin"]),
            asked["amount"],
            asked["start"],
            asked.end,
            asked["page_size"],
        )
    )


def spot_meta(store: Store, asked: Asked) -> Answer:
    """Return the tokens and the spot markets."""
    return good(store.document("spot meta") or b'{"universe":[],"tokens":[]}')


def spot_meta_and_asset_ctxs(store: Store, asked: Asked) -> Answer:
    """Return the spot markets with their states."""
    return good(store.document("spot contexts") or b'[{"universe":[],"tokens":[]},[]]')


def perp_dexs(store: Store, asked: Asked) -> Answer:
    """Return the builder-deployed dexes; null stands for the native one."""
    return good(store.document("perp dexes") or b"[null]")


def all_mids(store: Store, asked: Asked) -> Answer:
    """Return the mid price of every market of a dex that has one."""
    return good(store.document("mids", canonical_dex(asked["dex"])) or b"{}")


def funding_history(store: Store, asked: Asked) -> Answer:
    """Return the funding rates of a coin in a range of time, oldest first."""
    # ASSUMED: fundingHistory is never cut here; the exchange's own API returns 500 rows at most.
    text = store.packed("funding rates", strip_native_dex(asked["coin"])) or b"[]"
    rates = msgspec.json.decode(text, type=list[FundingRate])
    return good(encode([rate for rate in rates if asked["start"] <= rate.time <= asked.end]))


def candle_snapshot(store: Store, asked: Asked) -> Answer:
    """Return the candles of a coin in a range of time, oldest first."""
    coin = strip_native_dex(asked["coin"])
    return good(encode(candles(store, coin, asked["interval"], asked["start"], asked.end)))


def l2_book(store: Store, asked: Asked) -> Answer:
    """Return the book of a coin; of a spot market an empty one, and null where there is no book.

    It is that of the end of history, also while the clock runs.
    """
    coin = strip_native_dex(asked["coin"])
    text = store.document("book", coin)
    if text is not None:
        book = grouped(
            msgspec.json.decode(text, type=L2Book), asked["n_sig_figs"], asked["mantissa"]
        )
        return good(encode(cut(book)))
    if not store.about["whole"]:
        raise BadRequest(f"l2Book cannot be answered: {store.about['label']} has no book of {coin}")
    # ASSUMED: a delisted or unknown coin has no book: null, not an error.
    if coin not in msgspec.json.decode(store.document("mids") or b"{}"):
        return good(b"null")
    return good(encode(L2Book(coin=coin, time=asked.now_ms, levels=[[], []])))


def outcome_meta(store: Store, asked: Asked) -> Answer:
    """Return the outcome markets and their questions."""
    return good(store.document("outcome meta") or b'{"outcomes":[],"questions":[]}')


def exchange_status(store: Store, asked: Asked) -> Answer:
    """Return the present time of the exchange; it never has a special state."""
    return good(b'{"time":%d,"specialStatuses":null}' % asked.now_ms)
