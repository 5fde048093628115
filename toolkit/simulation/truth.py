"""What tables must add up to: the exchange's own sums, for tests to compare with."""

from dataclasses import dataclass
from decimal import Decimal

from toolkit.simulation.exchange import Exchange
from toolkit.simulation.holdings import Holding
from toolkit.simulation.markets import DEXES
from toolkit.simulation.quantities import MICRO, WEI

__all__ = ["TokenTruth", "Truth", "truth_of"]


@dataclass(frozen=True, slots=True)
class TokenTruth:
    """What an account's tables must add up to in one token of its spot wallet.

    ``balance == ledger + traded - fees - gas``, exactly; at the start everything is 0.
    """

    balance: Decimal
    ledger: Decimal
    traded: Decimal
    fees: Decimal
    gas: Decimal
    staked: Decimal


@dataclass(frozen=True, slots=True)
class Truth:
    """What the tables of a perp account, over all its dexes, must add up to, in dollars.

    ``equity_end == ledger + closed_pnl + funding - fees + unrealised``, exactly; at the start
    everything is 0. `tokens` is the same for the spot wallet, by token.
    """

    equity_start: Decimal
    equity_end: Decimal
    closed_pnl: Decimal
    funding: Decimal
    fees: Decimal
    ledger: Decimal
    unrealised: Decimal
    tokens: dict[str, TokenTruth]


def truth_of(exchange: Exchange, who: int) -> Truth:
    """Give the truth of one account, by its number."""
    totals = exchange.totals[who]
    unrealised = sum(exchange.unrealised(who, dex) for dex in range(len(DEXES)))
    return Truth(
        equity_start=Decimal(0),
        equity_end=_scaled(sum(exchange.balances[who]) + unrealised, MICRO),
        closed_pnl=_scaled(totals.closed, MICRO),
        funding=_scaled(totals.funding, MICRO),
        fees=_scaled(totals.fees, MICRO),
        ledger=_scaled(totals.ledger, MICRO),
        unrealised=_scaled(unrealised, MICRO),
        tokens={token: _token_truth(kept) for token, kept in exchange.wallets[who].items()},
    )


def _token_truth(kept: Holding) -> TokenTruth:
    return TokenTruth(
        balance=_scaled(kept.balance, WEI),
        ledger=_scaled(kept.ledger, WEI),
        traded=_scaled(kept.traded, WEI),
        fees=_scaled(kept.fees, WEI),
        gas=_scaled(kept.gas, WEI),
        staked=_scaled(kept.staked, WEI),
    )


def _scaled(units: int, decimals: int) -> Decimal:
    return Decimal(units).scaleb(-decimals)
