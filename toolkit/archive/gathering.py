"""Archived rows and answers, as the records that a service is built from."""

import typing
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from toolkit.archive.joining import Known, Row
from toolkit.archive.series import Series
from toolkit.contract.dexes import ALL_DEXES, canonical
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.records import (
    AssetContext,
    BatchStates,
    BatchStatesByDex,
    BorrowLend,
    ClearinghouseState,
    Delegation,
    Depth,
    DexLimits,
    Fill,
    FundingRow,
    LedgerUpdate,
    Meta,
    OrderStatus,
    SlippageSample,
)

__all__ = ["HISTORIES", "Found", "take_answer"]


@dataclass(slots=True)
class Found:
    """What the archive holds, on its way to `Sources`."""

    fills: dict[str, dict[bytes, Fill]] = field(default_factory=lambda: defaultdict(dict))
    orders: dict[str, dict[bytes, OrderStatus]] = field(default_factory=lambda: defaultdict(dict))
    funding: dict[tuple[int, str, str], FundingRow] = field(default_factory=dict)
    ledger: dict[str, list[LedgerUpdate]] = field(default_factory=dict)
    slippage: list[SlippageSample] = field(default_factory=list)
    # Row -> the rows that some answer showed before it, of the same transaction.
    before: dict[Row, set[Row]] = field(default_factory=lambda: defaultdict(set))
    # Builder -> user -> the moments at which it was shown a row of the user.
    shown: dict[str, dict[str, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    metas: dict[str, Meta] = field(default_factory=dict)
    contexts: dict[str, list[AssetContext]] = field(default_factory=dict)
    limits: dict[str, DexLimits] = field(default_factory=dict)
    depth: Depth | None = None
    states: dict[str, dict[str, ClearinghouseState]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    unavailable: set[str] = field(default_factory=set)
    lent: dict[str, BorrowLend] = field(default_factory=dict)
    delegations: dict[str, list[Delegation]] = field(default_factory=dict)
    dexes: set[str] = field(default_factory=set)  # those that were asked about
    not_served: set[str] = field(default_factory=set)
    origins: set[tuple[str, bool]] = field(default_factory=set)


def _take_fills(found: Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderApprovedFillsByTime"
    known = Known(found.before, ("builder", "venue"))
    for text in texts:
        fill = _record(Fill, text)
        user = fill.user if by_builder else series.subject
        assert isinstance(user, str)
        fill.user = msgspec.UNSET
        if by_builder:
            found.shown[series.subject][user].add(fill.time)
        known.add(found.fills[user], user, fill, (fill.time, fill.tx_index))


def _take_orders(found: Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderOrdersByTime"
    known = Known(found.before, ("builder",))
    for text in texts:
        event = _record(OrderStatus, text)
        user = event.user if by_builder else series.subject
        assert isinstance(user, str)
        event.user = msgspec.UNSET
        if by_builder:
            event.builder = series.subject
        known.add(found.orders[user], user, event, (event.status_timestamp, event.tx_index))


def _take_funding(found: Found, series: Series, texts: list[bytes]) -> None:
    for text in texts:
        row = _record(FundingRow, text)
        found.shown[series.subject][row.user].add(row.time)
        found.funding[row.time, row.user, row.delta.coin] = row


def _take_ledger(found: Found, series: Series, texts: list[bytes]) -> None:
    found.ledger[series.subject] = [_record(LedgerUpdate, text) for text in texts]


def _take_slippage(found: Found, series: Series, texts: list[bytes]) -> None:
    found.slippage += [_record(SlippageSample, text) for text in texts]


HISTORIES: Final[dict[str, Callable[[Found, Series, list[bytes]], None]]] = {
    "fills": _take_fills,
    "orders": _take_orders,
    "funding": _take_funding,
    "ledger": _take_ledger,
    "slippage": _take_slippage,
}


def take_answer(found: Found, row: Mapping[str, Any]) -> None:
    """Take an answer; a later one replaces an earlier one."""
    type, asked, body = row["_operation"], msgspec.json.decode(row["_subject"]), row["_body"]
    dex = canonical(asked.get("dex") or "")
    found.dexes.add(dex)
    match type:
        case "meta":
            found.metas[dex] = _record(Meta, body)
        case "metaAndAssetCtxs":
            meta, contexts = msgspec.json.decode(body, type=tuple[msgspec.Raw, list[msgspec.Raw]])
            found.metas[dex] = _record(Meta, bytes(meta))
            found.contexts[dex] = [_record(AssetContext, bytes(one)) for one in contexts]
        case "perpDexLimits":
            if (limits := msgspec.json.decode(body, type=DexLimits | None)) is not None:
                found.limits[dex] = limits
        case "currentDepth" if asked.get("dex") is None:
            found.depth = _record(Depth, body)
        case "batchClearinghouseStates":
            _take_states(found, asked, body)
        case "borrowLendUserState":
            found.lent[asked["user"]] = _record(BorrowLend, body)
        case "delegations":
            found.delegations[asked["user"]] = msgspec.json.decode(body, type=list[Delegation])
        case "userFills" if _is_whole(asked):
            _take_latest(found, type, asked["user"], body)
        case "historicalOrders":
            _take_latest(found, type, asked["user"], body)
        case _:
            found.not_served.add(type)


def _is_whole(asked: Mapping[str, Any]) -> bool:
    return not asked.get("aggregateByTime")


def _take_latest(found: Found, type: str, user: str, body: bytes) -> None:
    texts = [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
    HISTORIES["fills" if type == "userFills" else "orders"](
        found, Series(OPERATIONS[type], user, {}), texts
    )


def _take_states(found: Found, asked: Mapping[str, Any], body: bytes) -> None:
    if asked.get("dex") == ALL_DEXES:
        by_dex = msgspec.json.decode(body, type=BatchStatesByDex)
        for user, states in by_dex.successful_states:
            for dex, state in states.items():
                found.states[canonical(dex)][user] = state
        found.unavailable.update(by_dex.failed_wallets)
        return
    answer = msgspec.json.decode(body, type=BatchStates)
    for user, state in answer.successful_states:
        found.states[canonical(asked.get("dex") or "")][user] = state
    found.unavailable.update(answer.failed_wallets)


def _record(record: Any, text: bytes) -> Any:
    """Read a record as the service would write it; old recordings lack fields."""
    try:
        return msgspec.json.decode(text, type=record, strict=False)
    except msgspec.ValidationError:
        row = msgspec.json.decode(text)
    hints = typing.get_type_hints(record)
    values = {
        one.name: msgspec.convert(row[one.encode_name], hints[one.name], strict=False)
        for one in msgspec.structs.fields(record)
        if one.encode_name in row
    }
    for one in msgspec.structs.fields(record):
        if one.required:
            values.setdefault(one.name, 0 if one.name == "tx_index" else msgspec.UNSET)
    return record(**values)
