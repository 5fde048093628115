"""Metadata of the markets: perps, spot pairs, outcomes, dexes, and auctions of deployments.

Source of the shapes: docs/live_service.md, section 9.
"""

from fractions import Fraction
from typing import Any

from msgspec import UNSET

from toolkit.contract import records as r
from toolkit.contract.source_tables import Auction
from toolkit.rules.auctions import GAS_DECIMALS, auction_price
from toolkit.rules.spot_cost import WEI
from toolkit.simulation import markets
from toolkit.simulation.engine.exchange import Exchange
from toolkit.simulation.exact import decimal_text, party_address
from toolkit.times import HOUR, SECOND

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

ROUND_MS = 31 * HOUR
"""Time between the starts of two auctions of one kind."""

_PURCHASE_MS = 10 * HOUR
_DEX_NAMES = {"eqx": "Equities exchange", "pre": "Private firms"}


def tables(exchange: Exchange) -> dict[str, Any]:
    """Return the metadata of perps, spot pairs, outcomes and dexes, the limits, and auctions."""
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
