"""Hourly funding payments between longs and shorts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET, UnsetType

from toolkit.contract.records import FundingDelta, FundingRow
from toolkit.rules.funding import ZERO_HASH, round_payments
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.engine.state import SimulationState
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import MICRO, decimal_text, money_text

OUTAGE: Final = range(34, 37)
"""Hours of history that one dex pays together, in one row, at the end of the last hour."""

OUTAGE_DEX: Final = "pre"
"""The dex whose oracle fails in these hours."""

_NULL_DEX: Final = ""
"""The dex whose rows have null for a single payment; rows of other dexes leave the field out."""


@dataclass(frozen=True, slots=True)
class HourlyFunding:
    """The funding payments at the end of an hour of history.

    - ``time``: in milliseconds
    - ``number``: the number of the hour
    """

    time: int
    number: int

    def apply(self, state: SimulationState) -> None:
        """Pay one hour's funding on every position, and write the rows by user and coin."""
        exchange, hour = state.exchange, self.number
        rows: list[FundingRow] = []
        for coin, positions in enumerate(exchange.positions):
            dex = PERPS[coin].dex
            if not (hours := _due_hours(dex, hour)):
                continue
            # ASSUMED: If a funding row sums several payments, all of them use the last rate and the
            # last position. Each payment uses the oracle price of its own hour
            # (docs/live_service.md, section 5).
            oracles = int(exchange.prices.oracle[coin, hours].sum())
            rate = int(exchange.prices.rate[coin, hour])
            due = {account: -size * oracles * rate for account, (size, _) in positions.items()}
            payments = round_payments(due, MICRO + RATE_DECIMALS)
            samples = len(hours) if len(hours) > 1 else None if dex == _NULL_DEX else UNSET
            rate_text = decimal_text(rate, RATE_DECIMALS)
            rows += _book_payments(exchange, coin, payments, rate_text, self.time, samples)
        rows.sort(key=_user_and_coin)
        exchange.funding.extend(rows)


def _due_hours(dex: str, hour: int) -> list[int]:
    """Return the hours whose payments are due at the end of an hour: usually this one."""
    if dex != OUTAGE_DEX or hour not in OUTAGE:
        return [hour]
    return list(OUTAGE) if hour == OUTAGE[-1] else []


def _book_payments(
    exchange: Exchange,
    coin: int,
    payments: dict[int, int],
    rate: str,
    time: int,
    samples: int | UnsetType | None,
) -> Iterator[FundingRow]:
    """Book the payments of a perp and yield their rows, which are most rows of a world."""
    name, decimals, dex = PERPS[coin].coin, PERPS[coin].sz_decimals, DEX_INDEX[coin]
    positions, margins = exchange.positions[coin], exchange.margins[coin]
    for account, usdc in payments.items():
        exchange.balances[account][dex] += usdc
        exchange.totals[account].funding += usdc
        funding = exchange.funding_totals[coin][account]
        funding.all_time += usdc
        funding.since_open += usdc
        funding.since_change += usdc
        if account in margins:
            margins[account] += usdc
        delta = FundingDelta(
            type="funding",
            coin=name,
            usdc=money_text(usdc),
            szi=decimal_text(positions[account][0], decimals),
            funding_rate=rate,
            n_samples=samples,
        )
        user = exchange.accounts[account].address
        yield FundingRow(user=user, time=time, hash=ZERO_HASH, delta=delta)


def _user_and_coin(row: FundingRow) -> tuple[str, str]:
    return row.user, row.delta.coin
