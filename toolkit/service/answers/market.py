"""Answers about markets. Specification, "Market data"."""

from toolkit.contract.dexes import canonical, coin_dex, join
from toolkit.service.asked import Answer, Asked, good
from toolkit.service.store import Store

__all__ = ["meta", "slippage_history"]


def meta(store: Store, asked: Asked) -> Answer:
    """Give the perps of a dex; a dex that is not known has none."""
    # ASSUMED: meta of an unknown dex is an empty universe, not an error.
    return good(store.document("meta", canonical(asked["dex"])) or b'{"universe":[]}')


def slippage_history(store: Store, asked: Asked) -> Answer:
    """Give samples in a range of time, oldest first."""
    return good(
        store.array(
            "SELECT json FROM slippage WHERE coin = ? AND amount = ? AND time BETWEEN ? AND ? "
            "ORDER BY time LIMIT ?",
            _named(asked["coin"]),
            asked["amount"],
            asked["start"],
            asked.end,
            asked["page_size"],
        )
    )


def _named(coin: str) -> str:
    """Name a coin as it is stored, whichever name of the native dex stands in front."""
    dex = coin_dex(coin)
    return join(dex, coin.removeprefix(f"{dex}:")) if dex else coin
