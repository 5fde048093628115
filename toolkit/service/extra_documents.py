"""What operations beyond the specification serve whole: a finished text for each thing."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

import zstandard

from toolkit.contract.answers import encode
from toolkit.contract.records import AssetContext, Meta
from toolkit.contract.sources import Sources
from toolkit.service.open_orders import OpenOrders
from toolkit.service.tape import Tape

__all__ = ["extra_documents"]

_MODES: Final = ("default", "dexAbstraction", "unifiedAccount", "portfolioMargin")
"""Account modes of snapshots, as `userAbstraction` names them."""

_TABLES: Final = {
    "spot state": "spot_states",
    "stake": "stakes",
    "stake events": "stake_events",
    "stake rewards": "stake_rewards",
    "vault equities": "vault_equities",
    "sub-accounts": "sub_accounts",
    "role": "roles",
    "fees": "fees",
    "book": "books",
}
"""Kind of text -> the table of `Sources` that has one for each account or coin."""


def extra_documents(
    sources: Sources, tape: Tape, open_orders: OpenOrders
) -> Iterator[tuple[str, str, bytes]]:
    """Yield kind, key and text of everything that is served beyond the specification.

    Parameters
    ----------
    sources : Sources
        The tables.
    tape, open_orders : Tape, OpenOrders
        What was counted while fills and status events went into the store.
    """
    if sources.spot_meta is not None:
        contexts = list(sources.spot_contexts)
        yield "spot meta", "", encode(sources.spot_meta)
        yield "spot contexts", "", encode([sources.spot_meta, contexts])
    if sources.outcome_meta is not None:
        yield "outcome meta", "", encode(sources.outcome_meta)
    if sources.perp_dexes:
        yield "perp dexes", "", encode([None, *sources.perp_dexes])
    for dex, meta in sources.metas.items():
        if dex in sources.contexts:
            yield "mids", dex, encode(_mids(sources, dex, meta))
    compress = zstandard.ZstdCompressor(level=3).compress
    for coin, rates in sources.funding_rates.items():
        yield "funding rates", coin, compress(encode(list(rates)))
    for user, valued in sources.valuations.items():
        rows = [(v.time, v.account_value, v.pnl, v.perp_value, v.perp_pnl) for v in valued]
        yield "valuations", user, compress(encode(rows))
    for kind, name in _TABLES.items():
        table: Mapping[str, Any] = getattr(sources, name)
        for key, entry in table.items():
            yield kind, key, encode(entry)
    for user, orders in open_orders.by_user().items():
        yield "open orders", user, encode(orders)
    for user, requests in open_orders.requests.items():
        yield "requests", user, encode(requests)
    for builder, paid in tape.builder_fees.items():
        yield "builder fees", builder, encode(str(paid))
    yield from _modes(sources)


def _mids(sources: Sources, dex: str, meta: Meta) -> dict[str, str]:
    """Return the mid price of every market of a dex; spot markets are with the native one."""
    contexts: list[AssetContext] = list(sources.contexts[dex])
    pairs = zip_longest(meta.universe, contexts)
    mids = {asset.name: context.mid_px for asset, context in pairs if asset and context}
    if not dex:
        mids |= {context.coin: context.mid_px for context in sources.spot_contexts}
    return {coin: mid for coin, mid in mids.items() if mid is not None}


def _modes(sources: Sources) -> Iterator[tuple[str, str, bytes]]:
    """Yield the account modes of the latest snapshot."""
    snapshots = [one for one in sources.account_snapshots if one.time <= sources.now_ms]
    latest = max(snapshots, key=lambda one: one.time, default=None)
    for rows in latest.values.values() if latest else ():
        for row in rows:
            if 0 < row.account_mode < len(_MODES):
                yield "mode", row.user, encode(_MODES[row.account_mode])
