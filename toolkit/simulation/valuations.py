"""What every account was worth while history ran, and what it had earned.

Source of the shape: docs/live_service.md, section 9, ``portfolio``.
"""

from collections import defaultdict
from dataclasses import dataclass

from toolkit.contract.sources import Valuation
from toolkit.rules.closed_pnl import entry_price
from toolkit.simulation.dealing import mark_price
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PAIRS, PERPS
from toolkit.simulation.quantities import MICRO, WEI, money
from toolkit.times import HOUR

__all__ = ["VALUED_MS", "Valuing", "valuations"]

VALUED_MS = 3 * HOUR
"""Time between two valuations."""

_COINS = [perp.coin for perp in PERPS]
_FOLLOWS = {pair.base: _COINS.index(pair.follows) for pair in PAIRS if pair.follows}


@dataclass(frozen=True, slots=True)
class Valuing:
    """The moment of a valuation."""

    time: int

    def happen(self, floor: Floor) -> None:
        """Value every account."""
        exchange = floor.exchange
        gains = _gains(exchange, self.time)
        prices = {base: _price(exchange, coin, self.time) for base, coin in _FOLLOWS.items()}
        for account in exchange.accounts:
            who = account.number
            totals = exchange.totals[who]
            perps = sum(exchange.balances[who]) + gains[who]
            perp_pnl = totals.closed + totals.funding - totals.fees + gains[who]
            spot = _spot_value(floor, who, prices)
            row = Valuation(
                time=self.time,
                account_value=money(perps + spot),
                pnl=money(perp_pnl + spot - floor.spot_flows[who]),
                perp_value=money(perps),
                perp_pnl=money(perp_pnl),
            )
            floor.valuations[who].append(row)


def valuations(floor: Floor) -> dict[str, list[Valuation]]:
    """Return the valuations of every account, by time."""
    return {
        account.address: floor.valuations[account.number] for account in floor.exchange.accounts
    }


def _spot_value(floor: Floor, who: int, prices: dict[str, int]) -> int:
    """Return the value of a spot wallet, and note what came into it without a trade."""
    # ASSUMED: in portfolio, a token that came in without a trade counts at the price of the
    # next valuation, a stablecoin as a dollar, an outcome token as half a dollar.
    value = 0
    for token, holding in floor.exchange.wallets[who].items():
        px = 10**MICRO // 2 if token.startswith("+") else prices.get(token, 10**MICRO)
        value += holding.balance * px // 10**WEI
        moved = holding.ledger - floor.spot_seen[who, token]
        if moved:
            floor.spot_seen[who, token] = holding.ledger
            floor.spot_flows[who] += moved * px // 10**WEI
    return value


def _gains(exchange: Exchange, time: int) -> defaultdict[int, int]:
    """Return each account's unrealised PnL over all perps, in micro-dollars."""
    gains: defaultdict[int, int] = defaultdict(int)
    for coin, book in enumerate(exchange.positions):
        mark = mark_price(exchange, coin, time)
        for who, (size, entry) in book.items():
            gains[who] += size * (mark - entry_price(size, entry))
    return gains


def _price(exchange: Exchange, coin: int, time: int) -> int:
    """Return the mark price of a perp in micro-dollars."""
    return mark_price(exchange, coin, time) * int(10 ** (MICRO - PERPS[coin].px_decimals))
