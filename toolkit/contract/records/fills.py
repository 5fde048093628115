"""Fills. Specification, "Fill record". Fills of TWAPs: docs/live_service.md, section 9."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from toolkit.contract import value_kinds as k
from toolkit.contract.records.record import Record, Text


class Liquidation(Record, kw_only=True):
    """The liquidation that a fill is part of; both sides of the trade have it."""

    liquidated_user: Annotated[Text, k.ADDRESS("account that is liquidated", beyond=2)] = UNSET
    mark_px: Annotated[
        str, k.PRICE("mark price of the liquidation", column="liquidation_mark_px", beyond=2)
    ]
    method: Annotated[str, k.WORD("market or backstop", column="liquidation_method", beyond=2)]


class Fill(Record, kw_only=True):
    """One fill: the execution of an order or of a part of it."""

    coin: Annotated[
        str, k.COIN("name of the market; `<dex>:` in front on a builder-deployed dex", key=True)
    ]
    px: Annotated[str, k.PRICE("fill price", key=True)]
    sz: Annotated[str, k.SIZE("fill size", key=True)]
    side: Annotated[str, k.WORD("A (sell) or B (buy)", key=True)]
    time: Annotated[int, k.TIME("fill time", key=True)]
    start_position: Annotated[str, k.SIZE("position before the fill; negative: short")]
    dir: Annotated[str, k.WORD("direction, e.g. Open Long, Close Short, Settlement")]
    closed_pnl: Annotated[
        str, k.USD("closed PnL of the fill, before fees and funding; negative: a loss")
    ]
    hash: Annotated[str, k.TEXT("transaction hash")]
    oid: Annotated[int, k.ID("order id; repeats in partial fills", key=True)]
    crossed: Annotated[bool, k.FLAG("whether the order crossed the spread (taker)")]
    fee: Annotated[str, k.FEE("fee paid, including builder and deployer fee; negative: received")]
    # Recordings of 2023 and the mirrored API lack the fields that are marked as `lacked`.
    tid: Annotated[int, k.ID("trade id; 0 on dust conversions", lacked=True)]
    cloid: Annotated[Text, k.TEXT("client order id")] = UNSET
    builder_fee: Annotated[Text, k.FEE("part of fee for the builder")] = UNSET
    deployer_fee: Annotated[
        Text, k.FEE("part of fee for the dex deployer; builder-deployed dexes")
    ] = UNSET
    priority_gas: Annotated[
        Text, k.NATIVE("priority gas fee in HYPE, the native token of the chain")
    ] = UNSET
    fee_token: Annotated[str, k.COIN("token the fee is paid in, e.g. USDC", lacked=True)]
    builder: Annotated[Text | None, k.ADDRESS("builder the order was routed through")] = UNSET
    twap_id: Annotated[
        int | None,
        k.ID("TWAP order id; missing if the fill is not part of a TWAP order", lacked=True),
    ]
    tx_index: Annotated[int, k.COUNT("transaction index", lacked=True)]
    venue: Annotated[Text, k.WORD("venue of an outcome market")] = UNSET
    user: Annotated[Text, k.ADDRESS("user who made the fill")] = UNSET
    liquidation: Annotated[
        Liquidation | UnsetType, k.NESTED("the liquidation that the fill is part of", beyond=2)
    ] = UNSET
    fee_trial_escrow: Annotated[
        Text, k.FEE("part of fee that a fee trial holds back", beyond=1)
    ] = UNSET
    liquidation_mark_px: Annotated[
        Text,
        k.PRICE("mark price of the liquidation", older_place_of="liquidation_mark_px", beyond=1),
    ] = UNSET


class TwapSliceFill(Record, kw_only=True):
    """A fill of a TWAP order."""

    fill: Annotated[Fill, k.NESTED("the fill", key=True)]
    twap_id: Annotated[int, k.ID("TWAP order id")]
