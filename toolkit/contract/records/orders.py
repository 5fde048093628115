"""Orders and their status events. Specification, "Order status record".

Open orders and single orders: docs/live_service.md, section 9.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract.records.record import Record, Text
from toolkit.contract.value_kinds import (
    ADDRESS,
    BPS,
    COIN,
    COUNT,
    FLAG,
    ID,
    NESTED,
    PRICE,
    SIZE,
    TEXT,
    TIME,
    WORD,
)


class Order(Record, kw_only=True):
    """An order at the time of a status change."""

    coin: Annotated[str, COIN("name of the market", key=True)]
    side: Annotated[str, WORD("A (sell) or B (buy)", key=True)]
    limit_px: Annotated[str, PRICE("limit price")]
    sz: Annotated[str, SIZE("size still open")]
    oid: Annotated[int, ID("order id", key=True)]
    timestamp: Annotated[int, TIME("creation time")]
    trigger_condition: Annotated[str, TEXT("trigger condition; N/A on plain orders")]
    is_trigger: Annotated[bool, FLAG("whether it is a trigger order")]
    trigger_px: Annotated[str, PRICE("trigger price; 0.0 on plain orders")]
    children: Annotated[list["Order"], NESTED("take-profit and stop-loss orders of this order")]
    is_position_tpsl: Annotated[bool, FLAG("whether it closes the whole position")]
    reduce_only: Annotated[bool, FLAG("whether it may only reduce the position")]
    order_type: Annotated[str, WORD("Limit, Market, Stop Market, ...")]
    orig_sz: Annotated[str, SIZE("original size")]
    tif: Annotated[str | UnsetType | None, WORD("time in force: Gtc, Ioc, Alo, ...")] = UNSET
    cloid: Annotated[str | UnsetType | None, TEXT("client order id; null if it is not set")] = UNSET


class OrderStatus(Record, kw_only=True):
    """One change of an order's status; one order has several."""

    user: Annotated[Text, ADDRESS("user who placed the order")] = UNSET
    builder: Annotated[Text, ADDRESS("builder the order was placed via")] = UNSET
    builder_fee: Annotated[int | UnsetType, BPS("builder fee")] = UNSET
    tx_index: Annotated[int, COUNT("transaction index", missing_reason="the mirrored API lacks it")]
    status: Annotated[str, WORD("order status", key=True)]
    status_timestamp: Annotated[int, TIME("time of the status update", key=True)]
    order: Annotated[Order, NESTED("the order", key=True)]


class OpenOrder(Record, kw_only=True):
    """An order that is open."""

    coin: Annotated[str, COIN("name of the market")]
    side: Annotated[str, WORD("A (sell) or B (buy)")]
    limit_px: Annotated[str, PRICE("limit price")]
    sz: Annotated[str, SIZE("size still open")]
    oid: Annotated[int, ID("order id")]
    timestamp: Annotated[int, TIME("creation time")]
    orig_sz: Annotated[str, SIZE("original size")]
    cloid: Annotated[str | UnsetType | None, TEXT("client order id")] = UNSET
    reduce_only: Annotated[
        bool | UnsetType, FLAG("whether it may only reduce the position", is_presence=True)
    ] = UNSET


class OrderLookup(Record, kw_only=True):
    """The last status of one order."""

    status: Annotated[str, WORD("order, or unknownOid")]
    order: Annotated[OrderStatus | UnsetType, NESTED("the order with its last status")] = UNSET
