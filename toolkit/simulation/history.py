"""The history of a world: all its events, drawn and then applied in the order of time."""

from toolkit.simulation.agents import gamblers, population, spot_traders, takers, transfers, twaps
from toolkit.simulation.engine import books, positions, spot
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import simulate_prices
from toolkit.simulation.exact import party_address
from toolkit.simulation.markets import PAIRS, PERPS, delisting_time
from toolkit.simulation.output import snapshots
from toolkit.times import DAY, HOUR, MINUTE, to_ms

NOW_MS = to_ms("2025-10-01")
"""The present of every simulated world: the end of its history."""

SIZES = {
    "tiny": {
        "days": 3, "makers": 4, "takers": 36, "builders": 3, "intents": 2_400, "spot_intents": 300,
        "twaps": 12, "unfilled": 360,
    },
    "demo": {
        "days": 30, "makers": 8, "takers": 242, "builders": 5, "intents": 50_000,
        "spot_intents": 6_000, "twaps": 120, "unfilled": 12_000,
    },
}  # fmt: skip
"""Name of a size -> the numbers of days, accounts and events of a world."""


def run_history(
    seed: int, size: str, market: int | None = None, ids: tuple[int, int] = (0, 1)
) -> Exchange:
    """Draw all events and apply them in the order of time.

    - ``seed``: the seed of the accounts and of what they do
    - ``size``: one of `SIZES`
    - ``market``: the seed of prices, books and the chances of outcomes; by default `seed`
    - ``ids``: the ids that it may use, as in `Exchange`

    Returns: the exchange after all events.
    """
    counts = SIZES[size]
    days, makers, builder_count = counts["days"], counts["makers"], counts["builders"]
    start_ms = NOW_MS - days * DAY
    prices = simulate_prices(seed if market is None else market, days * 24)
    accounts = population.draw_accounts(seed, makers, counts["takers"], builder_count)
    population.assign_roles(accounts, makers)
    gambles = gamblers.draw_gambles(start_ms, accounts, prices)  # this also funds the gamblers
    addresses = [party_address(seed, "builder", str(number)) for number in range(builder_count)]
    exchange = Exchange(seed, start_ms, accounts, prices, addresses, ids)
    # At the same time, the events of an earlier line come first.
    transfers.draw_dollar_transfers(exchange)
    transfers.draw_token_transfers(exchange)
    transfers.draw_token_gifts(exchange)
    transfers.draw_vault_events(exchange)
    takers.draw_approvals(exchange)
    _schedule_clock(exchange)
    takers.draw_perp_intents(exchange, counts["intents"])
    spot_traders.draw_spot_intents(exchange, counts["spot_intents"])
    spot_traders.draw_conversions(exchange, counts["spot_intents"] // 15)
    spot_traders.draw_hedges(exchange)
    twaps.draw_twaps(exchange, counts["twaps"])
    takers.draw_unfilled_orders(exchange, counts["unfilled"])
    for time, number, coin, sign, largest in gambles:
        exchange.schedule(time, gamblers.gamble, number, coin, sign, largest)
    exchange.run_events()
    return exchange


def _schedule_clock(exchange: Exchange) -> None:
    """Schedule what has a fixed time: funding, valuations, margin checks, dust, market ends."""
    start_ms, end_ms = exchange.start_ms, exchange.end_ms
    for time in range(start_ms + HOUR, end_ms + 1, HOUR):
        exchange.schedule(time, positions.pay_funding)
        if time % snapshots.VALUATION_MS == 0:
            exchange.schedule(time, snapshots.value_accounts)
        if time < end_ms:
            exchange.schedule(time + positions.MARGIN_CHECK_MS, positions.check_margins)
            if (time - start_ms) % DAY == 0:
                exchange.schedule(time + MINUTE, spot.convert_dust)
    delisted = delisting_time(start_ms, end_ms)
    for coin, perp in enumerate(PERPS):
        if perp.delisted:
            for maker in exchange.makers[:3]:
                exchange.schedule(delisted - 5 * HOUR, books.place_far_order, maker, coin)
            exchange.schedule(delisted, positions.delist_perp, coin)
    settled = spot_traders.OPENING_MS + spot_traders.OUTCOME_HOURS * HOUR + 11 * MINUTE
    outcomes = [(place, pair) for place, pair in enumerate(PAIRS) if pair.is_outcome]
    for place, pair in outcomes[:2]:
        exchange.schedule(start_ms + settled, spot.settle_outcome, pair, place % 2 == 0)
    for number in range(3):
        time = end_ms - number * snapshots.SNAPSHOT_MS
        exchange.schedule(time, snapshots.take_account_snapshot)
        exchange.schedule(time, snapshots.take_twap_snapshot)
