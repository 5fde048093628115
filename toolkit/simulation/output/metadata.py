"""Metadata and contexts of the markets: perps, spot pairs, outcomes, dexes, and auctions.

Source of the shapes: docs/live_service.md, section 9.
"""

from collections import defaultdict
from fractions import Fraction
from typing import Any

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.contract.source_tables import Auction
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.rules.directions import SPOT_DUST
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import markets
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.engine.prices import RATE_DECIMALS
from toolkit.simulation.exact import decimal_text, money_text, parse_units, party_address
from toolkit.times import DAY, HOUR, MINUTE, SECOND

_LISTED_SINGLE = 3
"""The id of the only table with one tier that `meta` lists. Clients know others by the id alone."""

_GROWTH = {"eqx:GOLD": "2025-09-12T08:00:00.000000"}
"""Perps in growth mode, and the start of this mode."""

_FEE_SCALE = {
    "eqx": ("1.0", "2025-08-30T12:00:00.000000"),
    "pre:OPENAI": ("1.0", "2025-09-04T09:30:00.000000"),
}
"""Dex or perp -> the scale of the deployer's fee, and the time of its last change."""

_NO_SCALE = (UNSET, UNSET)

_SZ_DECIMALS = {"USDC": 8, **{pair.base: pair.sz_decimals for pair in markets.SPOT_PAIRS}}
_OTHER_SZ_DECIMALS = 2
_QUESTION_NUMBER = 12
_IMPACT_LEVEL = 3

ROUND_MS = 31 * HOUR
"""Time between the starts of two auctions of one kind."""

_PURCHASE_MS = 10 * HOUR
_DEX_NAMES = {"eqx": "Equities exchange", "pre": "Private firms"}


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the metadata, contexts and funding rates of markets, the limits, and auctions."""
    # Only one dex has limits.
    caps = [
        (perp.coin, decimal_text(int(perp.depth_usd) * 50, 0))
        for perp in markets.PERPS
        if perp.dex == "eqx"
    ]
    limits = r.PerpDexLimits(
        total_oi_cap="25000000.0",
        oi_sz_cap_per_perp="1000000.0",
        max_transfer_ntl="5000000.0",
        coin_to_oi_cap=caps,
    )
    deployers = {dex: party_address(exchange.seed, "deployer", dex) for dex in markets.DEXES[1:]}
    return {
        "metas": {dex: _perp_meta(dex) for dex in markets.DEXES},
        "spot_meta": _spot_meta(),
        "outcome_meta": _outcome_meta(exchange.settled),
        "limits": {"eqx": limits},
        "perp_dexes": [
            r.PerpDex(
                name=dex,
                full_name=_DEX_NAMES[dex],
                deployer=deployer,
                oracle_updater=None,
                fee_recipient=deployer,
                asset_to_streaming_oi_cap=[*caps] if dex == "eqx" else [],
                sub_deployers=[],
                deployer_fee_scale="1.0",  # the deployer gets the same fee as the exchange
                last_deployer_fee_scale_change_time="1970-01-01T00:00:00",
                asset_to_funding_multiplier=[],
                asset_to_funding_interest_rate=[],
            )
            for dex, deployer in deployers.items()
        ],
        "auctions": auction_rounds(exchange.start_ms, exchange.end_ms, exchange.end_ms),
        **_contexts(exchange),
    }


def auction_rounds(start_ms: int, end_ms: int, now_ms: int) -> list[Auction]:
    """Return rounds of 31 hours until now, one after the other; every second one has a buyer.

    At the end of history, the last spot round still runs, and the last perp round has ended.
    """
    auctions = []
    last = end_ms - 12 * HOUR
    first = last - (end_ms - start_ms) // ROUND_MS * ROUND_MS
    for number, start in enumerate(range(first, now_ms + 1, ROUND_MS)):
        start_gas, floor_gas = 50_000 + 1_700 * (number % 7), 10_000
        end_gas = auction_price(
            Fraction(start_gas, 100),
            Fraction(floor_gas, 100),
            _PURCHASE_MS // SECOND,
            ROUND_MS // SECOND,
        )
        for kind, place in (("perp", 1), ("spot", 0)):
            is_bought = bool(place) if start == last else number % 2 == place
            auction = Auction(
                kind=kind,
                start_seconds=start // SECOND,
                duration_seconds=ROUND_MS // SECOND,
                start_gas=decimal_text(start_gas, 2),
                floor_gas=decimal_text(floor_gas, 2),
                end_seconds=(start + _PURCHASE_MS) // SECOND if is_bought else None,
                end_gas=decimal_text(end_gas, GAS_DECIMALS) if is_bought else None,
            )
            auctions.append(auction)
    return auctions


def _perp_meta(dex: str) -> r.Meta:
    perps = [perp for perp in markets.PERPS if perp.dex == dex]
    numbers = {perp.margin_table for perp in perps if perp.margin_table}
    numbers |= {_LISTED_SINGLE} & {perp.max_leverage for perp in perps}
    tiers = {
        number: markets.MARGIN_TABLES.get(number, ((0, number),)) for number in sorted(numbers)
    }
    scale, changed = _FEE_SCALE.get(dex, _NO_SCALE)
    universe = []
    for perp in perps:
        perp_scale, perp_changed = _FEE_SCALE.get(perp.coin, _NO_SCALE)
        asset = r.PerpAsset(
            name=perp.coin,
            sz_decimals=perp.sz_decimals,
            max_leverage=perp.max_leverage,
            only_isolated=perp.only_isolated,
            margin_table_id=perp.margin_table or perp.max_leverage,
            is_delisted=perp.delisted or UNSET,
            margin_mode=perp.margin_mode or UNSET,
            growth_mode="enabled" if perp.coin in _GROWTH else UNSET,
            last_growth_mode_change_time=_GROWTH.get(perp.coin, UNSET),
            deployer_fee_scale=perp_scale,
            last_fee_scale_change_time=perp_changed,
        )
        universe.append(asset)
    return r.Meta(
        universe=universe,
        margin_tables=[
            (
                number,
                r.MarginTable(
                    description=f"tiered {bounds[0][1]}x"
                    if number in markets.MARGIN_TABLES
                    else "",
                    margin_tiers=[
                        r.MarginTier(lower_bound=f"{low}.0", max_leverage=most)
                        for low, most in bounds
                    ],
                ),
            )
            for number, bounds in tiers.items()
        ],
        collateral_token=markets.TOKENS[markets.COLLATERAL[dex]],
        deployer_fee_scale=scale,
        last_fee_scale_change_time=changed,
    )


def _spot_meta() -> r.SpotMeta:
    """Return the tokens and the spot pairs.

    Unused tokens fill the places between the known indexes, because common clients look tokens
    up by position.
    """
    names = {index: name for name, index in markets.TOKENS.items()}
    # ASSUMED: Every token has 8 decimals on the chain. Spot balances are multiples of 1e-8.
    return r.SpotMeta(
        universe=[
            r.SpotPair(
                tokens=[markets.TOKENS[pair.base], markets.TOKENS["USDC"]],
                name=pair.coin,
                index=int(pair.coin[1:]) if pair.coin.startswith("@") else 0,
                is_canonical="/" in pair.coin,
            )
            for pair in markets.SPOT_PAIRS
        ],
        tokens=[
            r.SpotToken(
                name=names.get(index, f"TOKEN{index}"),
                sz_decimals=_SZ_DECIMALS.get(names.get(index, ""), _OTHER_SZ_DECIMALS),
                wei_decimals=WEI,
                index=index,
                token_id=f"0x{index + 1:032x}",
                is_canonical=names.get(index) in ("USDC", "PURR"),
                evm_contract=None,
                full_name=None,
            )
            for index in range(max(names) + 1)
        ],
    )


def _outcome_meta(settled: set[str]) -> r.OutcomeMeta:
    """Return the outcomes that are not settled, and their question."""
    open_outcomes = [outcome for outcome in markets.OUTCOMES if outcome.sides[0] not in settled]
    fallback, *named = markets.QUESTION
    question = r.OutcomeQuestion(
        question=_QUESTION_NUMBER,
        name="Which colour wins",
        description="One of three colours wins, or none of them.",
        fallback_outcome=fallback.number,
        named_outcomes=[outcome.number for outcome in named],
        settled_named_outcomes=[o.number for o in named if o not in open_outcomes],
    )
    return r.OutcomeMeta(
        outcomes=[
            r.Outcome(
                outcome=outcome.number,
                name=outcome.name,
                description=outcome.description,
                side_specs=[{"name": "Yes"}, {"name": "No"}],
            )
            for outcome in open_outcomes
        ],
        questions=[question] if fallback in open_outcomes else [],
    )


def _contexts(exchange: Exchange) -> dict[str, Any]:
    """Return the contexts of all perps and spot pairs, and the rate of every hour by coin.

    A delisted perp has no mid price, no premium and no impact prices; its rates end with it. A
    pair has the prices of the perp that it follows.
    """
    prices, volumes = exchange.prices, _day_volumes(exchange)
    day_ago = max(0, prices.mid.shape[1] - 1 - DAY // MINUTE)
    last_paid = {row.delta.coin: row.time for row in exchange.funding}
    perps, rates = [], {}
    by_dex: dict[str, list[r.AssetContext]] = {dex: [] for dex in markets.DEXES}
    for coin, perp in enumerate(markets.PERPS):
        usd, lots = volumes[perp.coin]
        decimals, is_listed = perp.px_decimals, not perp.delisted
        mark, oracle = int(prices.mark[coin, -1]), int(prices.oracle[coin, -1])
        bid, ask = int(prices.bid[coin, -1]), int(prices.ask[coin, -1])
        distance = _IMPACT_LEVEL * (ask - bid)
        impact = [max(bid - distance, 1), max(ask + distance, 1)]
        size = sum(max(0, size) for size, _ in exchange.positions[coin].values())
        premium = decimal_text((mark - oracle) * 10**10 // oracle, 10)
        context = r.AssetContext(
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
        by_dex[perp.dex].append(context)
        end = exchange.end_ms if is_listed else last_paid.get(perp.coin, 0)
        rates[perp.coin] = [
            r.FundingRate(
                coin=perp.coin,
                funding_rate=decimal_text(int(prices.rate[coin, hour]), RATE_DECIMALS),
                premium=decimal_text(round(float(prices.premium[coin, hour]) * 10**10), 10),
                time=exchange.start_ms + hour * HOUR,
            )
            for hour in range(1, (end - exchange.start_ms) // HOUR + 1)
        ]
    pairs = []
    for pair in markets.SPOT_PAIRS:
        followed, (usd, tokens) = perps[markets.FOLLOWED_PERPS[pair.base]], volumes[pair.coin]
        balances = [wallet[pair.base] for wallet in exchange.wallets if pair.base in wallet]
        supply = sum(balance.balance for balance in balances)
        staked = sum(balance.staked for balance in balances)
        spot_context = r.SpotContext(
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
    return {"contexts": by_dex, "spot_contexts": pairs, "funding_rates": rates}


def _day_volumes(exchange: Exchange) -> dict[str, tuple[int, int]]:
    """Return the last day's volume of each perp and each spot pair.

    It is in micro-dollars and lots for a perp, in 1e-8 USD and 1e-8 of the token for a pair.
    """
    units = {perp.coin: (perp.sz_decimals, perp.px_decimals, 1) for perp in markets.PERPS}
    units |= {pair.coin: (WEI, pair.px_decimals, pair.unit) for pair in markets.SPOT_PAIRS}
    volumes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, fill in reversed(exchange.fills):
        if fill.time <= exchange.end_ms - DAY:
            break
        if fill.coin in units and fill.crossed and fill.dir != SPOT_DUST:
            sz_decimals, px_decimals, unit = units[fill.coin]
            size = parse_units(fill.sz, sz_decimals)
            usd, before = volumes[fill.coin]
            traded = size * parse_units(fill.px, px_decimals) // unit
            volumes[fill.coin] = usd + traded, before + size
    return volumes
