"""Orders and their status events. Specification, "Order status record".

Open orders and single orders: docs/live_service.md, section 9.
"""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Flag, Record, Text, Whole


class Order(Record, kw_only=True):
    """An order at the time of a status change."""

    coin: Annotated[str, k.COIN("name of the market", key=True)]
    side: Annotated[str, k.WORD("A (sell) or B (buy)", key=True)]
    limit_px: Annotated[str, k.PRICE("limit price")]
    sz: Annotated[str, k.SIZE("size still open")]
    oid: Annotated[int, k.ID("order id", key=True)]
    timestamp: Annotated[int, k.TIME("creation time")]
    trigger_condition: Annotated[str, k.TEXT("trigger condition; N/A on plain orders")]
    is_trigger: Annotated[bool, k.FLAG("whether it is a trigger order")]
    trigger_px: Annotated[str, k.PRICE("trigger price; 0.0 on plain orders")]
    children: Annotated[list["Order"], k.NESTED("take-profit and stop-loss orders of this order")]
    is_position_tpsl: Annotated[bool, k.FLAG("whether it closes the whole position")]
    reduce_only: Annotated[bool, k.FLAG("whether it may only reduce the position")]
    order_type: Annotated[str, k.WORD("Limit, Market, Stop Market, ...")]
    orig_sz: Annotated[str, k.SIZE("original size")]
    tif: Annotated[Text | None, k.WORD("time in force: Gtc, Ioc, Alo, ...")] = UNSET
    cloid: Annotated[Text | None, k.TEXT("client order id; null if it is not set")] = UNSET


class OrderStatus(Record, kw_only=True):
    """One change of an order's status; one order has several."""

    user: Annotated[Text, k.ADDRESS("user who placed the order")] = UNSET
    builder: Annotated[Text, k.ADDRESS("builder the order was placed via")] = UNSET
    builder_fee: Annotated[Whole, k.BPS("builder fee")] = UNSET
    # The mirrored API lacks it.
    tx_index: Annotated[int, k.COUNT("transaction index", lacked=True)]
    status: Annotated[str, k.WORD("order status", key=True)]
    status_timestamp: Annotated[int, k.TIME("time of the status update", key=True)]
    order: Annotated[Order, k.NESTED("the order", key=True)]


class OpenOrder(Record, kw_only=True):
    """An order that is open."""

    coin: Annotated[str, k.COIN("name of the market")]
    side: Annotated[str, k.WORD("A (sell) or B (buy)")]
    limit_px: Annotated[str, k.PRICE("limit price")]
    sz: Annotated[str, k.SIZE("size still open")]
    oid: Annotated[int, k.ID("order id")]
    timestamp: Annotated[int, k.TIME("creation time")]
    orig_sz: Annotated[str, k.SIZE("original size")]
    cloid: Annotated[Text | None, k.TEXT("client order id")] = UNSET
    reduce_only: Annotated[
        Flag, k.FLAG("whether it may only reduce the position", is_presence=True)
    ] = UNSET


class OrderLookup(Record, kw_only=True):
    """The last status of one order."""

    status: Annotated[str, k.WORD("order, or unknownOid")]
    order: Annotated[OrderStatus | UnsetType, k.NESTED("the order with its last status")] = UNSET
