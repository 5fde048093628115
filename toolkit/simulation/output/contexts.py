"""Contexts of perps and spot pairs at the end of history, and the history of funding rates."""

from collections import defaultdict

from msgspec.structs import replace

from toolkit.contract.records import AssetContext, FundingRate, SpotContext
from toolkit.rules.spot_cost import WEI
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.markets import DEXES, FOLLOWED_PERPS, PAIRS, PERPS, Pair
from toolkit.simulation.quantities import MICRO, decimal_text, parse_units
from toolkit.times import DAY, HOUR, MINUTE

_IMPACT_LEVEL = 3
_SPOT_PAIRS = [pair for pair in PAIRS if not pair.is_outcome]


def asset_contexts(exchange: Exchange) -> dict[str, list[AssetContext]]:
    """Return the context of every perp, by dex, in the order of its metadata."""
    volumes = _perp_volumes(exchange)
    contexts: dict[str, list[AssetContext]] = {dex: [] for dex in DEXES}
    for coin, perp in enumerate(PERPS):
        contexts[perp.dex].append(_perp_context(exchange, coin, *volumes[perp.coin]))
    return contexts


def spot_contexts(exchange: Exchange) -> list[SpotContext]:
    """Return the context of every spot pair, in the order of `metadata.spot_meta`."""
    volumes = _spot_volumes(exchange)
    supplies: dict[str, int] = defaultdict(int)
    staked: dict[str, int] = defaultdict(int)
    for wallet in exchange.wallets:
        for token, balance in wallet.items():
            supplies[token] += balance.balance
            staked[token] += balance.staked
    return [
        _spot_context(exchange, pair, *volumes[pair.coin], supplies[pair.base], staked[pair.base])
        for pair in _SPOT_PAIRS
    ]


def add_spot_contexts(first: SpotContext, second: SpotContext) -> SpotContext:
    """Return the context of a pair with the sums of volumes and supplies of two worlds.

    The worlds must have the same prices.
    """
    sums = {}
    for name in ("day_ntl_vlm", "day_base_vlm", "circulating_supply", "total_supply"):
        amounts = (parse_units(getattr(context, name), WEI) for context in (first, second))
        sums[name] = decimal_text(sum(amounts), WEI)
    return replace(first, **sums)


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


def _perp_context(exchange: Exchange, coin: int, usd: int, lots: int) -> AssetContext:
    """Return one context; a delisted perp has no mid price, no premium and no impact prices."""
    perp, prices = PERPS[coin], exchange.prices
    last = prices.mid.shape[1] - 1
    day_ago = max(0, last - DAY // MINUTE)
    decimals = perp.px_decimals
    mark = int(prices.mark[coin, last])
    bid, ask = int(prices.bid[coin, last]), int(prices.ask[coin, last])
    spread = ask - bid
    impact = [bid - _IMPACT_LEVEL * spread, ask + _IMPACT_LEVEL * spread]
    size = sum(max(0, size) for size, _ in exchange.positions[coin].values())
    oracle = int(prices.oracle[coin, -1])
    is_listed = not perp.delisted
    return AssetContext(
        funding=decimal_text(int(prices.rate[coin, -1]), RATE_DECIMALS),
        open_interest=decimal_text(size, perp.sz_decimals),
        prev_day_px=decimal_text(int(prices.mark[coin, day_ago]), decimals),
        day_ntl_vlm=decimal_text(usd, MICRO),
        premium=decimal_text((mark - oracle) * 10**10 // oracle, 10) if is_listed else None,
        oracle_px=decimal_text(oracle, decimals),
        mark_px=decimal_text(mark, decimals),
        mid_px=decimal_text((bid + ask) * 5, decimals + 1) if is_listed else None,
        impact_pxs=[decimal_text(max(px, 1), decimals) for px in impact] if is_listed else None,
        day_base_vlm=decimal_text(lots, perp.sz_decimals),
    )


def _spot_context(
    exchange: Exchange, pair: Pair, usd: int, tokens: int, supply: int, staked: int
) -> SpotContext:
    """Return one context; a spot pair has the prices of the perp that it follows."""
    coin, prices = FOLLOWED_PERPS[pair.base], exchange.prices
    last = prices.mid.shape[1] - 1
    day_ago = max(0, last - DAY // MINUTE)
    decimals = PERPS[coin].px_decimals
    mid = int(prices.bid[coin, last]) + int(prices.ask[coin, last])
    return SpotContext(
        prev_day_px=decimal_text(int(prices.mark[coin, day_ago]), decimals),
        day_ntl_vlm=decimal_text(usd, WEI),
        mark_px=decimal_text(int(prices.mark[coin, last]), decimals),
        mid_px=decimal_text(mid * 5, decimals + 1),
        circulating_supply=decimal_text(supply, WEI),
        coin=pair.coin,
        total_supply=decimal_text(supply + staked, WEI),
        day_base_vlm=decimal_text(tokens, WEI),
    )


def _perp_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each perp: micro-dollars and lots."""
    decimals = {perp.coin: perp.sz_decimals for perp in PERPS}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.crossed and fill.coin in decimals:
            lots = parse_units(fill.sz, decimals[fill.coin])
            px = parse_units(fill.px, 6 - decimals[fill.coin])
            usd, before = volumes[fill.coin]
            volumes[fill.coin] = usd + lots * px, before + lots
    return volumes


def _spot_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each spot pair: 1e-8 USD and 1e-8 of the token."""
    pairs = {pair.coin: pair for pair in _SPOT_PAIRS}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.crossed and fill.coin in pairs and fill.dir in ("Buy", "Sell"):
            pair = pairs[fill.coin]
            tokens = parse_units(fill.sz, WEI)
            usd, before = volumes[fill.coin]
            usd += tokens * parse_units(fill.px, pair.px_decimals) // pair.unit
            volumes[fill.coin] = usd, before + tokens
    return volumes
