"""Archived rows and answers, as the records that a service is built from."""

import graphlib
import operator
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from toolkit.archive.series import Series
from toolkit.completeness.subjects import evidence_names
from toolkit.contract.dexes import ALL_DEXES, canonical_dex
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import key_getter
from toolkit.contract.recorded import join_records, read_record
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
from toolkit.contract.requests import check_request
from toolkit.contract.sources import HistoryCoverage
from toolkit.errors import ArchiveError

__all__ = ["HISTORIES", "Found", "Known", "Latest", "Name", "Row", "in_order", "take_answer"]

Name = tuple[Any, ...]
"""What tells a row of an account: which event it is of, and its number among rows of that event."""

Row = tuple[str, Name]
"""What tells a row: the user and the row's name."""


class Known:
    """Joins the rows of one answer with the same rows of others.

    Two answers may write one event differently: other operations show other fields, a later
    service new ones, and frames that were ingested the numbers without their zeros.

    Parameters
    ----------
    before : dict
        Gains which row came before which, within a transaction.
    event : callable
        Gives the fields of a row that say which event it is.
    """

    def __init__(self, before: dict[Row, set[Row]], event: Callable[[Any], Name]) -> None:
        self._before = before
        self._event = event
        self._count: dict[tuple[str, Name], int] = defaultdict(int)
        self._last: tuple[tuple[int, int], Row] | None = None

    def add(self, rows: dict[Name, Any], user: str, row: Any, moment: tuple[int, int]) -> None:
        """Add a row, or what it says more than the same row of another operation."""
        event = self._event(row)
        # Rows of one answer are different events, however alike: each is told by which it is.
        self._count[user, event] += 1
        name = (self._count[user, event], *event)
        held = rows.setdefault(name, row)
        if held is not row:
            rows[name] = join_records(held, row)
        if self._last is not None and self._last[0] == moment:
            self._before[user, name].add(self._last[1])
        self._last = (moment, (user, name))


def in_order(
    rows: Mapping[str, Mapping[Name, Any]],
    key: tuple[str, str],
    before: Mapping[Row, set[Row]],
) -> list[tuple[str, Any]]:
    """Order rows by transaction, and within one as every answer showed them."""
    moment = operator.attrgetter(*key)
    grouped: dict[Any, dict[Row, Any]] = defaultdict(dict)
    for user, some in rows.items():
        for name, row in some.items():
            grouped[moment(row)][user, name] = row
    return [
        (one[0], group[one])
        for _, group in sorted(grouped.items())
        for one in _executed(list(group), before)
    ]


def _executed(rows: list[Row], before: Mapping[Row, set[Row]]) -> list[Row]:
    """Order the rows of a transaction; answers that disagree are followed row by row."""
    if len(rows) == 1:
        return rows
    sorter = graphlib.TopologicalSorter({one: before.get(one, set()) for one in rows})
    try:
        return list(sorter.static_order())
    except graphlib.CycleError:
        return rows


@dataclass(frozen=True, slots=True)
class Latest:
    """One answer with the latest rows of a user.

    Attributes
    ----------
    operation : Operation
        What was asked.
    parameters : mapping
        Python name -> value: the user, filters, how many rows.
    keys : sequence of (int, int)
        The keys of its rows.
    """

    operation: Operation
    parameters: Mapping[str, Any]
    keys: Sequence[tuple[Any, ...]]


@dataclass(slots=True)
class Found:
    """What the archive holds, on its way to `Sources`."""

    fills: dict[str, dict[Name, Fill]] = field(default_factory=lambda: defaultdict(dict))
    orders: dict[str, dict[Name, OrderStatus]] = field(default_factory=lambda: defaultdict(dict))
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
    limits: dict[str, DexLimits | None] = field(default_factory=dict)
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
    # Of what is proved, by the names of `toolkit.completeness.subjects`.
    histories: dict[str, HistoryCoverage] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    latest: dict[str, Latest] = field(default_factory=dict)
    stated: dict[str, bool] = field(default_factory=dict)  # whether the state could be had


# The fields that say which fill, and which change of an order, a row is of.
_FILL: Final = operator.attrgetter("time", "tx_index", "coin", "side", "oid", "tid")
_EVENT: Final = operator.attrgetter("status_timestamp", "tx_index", "order.oid", "status")


def _take_fills(found: Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderApprovedFillsByTime"
    known = Known(found.before, _FILL)
    for text in texts:
        fill = _record(Fill, text)
        user = fill.user if by_builder else series.subject
        if not isinstance(user, str):
            raise _unplaced(series, "user")
        fill.user = msgspec.UNSET
        if by_builder:
            found.shown[series.subject][user].add(fill.time)
        known.add(found.fills[user], user, fill, (fill.time, fill.tx_index))


def _take_orders(found: Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderOrdersByTime"
    known = Known(found.before, _EVENT)
    for text in texts:
        event = _record(OrderStatus, text)
        user = event.user if by_builder else series.subject
        if not isinstance(user, str):
            raise _unplaced(series, "user")
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
    samples = [_record(SlippageSample, text) for text in texts]
    if not all(isinstance(one.amount_usd, int | float | str) for one in samples):
        raise _unplaced(series, "amountUsd")
    found.slippage += samples


def _unplaced(series: Series, field: str) -> ArchiveError:
    """Return the error for a row that lacks what says where it belongs."""
    return ArchiveError(
        f"{series.operation.type} of {series.subject}: an archived row has no {field}, so a "
        "service cannot place it. The archive's frame() still reads it"
    )


HISTORIES: Final[dict[str, Callable[[Found, Series, list[bytes]], None]]] = {
    "fills": _take_fills,
    "orders": _take_orders,
    "funding": _take_funding,
    "ledger": _take_ledger,
    "slippage": _take_slippage,
}


def take_answer(found: Found, row: Mapping[str, Any]) -> None:
    """Take an answer; a later one replaces an earlier one."""
    operation, body = OPERATIONS[row["_operation"]], row["_body"]
    asked = check_request(operation, msgspec.json.decode(row["_subject"]))
    dex = canonical_dex(asked.get("dex") or "")
    found.dexes.add(dex)
    match operation.type:
        case "meta":
            _take_meta(found, dex, _record(Meta, body))
        case "metaAndAssetCtxs":
            meta, contexts = msgspec.json.decode(body, type=tuple[msgspec.Raw, list[msgspec.Raw]])
            found.metas[dex] = _record(Meta, bytes(meta))
            found.contexts[dex] = [_record(AssetContext, bytes(one)) for one in contexts]
        case "perpDexLimits":
            found.limits[dex] = None if body.strip() == b"null" else _record(DexLimits, body)
        case "currentDepth" if asked["dex"] is None:
            found.depth = _record(Depth, body)
        case "batchClearinghouseStates":
            _take_states(found, asked, body)
            return
        case "borrowLendUserState":
            found.lent[asked["user"]] = _record(BorrowLend, body)
        case "delegations":
            rows = msgspec.json.decode(body, type=list[msgspec.Raw])
            found.delegations[asked["user"]] = [_record(Delegation, bytes(one)) for one in rows]
        case "userFills" | "historicalOrders" if not asked.get("aggregate_by_time"):
            _take_latest(found, operation, asked, body)
            return
        case _:
            found.not_served.add(operation.type)
            return
    found.answered.update(evidence_names(operation, asked))


def _take_meta(found: Found, dex: str, meta: Meta) -> None:
    """Take the perps of a dex; the states of its markets were those of its perps then."""
    if found.metas.get(dex) != meta:
        found.contexts.pop(dex, None)
        found.answered.difference_update(
            evidence_names(OPERATIONS["metaAndAssetCtxs"], {"dex": dex})
        )
    found.metas[dex] = meta


def _take_latest(found: Found, operation: Operation, asked: Mapping[str, Any], body: bytes) -> None:
    texts = [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
    name = "fills" if operation.type == "userFills" else "orders"
    HISTORIES[name](found, Series(operation, asked["user"], {}), texts)
    rows = [_record(operation.tables[0].record, text) for text in texts]
    (question,) = evidence_names(operation, asked)
    found.latest[question] = Latest(operation, asked, list(map(key_getter(operation), rows)))


def _take_states(found: Found, asked: Mapping[str, Any], body: bytes) -> None:
    """Take states, of which the latest answer counts; who had none has none anywhere."""
    states: list[tuple[str, Mapping[str, ClearinghouseState]]]
    if asked["dex"] == ALL_DEXES:
        by_dex = _record(BatchStatesByDex, body)
        states, failed = list(by_dex.successful_states), by_dex.failed_wallets
    else:
        answer = _record(BatchStates, body)
        states = [(user, {asked["dex"]: one}) for user, one in answer.successful_states]
        failed = answer.failed_wallets
    for user, some in states:
        for dex, state in some.items():
            if state is not None:
                found.states[canonical_dex(dex)][user] = state
    had, failed = [user for user, _ in states], failed or []  # UNSET and None are false
    found.unavailable.difference_update(had)
    found.unavailable.update(failed)
    for users, could in ((had, True), (failed, False)):
        names = evidence_names(OPERATIONS["batchClearinghouseStates"], {**asked, "users": users})
        found.stated.update(dict.fromkeys(names, could))


def _record(record: Any, text: bytes) -> Any:
    """Return the record of an archived row; a row without a transaction index has 0."""
    made = read_record(record, text)
    if getattr(made, "tx_index", 0) in (None, msgspec.UNSET):
        made.tx_index = 0
    return made
