"""Hourly funding payments between longs and shorts."""

from typing import Final

from msgspec import UNSET

from toolkit.contract.records import FundingDelta, FundingRow
from toolkit.rules.funding import ZERO_HASH, round_payments
from toolkit.simulation.engine.exchange import DEX_INDEX, Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.markets import PERPS
from toolkit.simulation.quantities import MICRO, decimal_text, money_text
from toolkit.times import HOUR

OUTAGE: Final = range(34, 37)
"""Hours of history that one dex pays together, in one row, at the end of the last hour."""

OUTAGE_DEX: Final = "pre"
"""The dex whose oracle fails in these hours."""

_NULL_DEX: Final = ""
"""The dex whose rows have null for a single payment; rows of other dexes leave the field out."""


def pay_funding(exchange: Exchange, time: int) -> None:
    """Pay the funding of the hour that ends on every position; write the rows by user and coin."""
    hour = (time - exchange.start_ms) // HOUR
    rows: list[FundingRow] = []
    for coin, positions in enumerate(exchange.positions):
        perp, dex, margins = PERPS[coin], DEX_INDEX[coin], exchange.margins[coin]
        hours = [hour]
        if perp.dex == OUTAGE_DEX and hour in OUTAGE:
            hours = list(OUTAGE) if hour == OUTAGE[-1] else []
        # ASSUMED: If a funding row sums several payments, all of them use the last rate and the
        # last position. Each payment uses the oracle price of its own hour
        # (docs/live_service.md, section 5).
        oracles = int(exchange.prices.oracle[coin, hours].sum())
        rate = int(exchange.prices.rate[coin, hour])
        due = {account: -size * oracles * rate for account, (size, _) in positions.items()}
        payments = round_payments(due, MICRO + RATE_DECIMALS) if hours else {}
        samples = len(hours) if len(hours) > 1 else None if perp.dex == _NULL_DEX else UNSET
        rate_text = decimal_text(rate, RATE_DECIMALS)
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
                coin=perp.coin,
                usdc=money_text(usdc),
                szi=decimal_text(positions[account][0], perp.sz_decimals),
                funding_rate=rate_text,
                n_samples=samples,
            )
            user = exchange.accounts[account].address
            rows.append(FundingRow(user=user, time=time, hash=ZERO_HASH, delta=delta))
    rows.sort(key=lambda row: (row.user, row.delta.coin))
    exchange.funding.extend(rows)
