"""Contexts of perps and spot pairs at the end of history, and the history of funding rates."""

from collections import defaultdict

from toolkit.contract.records import AssetContext, FundingRate, SpotContext
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.markets import DEXES, FOLLOWED_PERPS, PERPS, SPOT_PAIRS, Pair, Perp
from toolkit.simulation.quantities import MICRO, decimal_text, parse_units
from toolkit.times import DAY, HOUR, MINUTE

_IMPACT_LEVEL = 3


def asset_contexts(exchange: Exchange) -> dict[str, list[AssetContext]]:
    """Return the context of every perp, by dex, in the order of its metadata.

    A delisted perp has no mid price, no premium and no impact prices.
    """
    prices, volumes = exchange.prices, _day_volumes(exchange)
    day_ago = max(0, prices.mid.shape[1] - 1 - DAY // MINUTE)
    contexts: dict[str, list[AssetContext]] = {dex: [] for dex in DEXES}
    for coin, perp in enumerate(PERPS):
        usd, lots = volumes[perp.coin]
        decimals, is_listed = perp.px_decimals, not perp.delisted
        mark, oracle = int(prices.mark[coin, -1]), int(prices.oracle[coin, -1])
        bid, ask = int(prices.bid[coin, -1]), int(prices.ask[coin, -1])
        distance = _IMPACT_LEVEL * (ask - bid)
        impact = [max(bid - distance, 1), max(ask + distance, 1)]
        size = sum(max(0, size) for size, _ in exchange.positions[coin].values())
        premium = decimal_text((mark - oracle) * 10**10 // oracle, 10)
        context = AssetContext(
            funding=decimal_text(int(prices.rate[coin, -1]), RATE_DECIMALS),
            open_interest=decimal_text(size, perp.sz_decimals),
            prev_day_px=decimal_text(int(prices.mark[coin, day_ago]), decimals),
            day_ntl_vlm=decimal_text(usd, MICRO),
            premium=premium if is_listed else None,
            oracle_px=decimal_text(oracle, decimals),
            mark_px=decimal_text(mark, decimals),
            mid_px=decimal_text((bid + ask) * 5, decimals + 1) if is_listed else None,
            impact_pxs=[decimal_text(px, decimals) for px in impact] if is_listed else None,
            day_base_vlm=decimal_text(lots, perp.sz_decimals),
        )
        contexts[perp.dex].append(context)
    return contexts


def spot_contexts(exchange: Exchange) -> list[SpotContext]:
    """Return the context of every spot pair, in the order of `metadata.spot_meta`.

    A pair has the prices of the perp that it follows.
    """
    prices, volumes = exchange.prices, _day_volumes(exchange)
    day_ago = max(0, prices.mid.shape[1] - 1 - DAY // MINUTE)
    contexts = []
    for pair in SPOT_PAIRS:
        coin, (usd, tokens) = FOLLOWED_PERPS[pair.base], volumes[pair.coin]
        decimals = PERPS[coin].px_decimals
        balances = [wallet[pair.base] for wallet in exchange.wallets if pair.base in wallet]
        supply = sum(balance.balance for balance in balances)
        staked = sum(balance.staked for balance in balances)
        mid = int(prices.bid[coin, -1]) + int(prices.ask[coin, -1])
        context = SpotContext(
            prev_day_px=decimal_text(int(prices.mark[coin, day_ago]), decimals),
            day_ntl_vlm=decimal_text(usd, WEI),
            mark_px=decimal_text(int(prices.mark[coin, -1]), decimals),
            mid_px=decimal_text(mid * 5, decimals + 1),
            circulating_supply=decimal_text(supply, WEI),
            coin=pair.coin,
            total_supply=decimal_text(supply + staked, WEI),
            day_base_vlm=decimal_text(tokens, WEI),
        )
        contexts.append(context)
    return contexts


def funding_rates(exchange: Exchange) -> dict[str, list[FundingRate]]:
    """Return the rate of every hour by coin, oldest first; those of a delisted perp end with it."""
    last_paid = {row.delta.coin: row.time for row in exchange.funding}
    prices = exchange.prices
    rates: dict[str, list[FundingRate]] = {}
    for coin, perp in enumerate(PERPS):
        end = last_paid.get(perp.coin, 0) if perp.delisted else exchange.end_ms
        hours = range(1, (end - exchange.start_ms) // HOUR + 1)
        rates[perp.coin] = [
            FundingRate(
                coin=perp.coin,
                funding_rate=decimal_text(int(prices.rate[coin, hour]), RATE_DECIMALS),
                premium=decimal_text(round(float(prices.premium[coin, hour]) * 10**10), 10),
                time=exchange.start_ms + hour * HOUR,
            )
            for hour in hours
        ]
    return rates


def _day_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each perp and each spot pair.

    It is in micro-dollars and lots for a perp, in 1e-8 USD and 1e-8 of the token for a pair.
    """
    listed: list[Perp | Pair] = [*PERPS, *SPOT_PAIRS]
    markets = {market.coin: market for market in listed}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        market = markets.get(fill.coin)
        if market is None or not fill.crossed or fill.dir == SPOT_DUST:
            continue
        decimals, unit = market.sz_decimals, 1
        if isinstance(market, Pair):
            decimals, unit = WEI, market.unit
        size = parse_units(fill.sz, decimals)
        traded = size * parse_units(fill.px, market.px_decimals) // unit
        usd, before = volumes[fill.coin]
        volumes[fill.coin] = usd + traded, before + size
    return volumes
