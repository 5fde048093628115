"""Market data: depth, slippage, metadata, limits.

Specification, "Depth response", "Slippage sample", "Perp metadata", "Perp dex limits".
Records named ``...Row`` are not on the wire: they are the rows of frames whose answers nest.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract.kinds import (
    BPS,
    COIN,
    COUNT,
    FLAG,
    ID,
    ISO_TIME,
    NESTED,
    PRICE,
    RATE,
    ROWS,
    SIZE,
    TEXT,
    TIME,
    USD,
    WORD,
)
from toolkit.contract.records.record import Record, Text, Whole

__all__ = [
    "AssetContext",
    "CoinCapRow",
    "ContextRow",
    "Depth",
    "DepthLevel",
    "DepthRow",
    "DexCaps",
    "DexLimits",
    "MarginTable",
    "MarginTier",
    "MarginTierRow",
    "MarketDepth",
    "Meta",
    "MetaRow",
    "PerpAsset",
    "SlippageSample",
]


class DepthLevel(Record, kw_only=True):
    """The depth within one distance from the mid price."""

    bps: Annotated[
        int, COUNT("distance: 10, 25, 50, 100, 200 or 500", unit="basis points", key=True)
    ]
    bid_depth_usd: Annotated[float, USD("cumulative bid depth within it")]
    ask_depth_usd: Annotated[float, USD("cumulative ask depth within it")]


class MarketDepth(Record, kw_only=True):
    """The depth of one market."""

    coin: Annotated[str, COIN("base coin symbol", key=True)]
    dex: Annotated[str, WORD("dex name")]
    levels: Annotated[list[DepthLevel], ROWS("one entry per distance")]


class Depth(Record, kw_only=True):
    """The depth of all markets at one moment."""

    timestamp_ms: Annotated[int, TIME("when the snapshot was computed", key=True)]
    data: Annotated[list[MarketDepth], ROWS("one entry per market", key=True)]


class DepthRow(Record, kw_only=True):
    """One distance of one market, as a row."""

    timestamp_ms: Annotated[int, TIME("when the snapshot was computed", key=True)]
    coin: Annotated[str, COIN("base coin symbol", key=True)]
    dex: Annotated[str, WORD("dex name")]
    bps: Annotated[
        int, COUNT("distance: 10, 25, 50, 100, 200 or 500", unit="basis points", key=True)
    ]
    bid_depth_usd: Annotated[float, USD("cumulative bid depth within it")]
    ask_depth_usd: Annotated[float, USD("cumulative ask depth within it")]


class SlippageSample(Record, kw_only=True):
    """What a market order of one size would have cost."""

    timestamp: Annotated[int, TIME("sample time", key=True)]
    dex: Annotated[str, WORD("dex identifier")]
    coin: Annotated[str, COIN("coin symbol", key=True)]
    half_spread_bps: Annotated[float, BPS("half spread")]
    amount_usd: Annotated[float, USD("notional that the estimate is for")]
    buy_slippage_bps: Annotated[
        float | None, BPS("cost of buying, against mid; missing if liquidity is insufficient")
    ]
    sell_slippage_bps: Annotated[
        float | None, BPS("cost of selling, against mid; missing if liquidity is insufficient")
    ]


class PerpAsset(Record, kw_only=True):
    """One perpetual of a dex."""

    name: Annotated[str, COIN("asset symbol", key=True)]
    sz_decimals: Annotated[int, COUNT("decimal places of sizes")]
    max_leverage: Annotated[int, COUNT("maximum leverage")]
    # Null and absent mean false (clarifications: it is left out when false), so this column is
    # never missing. The live service writes null where it no longer sets this deprecated field.
    only_isolated: Annotated[bool, FLAG("isolated margin only")] = False
    margin_table_id: Annotated[
        Whole, ID("margin table; below 50: one tier with that leverage", beyond=4)
    ] = UNSET
    is_delisted: Annotated[
        bool | UnsetType, FLAG("whether it is delisted; missing: it is not", beyond=1)
    ] = UNSET
    margin_mode: Annotated[
        Text, WORD("strictIsolated or noCross; missing: no restriction", beyond=1)
    ] = UNSET
    growth_mode: Annotated[Text, WORD("enabled, or missing", beyond=1)] = UNSET
    last_growth_mode_change_time: Annotated[
        Text, ISO_TIME("when growth mode last changed", beyond=1)
    ] = UNSET
    deployer_fee_scale: Annotated[Text, RATE("deployer's share of the fees", beyond=1)] = UNSET
    last_fee_scale_change_time: Annotated[
        Text, TEXT("when the deployer's fee scale last changed, as written", beyond=1)
    ] = UNSET


class MarginTier(Record, kw_only=True):
    """One tier of a margin table: the leverage from a notional on."""

    lower_bound: Annotated[Text, USD("notional from which the tier applies", beyond=4)] = UNSET
    max_leverage: Annotated[Whole, COUNT("maximum leverage in the tier", beyond=4)] = UNSET


class MarginTable(Record, kw_only=True):
    """The maximum leverage by the notional of a position."""

    description: Annotated[Text, TEXT("description", beyond=4)] = UNSET
    margin_tiers: Annotated[list[MarginTier], ROWS("the tiers", beyond=4)]


class Meta(Record, kw_only=True):
    """The perpetuals of a dex."""

    universe: Annotated[list[PerpAsset], ROWS("perp asset metadata", key=True)]
    margin_tables: Annotated[
        list[tuple[int, MarginTable]] | UnsetType, ROWS("pairs of id and margin table", beyond=4)
    ] = UNSET
    collateral_token: Annotated[Whole, ID("spot token of the collateral; 0: USDC", beyond=6)] = (
        UNSET
    )
    deployer_fee_scale: Annotated[Text, RATE("deployer's share of the fees", beyond=1)] = UNSET
    last_fee_scale_change_time: Annotated[
        Text, TEXT("when the deployer's fee scale last changed, as written", beyond=1)
    ] = UNSET


class MetaRow(PerpAsset, kw_only=True):
    """One perpetual with what holds for its whole dex, as a row."""

    collateral_token: Annotated[
        Whole, ID("spot token of the collateral; 0: USDC; the same for the whole dex", beyond=6)
    ] = UNSET


class MarginTierRow(Record, kw_only=True):
    """One tier of a margin table, as a row."""

    margin_table_id: Annotated[int, ID("margin table", beyond=4, key=True)]
    description: Annotated[Text, TEXT("description of the table", beyond=4)] = UNSET
    tier: Annotated[int, COUNT("number of the tier in its table, from 0", beyond=4, key=True)]
    lower_bound: Annotated[Text, USD("notional from which the tier applies", beyond=4)] = UNSET
    max_leverage: Annotated[Whole, COUNT("maximum leverage in the tier", beyond=4)] = UNSET


class AssetContext(Record, kw_only=True):
    """The market state of one perpetual. Clarifications, "metaAndAssetCtxs"."""

    funding: Annotated[str, RATE("current hourly funding rate")]
    open_interest: Annotated[str, SIZE("open interest")]
    prev_day_px: Annotated[str, PRICE("price a day before")]
    day_ntl_vlm: Annotated[str, USD("volume of the last day")]
    premium: Annotated[str | None, RATE("premium of the mark over the oracle price")]
    oracle_px: Annotated[str, PRICE("oracle price")]
    mark_px: Annotated[str, PRICE("mark price")]
    mid_px: Annotated[str | None, PRICE("mid price; missing when the book is empty")]
    impact_pxs: Annotated[list[str] | None, NESTED("impact prices, bid and ask")]
    day_base_vlm: Annotated[Text, SIZE("volume of the last day; older answers lack it")] = UNSET


class ContextRow(Record, kw_only=True):
    """One perpetual with its market state, as a row."""

    asset: Annotated[PerpAsset, NESTED("the perpetual", key=True)]
    context: Annotated[AssetContext, NESTED("its market state")]
    collateral_token: Annotated[
        Whole, ID("spot token of the collateral; 0: USDC; the same for the whole dex", beyond=6)
    ] = UNSET


class DexLimits(Record, kw_only=True):
    """The limits of a builder-deployed dex."""

    total_oi_cap: Annotated[str, USD("total open-interest cap of the dex")]
    oi_sz_cap_per_perp: Annotated[str, SIZE("open-interest size cap per perp")]
    max_transfer_ntl: Annotated[str, USD("maximum transfer notional")]
    coin_to_oi_cap: Annotated[list[tuple[str, str]], ROWS("pairs of coin and cap")]


class DexCaps(Record, kw_only=True):
    """The limits of a dex that hold for all its coins, as a row."""

    total_oi_cap: Annotated[str, USD("total open-interest cap of the dex")]
    oi_sz_cap_per_perp: Annotated[str, SIZE("open-interest size cap per perp")]
    max_transfer_ntl: Annotated[str, USD("maximum transfer notional")]


class CoinCapRow(Record, kw_only=True):
    """The open-interest cap of one coin, as a row."""

    coin: Annotated[str, COIN("asset symbol", key=True)]
    oi_cap: Annotated[str, USD("open-interest cap")]
