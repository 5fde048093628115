"""Hourly funding: what longs and shorts pay each other."""

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.contract.records import FundingDelta, FundingRow
from toolkit.simulation.exchange import DEX_OF, Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.prices import RATE_DECIMALS
from toolkit.simulation.quantities import money, text

__all__ = ["ZERO_HASH", "FundingHour", "settled"]

ZERO_HASH = "0x" + "0" * 64
_FINER = 10**RATE_DECIMALS


@dataclass(frozen=True, slots=True)
class FundingHour:
    """The end of an hour of history, by its number."""

    time: int
    number: int

    def happen(self, floor: Floor) -> None:
        """Pay the hour's funding."""
        _pay(floor.exchange, self.number, self.time)


def _pay(exchange: Exchange, hour: int, time: int) -> None:
    """Pay one hour's funding on every position, and write its rows by user and coin."""
    rows: list[FundingRow] = []
    for coin, book in enumerate(exchange.positions):
        oracle = int(exchange.prices.oracle[coin, hour])
        rate = int(exchange.prices.rate[coin, hour])
        due = {who: -size * oracle * rate for who, (size, _) in book.items()}
        rows += _paid(exchange, coin, settled(due), text(rate, RATE_DECIMALS), time)
    rows.sort(key=_user_and_coin)
    exchange.funding.extend(rows)


def settled(due: dict[int, int]) -> dict[int, int]:
    """Round payments that sum to zero so that they still do.

    Each is rounded down to a whole micro-dollar; what that leaves over goes, one each, to
    those who lost most by it (the method of largest remainders), so that no payment is off
    by a micro-dollar.

    Parameters
    ----------
    due : dict of int to int
        Account -> exact payment, in units of ``10**-(MICRO + RATE_DECIMALS)``.

    Returns
    -------
    dict of int to int
        Account -> payment in micro-dollars.

    Examples
    --------
    >>> settled({1: 15 * 10**9, 2: -25 * 10**9, 3: 10**10})
    {1: 2, 2: -3, 3: 1}
    """
    paid = {who: exact // _FINER for who, exact in due.items()}
    lost = sorted((-(exact % _FINER), who) for who, exact in due.items())
    for _, who in lost[: -sum(paid.values())]:
        paid[who] += 1
    return paid


def _paid(
    exchange: Exchange, coin: int, payments: dict[int, int], rate: str, time: int
) -> Iterator[FundingRow]:
    """Book the payments of a perp, and write their rows: most of all rows of a world."""
    name, decimals, dex = PERPS[coin].coin, PERPS[coin].sz_decimals, DEX_OF[coin]
    book, margins = exchange.positions[coin], exchange.margins[coin]
    for who, usdc in payments.items():
        exchange.balances[who][dex] += usdc
        exchange.totals[who].funding += usdc
        if who in margins:
            margins[who] += usdc
        delta = FundingDelta(
            type="funding",
            coin=name,
            usdc=money(usdc),
            szi=text(book[who][0], decimals),
            funding_rate=rate,
        )
        user = exchange.accounts[who].address
        yield FundingRow(user=user, time=time, hash=ZERO_HASH, delta=delta)


def _user_and_coin(row: FundingRow) -> tuple[str, str]:
    return row.user, row.delta.coin
