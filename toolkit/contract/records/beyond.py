"""Answers of operations beyond the specification. docs/live_service.md, section 9.

Records named ``...Row`` are not on the wire: they are the rows of frames whose answers nest.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from toolkit.contract.kinds import (
    ADDRESS,
    AMOUNT,
    COIN,
    COUNT,
    FLAG,
    ID,
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
from toolkit.contract.records.accounts import ClearinghouseState
from toolkit.contract.records.fills import Fill
from toolkit.contract.records.orders import OrderStatus
from toolkit.contract.records.record import Record, Text
from toolkit.contract.records.spot import SpotState

__all__ = [
    "BookLevel",
    "BookLevelRow",
    "Candle",
    "DelegatorEvent",
    "DelegatorReward",
    "DelegatorSummary",
    "ExchangeStatus",
    "FundingRate",
    "L2Book",
    "MidRow",
    "OpenOrder",
    "OrderLookup",
    "PerpDex",
    "Portfolio",
    "PortfolioRow",
    "SubAccount",
    "SubAccountRow",
    "TwapSliceFill",
    "TwapSliceRow",
    "UserFees",
    "UserRateLimit",
    "UserRole",
    "VaultEquity",
]


class PerpDex(Record, kw_only=True):
    """A builder-deployed dex."""

    name: Annotated[str, WORD("dex name")]
    full_name: Annotated[str, TEXT("long name")]
    deployer: Annotated[str, ADDRESS("deployer")]
    oracle_updater: Annotated[str | None, ADDRESS("who sets its oracle prices")]
    fee_recipient: Annotated[str | None, ADDRESS("who gets the deployer's fees")]
    asset_to_streaming_oi_cap: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and open-interest cap in USD")
    ] = UNSET
    sub_deployers: Annotated[
        list[object] | UnsetType, NESTED("pairs of action and addresses that may do it")
    ] = UNSET
    deployer_fee_scale: Annotated[Text, RATE("share of fees that the deployer adds")] = UNSET
    last_deployer_fee_scale_change_time: Annotated[Text, TEXT("when it last changed")] = UNSET
    asset_to_funding_multiplier: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and funding multiplier")
    ] = UNSET
    asset_to_funding_interest_rate: Annotated[
        list[object] | UnsetType, NESTED("pairs of coin and interest rate")
    ] = UNSET


class MidRow(Record, kw_only=True):
    """The mid price of one market, as a row."""

    coin: Annotated[str, COIN("asset symbol, or name of the spot market")]
    mid_px: Annotated[str, PRICE("mid price")]


class FundingRate(Record, kw_only=True):
    """The funding rate of one coin at one hour."""

    coin: Annotated[str, COIN("asset symbol")]
    funding_rate: Annotated[str, RATE("funding rate applied; positive: longs pay")]
    premium: Annotated[str | None, RATE("premium that the rate was computed from")]
    time: Annotated[int, TIME("time of the funding block")]


class Candle(Record, kw_only=True):
    """The trades of one coin in one interval."""

    start_time: Annotated[int, TIME("first moment of the interval")] = msgspec.field(name="t")
    end_time: Annotated[int, TIME("last moment of the interval")] = msgspec.field(name="T")
    coin: Annotated[str, COIN("asset symbol")] = msgspec.field(name="s")
    interval: Annotated[str, WORD("length: 1m, 1h, 1d, ...")] = msgspec.field(name="i")
    open: Annotated[str, PRICE("price of the first trade")] = msgspec.field(name="o")
    close: Annotated[str, PRICE("price of the last trade")] = msgspec.field(name="c")
    high: Annotated[str, PRICE("highest price")] = msgspec.field(name="h")
    low: Annotated[str, PRICE("lowest price")] = msgspec.field(name="l")
    volume: Annotated[str, SIZE("traded size")] = msgspec.field(name="v")
    trades: Annotated[int, COUNT("number of trades")] = msgspec.field(name="n")


class BookLevel(Record, kw_only=True):
    """One price level of an order book."""

    px: Annotated[str, PRICE("price", key=True)]
    sz: Annotated[str, SIZE("size that rests there", key=True)]
    orders: Annotated[int, COUNT("number of orders that rest there")] = msgspec.field(name="n")


class L2Book(Record, kw_only=True):
    """The order book of one market."""

    coin: Annotated[str, COIN("asset symbol")]
    time: Annotated[int, TIME("when the book was like this")]
    levels: Annotated[
        list[list[BookLevel]], ROWS("bids and asks, best price first, 20 levels each at most")
    ]


class BookLevelRow(Record, kw_only=True):
    """One price level of one side of a book, as a row."""

    coin: Annotated[str, COIN("asset symbol")]
    time: Annotated[int, TIME("when the book was like this")]
    side: Annotated[str, WORD("A (ask) or B (bid)")]
    level: Annotated[int, COUNT("place in its side; 1: the best price")]
    px: Annotated[str, PRICE("price")]
    sz: Annotated[str, SIZE("size that rests there")]
    orders: Annotated[int, COUNT("number of orders that rest there")]


class OpenOrder(Record, kw_only=True):
    """An order that is open."""

    coin: Annotated[str, COIN("asset symbol")]
    side: Annotated[str, WORD("A (sell) or B (buy)")]
    limit_px: Annotated[str, PRICE("limit price")]
    sz: Annotated[str, SIZE("size still open")]
    oid: Annotated[int, ID("order id")]
    timestamp: Annotated[int, TIME("creation time")]
    orig_sz: Annotated[str, SIZE("original size")]
    cloid: Annotated[str | UnsetType | None, TEXT("client order id")] = UNSET
    reduce_only: Annotated[bool | UnsetType, FLAG("whether it may only reduce the position")] = (
        UNSET
    )


class OrderLookup(Record, kw_only=True):
    """What is known of one order."""

    status: Annotated[str, WORD("order, or unknownOid")]
    order: Annotated[OrderStatus | UnsetType, NESTED("the order with its last status")] = UNSET


class TwapSliceFill(Record, kw_only=True):
    """A fill of a TWAP order."""

    fill: Annotated[Fill, NESTED("the fill")]
    twap_id: Annotated[int, ID("TWAP order id")]


class TwapSliceRow(Record, kw_only=True):
    """A fill of a TWAP order, as a row."""

    fill: Annotated[Fill, NESTED("the fill")]


class DelegatorSummary(Record, kw_only=True):
    """What a user has staked."""

    delegated: Annotated[str, AMOUNT("delegated to validators", unit="native token")]
    undelegated: Annotated[str, AMOUNT("staked, but not delegated", unit="native token")]
    total_pending_withdrawal: Annotated[str, AMOUNT("on its way out", unit="native token")]
    n_pending_withdrawals: Annotated[int, COUNT("withdrawals on their way out")]


class DelegatorEvent(Record, kw_only=True):
    """A change of what a user has staked or delegated."""

    time: Annotated[int, TIME("when it happened")]
    hash: Annotated[str, TEXT("transaction hash")]
    delta: Annotated[object, NESTED("what changed: delegate, cDeposit or withdrawal")]


class DelegatorReward(Record, kw_only=True):
    """A staking reward of one day."""

    time: Annotated[int, TIME("when it was distributed")]
    source: Annotated[str, WORD("delegation or commission")]
    total_amount: Annotated[str, AMOUNT("reward", unit="native token")]


class VaultEquity(Record, kw_only=True):
    """What a user has in one vault."""

    vault_address: Annotated[str, ADDRESS("vault")]
    equity: Annotated[str, USD("value of the user's share")]
    locked_until_timestamp: Annotated[int | UnsetType, TIME("when it may be withdrawn")] = UNSET


class SubAccount(Record, kw_only=True):
    """A sub-account with its state."""

    name: Annotated[str, TEXT("name of the sub-account")]
    sub_account_user: Annotated[str, ADDRESS("sub-account")]
    master: Annotated[str, ADDRESS("account it belongs to")]
    clearinghouse_state: Annotated[ClearinghouseState, ROWS("its perp account")]
    spot_state: Annotated[SpotState, ROWS("its spot balances")]


class SubAccountRow(Record, kw_only=True):
    """A sub-account, as a row."""

    name: Annotated[str, TEXT("name of the sub-account")]
    sub_account_user: Annotated[str, ADDRESS("sub-account")]
    master: Annotated[str, ADDRESS("account it belongs to")]


class UserRole(Record, kw_only=True):
    """What an address is to the exchange."""

    role: Annotated[str, WORD("user, vault, agent, subAccount or missing")]
    data: Annotated[object | UnsetType, NESTED("whose agent or sub-account it is")] = UNSET


class UserFees(Record, kw_only=True):
    """What a user pays for trades."""

    daily_user_vlm: Annotated[list[object], NESTED("volume of each of the last days")]
    fee_schedule: Annotated[object, NESTED("the exchange's rates")]
    user_cross_rate: Annotated[str, RATE("taker fee on perps")]
    user_add_rate: Annotated[str, RATE("maker fee on perps; negative: rebate")]
    user_spot_cross_rate: Annotated[str, RATE("taker fee on spot")]
    user_spot_add_rate: Annotated[str, RATE("maker fee on spot; negative: rebate")]
    active_referral_discount: Annotated[str, RATE("discount by referral")]
    trial: Annotated[object | None, NESTED("fee trial; missing when there is none")]
    fee_trial_escrow: Annotated[Text, AMOUNT("fees held back by a trial")] = UNSET
    next_trial_available_timestamp: Annotated[
        int | UnsetType | None, TIME("when the next trial may begin")
    ] = UNSET
    staking_link: Annotated[object | None, NESTED("linked staking account")] = None
    active_staking_discount: Annotated[object | None, NESTED("discount by staking")] = None


class UserRateLimit(Record, kw_only=True):
    """How many requests an address may send to the exchange."""

    cum_vlm: Annotated[str, USD("volume traded so far")]
    n_requests_used: Annotated[int, COUNT("requests used")]
    n_requests_cap: Annotated[int, COUNT("requests allowed")]
    n_requests_surplus: Annotated[int | UnsetType, COUNT("requests bought")] = UNSET


class Portfolio(Record, kw_only=True):
    """The history of an account in one period."""

    account_value_history: Annotated[list[tuple[int, str]], ROWS("pairs of time and value")]
    pnl_history: Annotated[list[tuple[int, str]], ROWS("pairs of time and PnL in the period")]
    vlm: Annotated[str, USD("volume traded in the period")]


class PortfolioRow(Record, kw_only=True):
    """The value and PnL of an account at one moment of one period, as a row."""

    period: Annotated[str, WORD("day, week, month or allTime; perp in front: perps only")]
    time: Annotated[int, TIME("when")]
    account_value: Annotated[str, USD("account value")]
    pnl: Annotated[str | None, USD("PnL since the period began")]
    vlm: Annotated[str, USD("volume traded in the whole period")]


class ExchangeStatus(Record, kw_only=True):
    """The state of the exchange."""

    time: Annotated[int, TIME("present time of the exchange")]
    special_statuses: Annotated[object | None, NESTED("special states; missing when none")]
