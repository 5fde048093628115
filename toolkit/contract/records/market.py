"""Market data: depth, slippage, metadata, limits, auctions, books and candles.

Specification, "Depth response", "Slippage sample", "Perp metadata", "Perp dex limits" and "Deploy
auction status"; the others: docs/live_service.md, section 9.
Records named ``...Row`` are not on the wire. They are the rows of frames of nested answers.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Flag, Record, Text, Values, Whole


class DepthLevel(Record, kw_only=True):
    """The depth within one distance from the mid price."""

    bps: Annotated[
        int, k.COUNT("distance: 10, 25, 50, 100, 200 or 500", unit="basis points", key=True)
    ]
    bid_depth_usd: Annotated[float, k.USD("cumulative bid depth within it")]
    ask_depth_usd: Annotated[float, k.USD("cumulative ask depth within it")]


class MarketDepth(Record, kw_only=True):
    """The depth of one market."""

    coin: Annotated[str, k.COIN("base coin of the market", key=True)]
    dex: Annotated[str, k.WORD("dex name")]
    levels: Annotated[list[DepthLevel], k.ROWS("one entry per distance")]


class Depth(Record, kw_only=True):
    """The depth of all markets at one moment."""

    timestamp_ms: Annotated[int, k.TIME("when the depth was computed", key=True)]
    data: Annotated[list[MarketDepth], k.ROWS("one entry per market", key=True)]


class DepthRow(Record, kw_only=True):
    """One distance of one market, as a row."""

    timestamp_ms: Annotated[int, k.TIME("when the depth was computed", key=True)]
    coin: Annotated[str, k.COIN("base coin of the market", key=True)]
    dex: Annotated[str, k.WORD("dex name")]
    bps: Annotated[
        int, k.COUNT("distance: 10, 25, 50, 100, 200 or 500", unit="basis points", key=True)
    ]
    bid_depth_usd: Annotated[float, k.USD("cumulative bid depth within it")]
    ask_depth_usd: Annotated[float, k.USD("cumulative ask depth within it")]


class SlippageSample(Record, kw_only=True):
    """What a market order of one size would have cost."""

    timestamp: Annotated[int, k.TIME("sample time", key=True)]
    dex: Annotated[str, k.WORD("dex identifier")]
    coin: Annotated[str, k.COIN("name of the market", key=True)]
    half_spread_bps: Annotated[float, k.BPS("half spread")]
    amount_usd: Annotated[float, k.USD("notional that the estimate is for")]
    buy_slippage_bps: Annotated[
        float | None, k.BPS("cost of buying, against mid; missing if liquidity is insufficient")
    ]
    sell_slippage_bps: Annotated[
        float | None, k.BPS("cost of selling, against mid; missing if liquidity is insufficient")
    ]


class PerpAsset(Record, kw_only=True):
    """One perpetual of a dex."""

    name: Annotated[str, k.COIN("name of the market", key=True)]
    sz_decimals: Annotated[int, k.COUNT("decimal places of sizes")]
    max_leverage: Annotated[int, k.COUNT("maximum leverage")]
    # Null and absent mean false (docs/live_service.md, section 1), so this column is never
    # missing. The live service writes null where it no longer sets this deprecated field.
    only_isolated: Annotated[bool, k.FLAG("whether only isolated margin is allowed")] = False
    margin_table_id: Annotated[
        Whole, k.ID("margin table; below 50: one tier with that leverage", beyond=4)
    ] = UNSET
    is_delisted: Annotated[Flag, k.FLAG("whether it is delisted", beyond=1, is_presence=True)] = (
        UNSET
    )
    margin_mode: Annotated[
        Text, k.WORD("strictIsolated or noCross; missing: no restriction", beyond=1)
    ] = UNSET
    growth_mode: Annotated[Text, k.WORD("enabled, or missing", beyond=1)] = UNSET
    last_growth_mode_change_time: Annotated[
        Text, k.ISO_TIME("when growth mode last changed", beyond=1)
    ] = UNSET
    deployer_fee_scale: Annotated[Text, k.RATE("deployer's share of the fees", beyond=1)] = UNSET
    last_fee_scale_change_time: Annotated[
        Text, k.TEXT("when the deployer's fee scale last changed, as written", beyond=1)
    ] = UNSET


class MarginTier(Record, kw_only=True):
    """One tier of a margin table: the maximum leverage above a given notional."""

    lower_bound: Annotated[Text, k.USD("notional from which the tier applies", beyond=4)] = UNSET
    max_leverage: Annotated[Whole, k.COUNT("maximum leverage in the tier", beyond=4)] = UNSET


class MarginTable(Record, kw_only=True):
    """The maximum leverage by the notional of a position."""

    description: Annotated[Text, k.TEXT("description", beyond=4)] = UNSET
    margin_tiers: Annotated[list[MarginTier], k.ROWS("the tiers", beyond=4)]


class Meta(Record, kw_only=True):
    """The perpetuals of a dex."""

    universe: Annotated[list[PerpAsset], k.ROWS("perp asset metadata", key=True)]
    margin_tables: Annotated[
        list[tuple[int, MarginTable]] | UnsetType, k.ROWS("pairs of id and margin table", beyond=4)
    ] = UNSET
    collateral_token: Annotated[Whole, k.ID("spot token of the collateral; 0: USDC", beyond=6)] = (
        UNSET
    )
    deployer_fee_scale: Annotated[Text, k.RATE("deployer's share of the fees", beyond=1)] = UNSET
    last_fee_scale_change_time: Annotated[
        Text, k.TEXT("when the deployer's fee scale last changed, as written", beyond=1)
    ] = UNSET


class MetaRow(PerpAsset, kw_only=True):
    """One perpetual with the values of its dex, as a row."""

    collateral_token: Annotated[
        Whole, k.ID("spot token of the collateral; 0: USDC; the same for the whole dex", beyond=6)
    ] = UNSET


class MarginTierRow(Record, kw_only=True):
    """One tier of a margin table, as a row."""

    margin_table_id: Annotated[int, k.ID("margin table", beyond=4, key=True)]
    description: Annotated[Text, k.TEXT("description of the table", beyond=4)] = UNSET
    tier: Annotated[int, k.COUNT("number of the tier in its table, from 0", beyond=4, key=True)]
    lower_bound: Annotated[Text, k.USD("notional from which the tier applies", beyond=4)] = UNSET
    max_leverage: Annotated[Whole, k.COUNT("maximum leverage in the tier", beyond=4)] = UNSET


class AssetContext(Record, kw_only=True):
    """The market state of one perpetual.

    The specification does not show its fields; they come from public documentation
    and recorded answers.
    """

    funding: Annotated[str, k.RATE("current hourly funding rate")]
    open_interest: Annotated[str, k.SIZE("open interest")]
    prev_day_px: Annotated[str, k.PRICE("price a day before")]
    day_ntl_vlm: Annotated[str, k.USD("volume of the last day")]
    premium: Annotated[str | None, k.RATE("premium of the mark over the oracle price")]
    oracle_px: Annotated[str, k.PRICE("oracle price")]
    mark_px: Annotated[str, k.PRICE("mark price")]
    mid_px: Annotated[str | None, k.PRICE("mid price; missing when the book is empty")]
    impact_pxs: Annotated[list[str] | None, k.NESTED("impact prices, bid and ask")]
    day_base_vlm: Annotated[Text, k.SIZE("volume of the last day; older answers lack it")] = UNSET


class ContextRow(Record, kw_only=True):
    """One perpetual with its market state, as a row."""

    asset: Annotated[PerpAsset, k.NESTED("the perpetual", key=True)]
    context: Annotated[AssetContext, k.NESTED("its market state")]
    collateral_token: Annotated[
        Whole, k.ID("spot token of the collateral; 0: USDC; the same for the whole dex", beyond=6)
    ] = UNSET


class PerpDexLimits(Record, kw_only=True):
    """The limits of a builder-deployed dex."""

    total_oi_cap: Annotated[str, k.USD("total open-interest cap of the dex")]
    oi_sz_cap_per_perp: Annotated[str, k.SIZE("open-interest size cap per perp")]
    max_transfer_ntl: Annotated[str, k.USD("maximum transfer notional")]
    coin_to_oi_cap: Annotated[list[tuple[str, str]], k.ROWS("pairs of coin and cap")]


class CoinCapRow(Record, kw_only=True):
    """The open-interest cap of one coin, as a row."""

    coin: Annotated[str, k.COIN("name of the market", key=True)]
    oi_cap: Annotated[str, k.USD("open-interest cap")]


class PerpDex(Record, kw_only=True):
    """A builder-deployed dex."""

    name: Annotated[str, k.WORD("dex name")]
    full_name: Annotated[str, k.TEXT("long name")]
    deployer: Annotated[str, k.ADDRESS("address of the deployer")]
    oracle_updater: Annotated[str | None, k.ADDRESS("address that sets the oracle prices")]
    fee_recipient: Annotated[str | None, k.ADDRESS("address that receives the deployer's fees")]
    asset_to_streaming_oi_cap: Annotated[
        Values, k.NESTED("pairs of coin and open-interest cap in USD")
    ] = UNSET
    sub_deployers: Annotated[
        Values, k.NESTED("pairs of an action and the addresses that may perform it")
    ] = UNSET
    deployer_fee_scale: Annotated[
        Text, k.RATE("fee of the deployer, as a share of the exchange's fee")
    ] = UNSET
    last_deployer_fee_scale_change_time: Annotated[
        Text, k.TEXT("time of the last change of deployer_fee_scale")
    ] = UNSET
    asset_to_funding_multiplier: Annotated[
        Values, k.NESTED("pairs of coin and funding multiplier")
    ] = UNSET
    asset_to_funding_interest_rate: Annotated[
        Values, k.NESTED("pairs of coin and interest rate")
    ] = UNSET


class MidRow(Record, kw_only=True):
    """The mid price of one market, as a row."""

    coin: Annotated[str, k.COIN("name of the market")]
    mid_px: Annotated[str, k.PRICE("mid price")]


class FundingRate(Record, kw_only=True):
    """The funding rate of one coin at one hour."""

    coin: Annotated[str, k.COIN("name of the market", key=True)]
    funding_rate: Annotated[str, k.RATE("rate of one payment; positive: longs pay", key=True)]
    premium: Annotated[str | None, k.RATE("premium of the perp's price over the oracle price")]
    time: Annotated[int, k.TIME("time of the funding payment", key=True)]


class Candle(Record, kw_only=True):
    """The trades of one coin in one interval."""

    start_time: Annotated[int, k.TIME("first moment of the interval", key=True)] = msgspec.field(
        name="t"
    )
    end_time: Annotated[int, k.TIME("last moment of the interval")] = msgspec.field(name="T")
    coin: Annotated[str, k.COIN("name of the market")] = msgspec.field(name="s")
    interval: Annotated[str, k.WORD("length: 1s, 1m, 1h, 1d, ...")] = msgspec.field(name="i")
    open: Annotated[str, k.PRICE("price of the first trade")] = msgspec.field(name="o")
    close: Annotated[str, k.PRICE("price of the last trade")] = msgspec.field(name="c")
    high: Annotated[str, k.PRICE("highest price")] = msgspec.field(name="h")
    low: Annotated[str, k.PRICE("lowest price")] = msgspec.field(name="l")
    volume: Annotated[str, k.SIZE("traded size")] = msgspec.field(name="v")
    trades: Annotated[int, k.COUNT("number of trades")] = msgspec.field(name="n")


class OpenInterest(Record, kw_only=True):
    """The open interest of one market in one interval: all longs and all shorts."""

    time: Annotated[int, k.TIME("first moment of the interval", key=True)] = msgspec.field(name="t")
    oi_open: Annotated[Text, k.SIZE("open interest at the first moment; longs plus shorts")] = UNSET
    oi_high: Annotated[Text, k.SIZE("highest open interest of a minute")] = UNSET
    oi_low: Annotated[Text, k.SIZE("lowest open interest of a minute")] = UNSET
    oi_close: Annotated[Text, k.SIZE("open interest at the last moment; longs plus shorts")] = UNSET
    oi_usd: Annotated[str | None, k.USD("open interest at the last moment; longs plus shorts")]


class BookLevel(Record, kw_only=True):
    """One price level of an order book."""

    px: Annotated[str, k.PRICE("price", key=True)]
    sz: Annotated[str, k.SIZE("size at this price", key=True)]
    orders: Annotated[int, k.COUNT("number of orders at this price")] = msgspec.field(name="n")


class L2Book(Record, kw_only=True):
    """The order book of one market."""

    coin: Annotated[str, k.COIN("name of the market")]
    time: Annotated[int, k.TIME("time of the book")]
    levels: Annotated[
        list[list[BookLevel]], k.ROWS("bids and asks, best price first, 20 levels each at most")
    ]


class BookLevelRow(Record, kw_only=True):
    """One price level of one side of a book, as a row."""

    coin: Annotated[str, k.COIN("name of the market")]
    time: Annotated[int, k.TIME("time of the book")]
    side: Annotated[str, k.WORD("A (ask) or B (bid)")]
    level: Annotated[int, k.COUNT("position on its side of the book; 1: the best price")]
    px: Annotated[str, k.PRICE("price")]
    sz: Annotated[str, k.SIZE("size at this price")]
    orders: Annotated[int, k.COUNT("number of orders at this price")]


class PredictedFunding(Record, kw_only=True):
    """The next funding rate of a perp on one venue."""

    funding_rate: Annotated[str, k.RATE("next rate, for one interval; positive: longs pay")]
    next_funding_time: Annotated[int, k.TIME("time of the next payment")]
    funding_interval_hours: Annotated[Whole, k.COUNT("hours between two payments of the venue")] = (
        UNSET
    )


class PredictedFundingRow(Record, kw_only=True):
    """The next funding rate of a perp on one venue, as a row."""

    coin: Annotated[str, k.COIN("name of the market", key=True)]
    venue: Annotated[str, k.WORD("exchange, e.g. HlPerp, BinPerp or BybitPerp", key=True)]
    funding_rate: Annotated[
        str | None,
        k.RATE("next rate, for one interval; positive: longs pay; missing if the venue has none"),
    ]
    next_funding_time: Annotated[int | None, k.TIME("time of the next payment")]
    funding_interval_hours: Annotated[
        int | None, k.COUNT("hours between two payments of the venue")
    ]


class ExchangeStatus(Record, kw_only=True):
    """The state of the exchange."""

    time: Annotated[int, k.TIME("present time of the exchange")]
    special_statuses: Annotated[
        object | None, k.NESTED("special states; missing if there are none")
    ]


class AuctionStatus(Record, kw_only=True):
    """The state of a deploy auction."""

    start_time_seconds: Annotated[int, k.SECONDS("auction start", key=True)]
    duration_seconds: Annotated[int, k.COUNT("auction duration", unit="seconds")]
    start_gas: Annotated[str, k.AMOUNT("gas price at start")]
    current_gas: Annotated[
        str | None, k.AMOUNT("current gas price; missing if a perp auction ended")
    ]
    end_gas: Annotated[str | None, k.AMOUNT("gas price at the end; missing while in progress")]
