"""One hash for a whole world."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Final

import msgspec

from toolkit.contract.sources import Sources

__all__ = ["digest_of"]

_encode: Final = msgspec.msgpack.Encoder().encode
_ROWS: Final = 1_000


def digest_of(sources: Sources) -> str:
    """Hash every table, row by row, as its records would be written.

    Parameters
    ----------
    sources : Sources
        The tables.

    Returns
    -------
    str
        SHA-256, 64 hexadecimal digits.
    """
    total = sha256()
    for name, rows in _tables(sources):
        total.update(name.encode())
        several = iter(rows)
        while part := list(islice(several, _ROWS)):
            # Many at once, for speed: the head of their array is not hashed, only they are.
            total.update(memoryview(_encode(part))[len(_encode([None] * len(part))) - len(part) :])
    return total.hexdigest()


def _tables(sources: Sources) -> Iterator[tuple[str, Iterable[object]]]:
    """Give every table with its name; mappings in the order of their keys."""
    yield "span", (sources.start_ms, sources.now_ms)
    yield "fills", sources.fills
    yield "funding", sources.funding
    yield "ledger", sources.ledger
    yield "orders", sources.orders
    yield "approvals", sources.approvals
    yield "slippage", sources.slippage
    yield "metas", sorted(sources.metas.items())
    yield "contexts", sorted(sources.contexts.items())
    yield "depth", (sources.depth,)
    for dex, states in sorted(sources.states.items()):
        yield f"states {dex}", sorted(states.items())
    yield "unavailable", sorted(sources.unavailable)
    yield "limits", sorted(sources.limits.items())
    yield "auctions", sources.auctions
    for account_snapshot in sources.account_snapshots:
        yield account_snapshot.snapshot_id, sorted(account_snapshot.values.items())
    for twap_snapshot in sources.twap_snapshots:
        yield twap_snapshot.snapshot_id, sorted(twap_snapshot.twaps.items())
    yield "borrow and lend", sorted(sources.borrow_lend.items())
    yield "delegations", sorted(sources.delegations.items())
    yield "rewards", sources.rewards
    yield "spot meta", (sources.spot_meta,)
    yield "spot contexts", sources.spot_contexts
    yield "spot states", sorted(sources.spot_states.items())
    yield "outcome meta", (sources.outcome_meta,)
    yield "perp dexes", sources.perp_dexes
    yield "funding rates", sorted(sources.funding_rates.items())
    yield "books", sorted(sources.books.items())
    yield "stakes", sorted(sources.stakes.items())
    yield "stake events", sorted(sources.stake_events.items())
    yield "stake rewards", sorted(sources.stake_rewards.items())
    yield "vault equities", sorted(sources.vault_equities.items())
    yield "sub-accounts", sorted(sources.sub_accounts.items())
    yield "roles", sorted(sources.roles.items())
    yield "fees", sorted(sources.fees.items())
    yield "valuations", sorted(sources.valuations.items())
