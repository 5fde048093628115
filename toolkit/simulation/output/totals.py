"""Totals that the tables of a world must add up to, and one hash of all tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Final

import msgspec

from toolkit.contract.source_tables import Sources
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.accounts import TokenBalance
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.markets import DEXES
from toolkit.simulation.quantities import MICRO

_encode: Final = msgspec.msgpack.Encoder().encode
_CHUNK_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ExpectedTokens:
    """The totals of an account's tables in one token of its spot wallet.

    ``balance == ledger + traded - fees - gas``, exactly; at the start everything is 0.
    """

    balance: Decimal
    ledger: Decimal
    traded: Decimal
    fees: Decimal
    gas: Decimal
    staked: Decimal


@dataclass(frozen=True, slots=True)
class ExpectedTotals:
    """The totals of an account's perp tables over all its dexes, in dollars.

    ``equity_end == ledger + closed_pnl + funding - fees + unrealised``, exactly; at the start
    everything is 0. `tokens` has the totals of the spot wallet, by token.
    """

    equity_start: Decimal
    equity_end: Decimal
    closed_pnl: Decimal
    funding: Decimal
    fees: Decimal
    ledger: Decimal
    unrealised: Decimal
    tokens: dict[str, ExpectedTokens]


def expected_totals(exchange: Exchange, account: int) -> ExpectedTotals:
    """Return the totals of one account, by its number, as the exchange has counted them."""
    totals = exchange.totals[account]
    unrealised = sum(exchange.unrealised_pnl(account, dex) for dex in range(len(DEXES)))
    wallet = exchange.wallets[account]
    return ExpectedTotals(
        equity_start=Decimal(0),
        equity_end=_to_decimal(sum(exchange.balances[account]) + unrealised, MICRO),
        closed_pnl=_to_decimal(totals.closed, MICRO),
        funding=_to_decimal(totals.funding, MICRO),
        fees=_to_decimal(totals.fees, MICRO),
        ledger=_to_decimal(totals.ledger, MICRO),
        unrealised=_to_decimal(unrealised, MICRO),
        tokens={token: _expected_tokens(balance) for token, balance in wallet.items()},
    )


def compute_digest(sources: Sources) -> str:
    """Return a hash of every table, row by row, as its records would be written.

    - ``sources``: the tables

    Returns: SHA-256, 64 hexadecimal digits.
    """
    digest = sha256()
    for name, rows in _iterate_tables(sources):
        digest.update(name.encode())
        remaining = iter(rows)
        while chunk := list(islice(remaining, _CHUNK_ROWS)):
            # Many rows are encoded at once, for speed. The header of their array is not hashed.
            header = len(_encode([None] * len(chunk))) - len(chunk)
            digest.update(memoryview(_encode(chunk))[header:])
    return digest.hexdigest()


def _expected_tokens(balance: TokenBalance) -> ExpectedTokens:
    return ExpectedTokens(
        balance=_to_decimal(balance.balance, WEI),
        ledger=_to_decimal(balance.ledger, WEI),
        traded=_to_decimal(balance.traded, WEI),
        fees=_to_decimal(balance.fees, WEI),
        gas=_to_decimal(balance.gas, WEI),
        staked=_to_decimal(balance.staked, WEI),
    )


def _to_decimal(units: int, decimals: int) -> Decimal:
    return Decimal(units).scaleb(-decimals)


def _iterate_tables(sources: Sources) -> Iterator[tuple[str, Iterable[object]]]:
    """Yield every table with its name; mappings in the order of their keys."""
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
    yield "lend interest", sorted(sources.lend_interest.items())
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
