"""Contexts of perps and spot pairs at the end of history, and the history of funding rates."""

from collections import defaultdict
from typing import Any

from toolkit.contract.records import AssetContext, FundingRate, SpotContext
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.exact import decimal_text, money_text, parse_units
from toolkit.simulation.markets import DEXES, FOLLOWED_PERPS, PERPS, SPOT_PAIRS
from toolkit.times import DAY, HOUR, MINUTE

_IMPACT_LEVEL = 3


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the contexts of all perps and spot pairs, and the rate of every hour by coin.

    A delisted perp has no mid price, no premium and no impact prices; its rates end with it. A
    pair has the prices of the perp that it follows.
    """
    prices, volumes = exchange.prices, _day_volumes(exchange)
    day_ago = max(0, prices.mid.shape[1] - 1 - DAY // MINUTE)
    last_paid = {row.delta.coin: row.time for row in exchange.funding}
    perps, rates = [], {}
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
            day_ntl_vlm=money_text(usd),
            premium=premium if is_listed else None,
            oracle_px=decimal_text(oracle, decimals),
            mark_px=decimal_text(mark, decimals),
            mid_px=decimal_text((bid + ask) * 5, decimals + 1) if is_listed else None,
            impact_pxs=[decimal_text(px, decimals) for px in impact] if is_listed else None,
            day_base_vlm=decimal_text(lots, perp.sz_decimals),
        )
        perps.append(context)
        end = exchange.end_ms if is_listed else last_paid.get(perp.coin, 0)
        rates[perp.coin] = [
            FundingRate(
                coin=perp.coin,
                funding_rate=decimal_text(int(prices.rate[coin, hour]), RATE_DECIMALS),
                premium=decimal_text(round(float(prices.premium[coin, hour]) * 10**10), 10),
                time=exchange.start_ms + hour * HOUR,
            )
            for hour in range(1, (end - exchange.start_ms) // HOUR + 1)
        ]
    pairs = []
    for pair in SPOT_PAIRS:
        followed, (usd, tokens) = perps[FOLLOWED_PERPS[pair.base]], volumes[pair.coin]
        balances = [wallet[pair.base] for wallet in exchange.wallets if pair.base in wallet]
        supply = sum(balance.balance for balance in balances)
        staked = sum(balance.staked for balance in balances)
        spot_context = SpotContext(
            prev_day_px=followed.prev_day_px,
            day_ntl_vlm=decimal_text(usd, WEI),
            mark_px=followed.mark_px,
            mid_px=followed.mid_px,
            circulating_supply=decimal_text(supply, WEI),
            coin=pair.coin,
            total_supply=decimal_text(supply + staked, WEI),
            day_base_vlm=decimal_text(tokens, WEI),
        )
        pairs.append(spot_context)
    by_dex: dict[str, list[AssetContext]] = {dex: [] for dex in DEXES}
    for perp, context in zip(PERPS, perps, strict=True):
        by_dex[perp.dex].append(context)
    return {"contexts": by_dex, "spot_contexts": pairs, "funding_rates": rates}


def _day_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each perp and each spot pair.

    It is in micro-dollars and lots for a perp, in 1e-8 USD and 1e-8 of the token for a pair.
    """
    markets = {perp.coin: (perp.sz_decimals, perp.px_decimals, 1) for perp in PERPS}
    markets |= {pair.coin: (WEI, pair.px_decimals, pair.unit) for pair in SPOT_PAIRS}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.coin in markets and fill.crossed and fill.dir != SPOT_DUST:
            sz_decimals, px_decimals, unit = markets[fill.coin]
            size = parse_units(fill.sz, sz_decimals)
            usd, before = volumes[fill.coin]
            traded = size * parse_units(fill.px, px_decimals) // unit
            volumes[fill.coin] = usd + traded, before + size
    return volumes
