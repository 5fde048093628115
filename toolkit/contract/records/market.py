"""Market data: depth, slippage, metadata, limits, auctions, books and candles.

Specification, "Depth response", "Slippage sample", "Perp metadata", "Perp dex limits" and "Deploy
auction status"; the others: docs/live_service.md, section 9.
Records named ``...Row`` are not on the wire. They are the rows of frames of nested answers.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from toolkit.contract.records.record import Record, Text, Whole
from toolkit.contract.value_kinds import (
    ADDRESS,
    AMOUNT,
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
    SECONDS,
    SIZE,
    TEXT,
    TIME,
    USD,
    WORD,
)


class DepthLevel(Record, kw_only=True):
    """The depth within one distance from the mid price."""

    bps: Annotated[
        int, COUNT("distance: 10, 25, 50, 100, 200 or 500", unit="basis points", key=True)
    ]
    bid_depth_usd: Annotated[float, USD("cumulative bid depth within it")]
    ask_depth_usd: Annotated[float, USD("cumulative ask depth within it")]


class MarketDepth(Record, kw_only=True):
    """The depth of one market."""

    coin: Annotated[str, COIN("base coin of the market", key=True)]
    dex: Annotated[str, WORD("dex name")]
    levels: Annotated[list[DepthLevel], ROWS("one entry per distance")]


class Depth(Record, kw_only=True):
    """The depth of all markets at one moment."""

    timestamp_ms: Annotated[int, TIME("when the depth was computed", key=True)]
    data: Annotated[list[MarketDepth], ROWS("one entry per market", key=True)]


class DepthRow(Record, kw_only=True):
    """One distance of one market, as a row."""

    timestamp_ms: Annotated[int, TIME("when the depth was computed", key=True)]
    coin: Annotated[str, COIN("base coin of the market", key=True)]
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
    coin: Annotated[str, COIN("name of the market", key=True)]
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

    name: Annotated[str, COIN("name of the market", key=True)]
    sz_decimals: Annotated[int, COUNT("decimal places of sizes")]
    max_leverage: Annotated[int, COUNT("maximum leverage")]
    # Null and absent mean false (docs/live_service.md, section 1), so this column is never
    # missing. The live service writes null where it no longer sets this deprecated field.
    only_isolated: Annotated[bool, FLAG("whether only isolated margin is allowed")] = False
    margin_table_id: Annotated[
        Whole, ID("margin table; below 50: one tier with that leverage", beyond=4)
    ] = UNSET
    is_delisted: Annotated[
        bool | UnsetType, FLAG("whether it is delisted", beyond=1, is_presence=True)
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
    """One tier of a margin table: the maximum leverage above a given notional."""

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
    """One perpetual with the values of its dex, as a row."""

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
    """The market state of one perpetual.

    The specification does not show its fields; they come from public documentation
    and recorded answers.
    """

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


class PerpDexLimits(Record, kw_only=True):
    """The limits of a builder-deployed dex."""

    total_oi_cap: Annotated[str, USD("total open-interest cap of the dex")]
    oi_sz_cap_per_perp: Annotated[str, SIZE("open-interest size cap per perp")]
    max_transfer_ntl: Annotated[str, USD("maximum transfer notional")]
    coin_to_oi_cap: Annotated[list[tuple[str, str]], ROWS("pairs of coin and cap")]


class DexCaps(Record, kw_only=True):
    """The limits of a dex for all its coins, as a row."""

    total_oi_cap: Annotated[str, USD("total open-interest cap of the dex")]
    oi_sz_cap_per_perp: Annotated[str, SIZE("open-interest size cap per perp")]
    max_transfer_ntl: Annotated[str, USD("maximum transfer notional")]


class CoinCapRow(Record, kw_only=True):
    """The open-interest cap of one coin, as a row."""

    coin: Annotated[str, COIN("name of the market", key=True)]
    oi_cap: Annotated[str, USD("open-interest cap")]


class PerpDex(Record, kw_only=True):
    """A builder-deployed dex."""

    name: Annotated[str, WORD("dex name")]
    full_name: Annotated[str, TEXT("long name")]
    deployer: Annotated[str, ADDRESS("address of the deployer")]
    oracle_updater: Annotated[str | None, ADDRESS("address that sets the oracle prices")]
    fee_recipient: Annotated[str | None, ADDRESS("address that receives the deployer's fees")]
    asset_to_streaming_oi_cap: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and open-interest cap in USD")
    ] = UNSET
    sub_deployers: Annotated[
        list[object] | UnsetType, NESTED("pairs of an action and the addresses that may perform it")
    ] = UNSET
    deployer_fee_scale: Annotated[
        Text, RATE("fee of the deployer, as a share of the exchange's fee")
    ] = UNSET
    last_deployer_fee_scale_change_time: Annotated[
        Text, TEXT("time of the last change of deployer_fee_scale")
    ] = UNSET
    asset_to_funding_multiplier: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and funding multiplier")
    ] = UNSET
    asset_to_funding_interest_rate: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and interest rate")
    ] = UNSET


class MidRow(Record, kw_only=True):
    """The mid price of one market, as a row."""

    coin: Annotated[str, COIN("name of the market")]
    mid_px: Annotated[str, PRICE("mid price")]


class FundingRate(Record, kw_only=True):
    """The funding rate of one coin at one hour."""

    coin: Annotated[str, COIN("name of the market", key=True)]
    funding_rate: Annotated[str, RATE("rate of one payment; positive: longs pay", key=True)]
    premium: Annotated[str | None, RATE("premium of the perp's price over the oracle price")]
    time: Annotated[int, TIME("time of the funding payment", key=True)]


class Candle(Record, kw_only=True):
    """The trades of one coin in one interval."""

    start_time: Annotated[int, TIME("first moment of the interval", key=True)] = msgspec.field(
        name="t"
    )
    end_time: Annotated[int, TIME("last moment of the interval")] = msgspec.field(name="T")
    coin: Annotated[str, COIN("name of the market")] = msgspec.field(name="s")
    interval: Annotated[str, WORD("length: 1s, 1m, 1h, 1d, ...")] = msgspec.field(name="i")
    open: Annotated[str, PRICE("price of the first trade")] = msgspec.field(name="o")
    close: Annotated[str, PRICE("price of the last trade")] = msgspec.field(name="c")
    high: Annotated[str, PRICE("highest price")] = msgspec.field(name="h")
    low: Annotated[str, PRICE("lowest price")] = msgspec.field(name="l")
    volume: Annotated[str, SIZE("traded size")] = msgspec.field(name="v")
    trades: Annotated[int, COUNT("number of trades")] = msgspec.field(name="n")


class OpenInterest(Record, kw_only=True):
    """The open interest of one market in one interval: all longs and all shorts."""

    time: Annotated[int, TIME("first moment of the interval", key=True)] = msgspec.field(name="t")
    oi_open: Annotated[Text, SIZE("open interest at the first moment; longs plus shorts")] = UNSET
    oi_high: Annotated[Text, SIZE("highest open interest of a minute")] = UNSET
    oi_low: Annotated[Text, SIZE("lowest open interest of a minute")] = UNSET
    oi_close: Annotated[Text, SIZE("open interest at the last moment; longs plus shorts")] = UNSET
    oi_usd: Annotated[str | None, USD("open interest at the last moment; longs plus shorts")]


class BookLevel(Record, kw_only=True):
    """One price level of an order book."""

    px: Annotated[str, PRICE("price", key=True)]
    sz: Annotated[str, SIZE("size at this price", key=True)]
    orders: Annotated[int, COUNT("number of orders at this price")] = msgspec.field(name="n")


class L2Book(Record, kw_only=True):
    """The order book of one market."""

    coin: Annotated[str, COIN("name of the market")]
    time: Annotated[int, TIME("time of the book")]
    levels: Annotated[
        list[list[BookLevel]], ROWS("bids and asks, best price first, 20 levels each at most")
    ]


class BookLevelRow(Record, kw_only=True):
    """One price level of one side of a book, as a row."""

    coin: Annotated[str, COIN("name of the market")]
    time: Annotated[int, TIME("time of the book")]
    side: Annotated[str, WORD("A (ask) or B (bid)")]
    level: Annotated[int, COUNT("position on its side of the book; 1: the best price")]
    px: Annotated[str, PRICE("price")]
    sz: Annotated[str, SIZE("size at this price")]
    orders: Annotated[int, COUNT("number of orders at this price")]


class PredictedFunding(Record, kw_only=True):
    """The next funding rate of a perp on one venue."""

    funding_rate: Annotated[str, RATE("next rate, for one interval; positive: longs pay")]
    next_funding_time: Annotated[int, TIME("time of the next payment")]
    funding_interval_hours: Annotated[Whole, COUNT("hours between two payments of the venue")] = (
        UNSET
    )


class PredictedFundingRow(Record, kw_only=True):
    """The next funding rate of a perp on one venue, as a row."""

    coin: Annotated[str, COIN("name of the market", key=True)]
    venue: Annotated[str, WORD("exchange, e.g. HlPerp, BinPerp or BybitPerp", key=True)]
    funding_rate: Annotated[
        str | None,
        RATE("next rate, for one interval; positive: longs pay; missing if the venue has none"),
    ]
    next_funding_time: Annotated[int | None, TIME("time of the next payment")]
    funding_interval_hours: Annotated[int | None, COUNT("hours between two payments of the venue")]


class ExchangeStatus(Record, kw_only=True):
    """The state of the exchange."""

    time: Annotated[int, TIME("present time of the exchange")]
    special_statuses: Annotated[object | None, NESTED("special states; missing if there are none")]


class AuctionStatus(Record, kw_only=True):
    """The state of a deploy auction."""

    start_time_seconds: Annotated[int, SECONDS("auction start", key=True)]
    duration_seconds: Annotated[int, COUNT("auction duration", unit="seconds")]
    start_gas: Annotated[str, AMOUNT("gas price at start")]
    current_gas: Annotated[str | None, AMOUNT("current gas price; missing if a perp auction ended")]
    end_gas: Annotated[str | None, AMOUNT("gas price at the end; missing while in progress")]
