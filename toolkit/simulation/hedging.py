"""Hedgers: they hold tokens, and are short as much of the perp that follows the same price."""

from dataclasses import dataclass

from toolkit.simulation.accounts import Account
from toolkit.simulation.dealing import best_price, deal, perp_ticket
from toolkit.simulation.draws import stream
from toolkit.simulation.exchange import Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PAIRS, PERPS
from toolkit.simulation.quantities import WEI
from toolkit.simulation.roles import HEDGER
from toolkit.simulation.spotting import SpotIntent
from toolkit.times import HOUR

__all__ = ["HEDGED", "Hedge", "draw_hedges"]

HEDGED = [place for place, pair in enumerate(PAIRS) if pair.follows]
"""Indices of the pairs whose tokens are hedged."""

_COINS = [perp.coin for perp in PERPS]
_TRADES = 8
_BUYS = 0.7


@dataclass(frozen=True, slots=True)
class Hedge:
    """A hedger buys or sells tokens, and brings its short position to the size of the rest."""

    time: int
    account: int
    pair: int
    buys: bool
    share: float

    def happen(self, floor: Floor) -> None:
        """Trade spot first, then the perp."""
        SpotIntent(self.time, self.account, self.pair, self.buys, self.share, 0.0).happen(floor)
        exchange = floor.exchange
        coin = _COINS.index(PAIRS[self.pair].follows)
        change = -_tokens(exchange, self.account, self.pair, coin)
        change -= exchange.position(coin, self.account)
        if not change:
            return
        account = exchange.accounts[self.account]
        px = best_price(exchange, coin, self.time, change > 0)
        ticket = perp_ticket(exchange, account, coin, change, px, self.time)
        deal(floor, exchange.transaction(self.time), coin, ticket)


def draw_hedges(seed: int, start_ms: int, hours: int, accounts: list[Account]) -> list[Hedge]:
    """Draw when hedgers trade, by time: each one pair, more often bought than sold."""
    rng = stream(seed, "hedges")
    hedges = []
    for account in accounts:
        if account.manner != HEDGER:
            continue
        pair = HEDGED[account.number % len(HEDGED)]
        account.coins = [_COINS.index(PAIRS[pair].follows)]
        times = rng.integers(3 * HOUR, hours * HOUR, _TRADES + hours // 24)
        for time, luck, share in zip(
            times.tolist(), rng.random(len(times)), rng.random(len(times)), strict=True
        ):
            share = 0.7 * float(share)  # above, it would sell all it has
            hedge = Hedge(start_ms + time, account.number, pair, bool(luck < _BUYS), share)
            hedges.append(hedge)
    return sorted(hedges, key=_time)


def _tokens(exchange: Exchange, who: int, pair: int, coin: int) -> int:
    """Give the tokens in a wallet, in lots of the perp."""
    balance = exchange.wallets[who][PAIRS[pair].base].balance
    return balance // int(10 ** (WEI - PERPS[coin].sz_decimals))


def _time(hedge: Hedge) -> int:
    return hedge.time
