"""Hourly funding: what longs and shorts pay each other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET, UnsetType

from toolkit.contract.records import FundingDelta, FundingRow
from toolkit.simulation.exchange import DEX_OF, Exchange
from toolkit.simulation.floor import Floor
from toolkit.simulation.markets import PERPS
from toolkit.simulation.prices import RATE_DECIMALS
from toolkit.simulation.quantities import money, text

__all__ = ["OUTAGE", "OUTAGE_DEX", "ZERO_HASH", "FundingHour", "settled"]

ZERO_HASH = "0x" + "0" * 64
_FINER = 10**RATE_DECIMALS


OUTAGE: Final = range(34, 37)
"""Hours of history that one dex pays at the last of them, in one row each."""

OUTAGE_DEX: Final = "pre"
"""The dex whose oracle fails for these hours."""

_NULL_DEX: Final = ""
"""The dex whose rows say null where they stand for one payment; those of others say nothing."""


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
        if not (hours := _paid_hours(PERPS[coin].dex, hour)):
            continue
        # ASSUMED: a row that sums several payments pays each at the rate of the last, on the
        # position of the last and the oracle price of its own hour (docs/live_service.md,
        # section 5).
        oracles = int(exchange.prices.oracle[coin, hours].sum())
        rate = int(exchange.prices.rate[coin, hour])
        due = {who: -size * oracles * rate for who, (size, _) in book.items()}
        samples = len(hours) if len(hours) > 1 else _one_sample(PERPS[coin].dex)
        rows += _paid(exchange, coin, settled(due), text(rate, RATE_DECIMALS), time, samples)
    rows.sort(key=_user_and_coin)
    exchange.funding.extend(rows)


def _paid_hours(dex: str, hour: int) -> list[int]:
    """Return the hours whose payments are due at the end of an hour: mostly this one."""
    if dex != OUTAGE_DEX or hour not in OUTAGE:
        return [hour]
    return list(OUTAGE) if hour == OUTAGE[-1] else []


def _one_sample(dex: str) -> UnsetType | None:
    return None if dex == _NULL_DEX else UNSET


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
    exchange: Exchange,
    coin: int,
    payments: dict[int, int],
    rate: str,
    time: int,
    samples: int | UnsetType | None,
) -> Iterator[FundingRow]:
    """Book the payments of a perp, and write their rows: most of all rows of a world."""
    name, decimals, dex = PERPS[coin].coin, PERPS[coin].sz_decimals, DEX_OF[coin]
    book, margins = exchange.positions[coin], exchange.margins[coin]
    for who, usdc in payments.items():
        exchange.balances[who][dex] += usdc
        exchange.totals[who].funding += usdc
        funded = exchange.funded[coin][who]
        funded.all_time += usdc
        funded.since_open += usdc
        funded.since_change += usdc
        if who in margins:
            margins[who] += usdc
        delta = FundingDelta(
            type="funding",
            coin=name,
            usdc=money(usdc),
            szi=text(book[who][0], decimals),
            funding_rate=rate,
            n_samples=samples,
        )
        user = exchange.accounts[who].address
        yield FundingRow(user=user, time=time, hash=ZERO_HASH, delta=delta)


def _user_and_coin(row: FundingRow) -> tuple[str, str]:
    return row.user, row.delta.coin
