"""An archive as `Sources`: what was fetched, to be asked again offline, through the same service.

What several operations showed of one fill or order becomes one record. When a builder was
approved is not on the wire: approvals are drawn so that the service attributes to each builder
the archived rows and no others.
"""

import graphlib
import operator
import typing
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from toolkit.archive.archive import Archive, open
from toolkit.archive.layout import ANSWERS, Series
from toolkit.archive.reading import texts_of
from toolkit.archive.status import present_ms, series_in
from toolkit.contract.answers import encode
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
from toolkit.contract.sources import Approval, Sources

__all__ = ["sources_of", "world_of"]

Row = tuple[str, bytes]
"""What tells a row of a user: the user, and the row's text with its number among equals."""


@dataclass(slots=True)
class _Found:
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
    not_served: set[str] = field(default_factory=set)
    origins: set[tuple[str, bool]] = field(default_factory=set)


def sources_of(path: str | Path) -> Sources:
    """Give what an archive, or a freeze of it, can serve.

    Parameters
    ----------
    path : str or Path
        A folder or address; ``<path>@<id>`` is a freeze.

    Returns
    -------
    Sources
        Its present is the last moment that anything was refreshed up to. An empty archive has
        empty tables.

    Raises
    ------
    ArchiveError
        If there is no such freeze, or a table is damaged.
    """
    return _read(open(path))[0]


def world_of(path: str | Path) -> tuple[Sources, dict[str, Any]]:
    """Give what an archive can serve, and a summary with the names of a simulation's.

    ``not_served`` lists the operations whose archived answers `Archive.frame` gives, and the
    service does not: nothing on the wire says what they were computed from.
    """
    return _read(open(path))


def _read(archive: Archive) -> tuple[Sources, dict[str, Any]]:
    found = _Found()
    for name, take in _HISTORIES.items():
        for one in series_in(archive.tables, name):
            series = Series(OPERATIONS[one["operation"]], one["subject"], {})
            take(found, series, texts_of(archive.tables, series))
            _origin(found, archive, name)
    answers = archive.tables.handle(ANSWERS)
    if answers is not None:
        rows = archive.tables.read(answers).sort_by("_fetched").to_pylist()
        for row in rows:
            _take_answer(found, row)
            found.origins.add((row["_source"], row["_simulated"]))
    sources = _sources(found, present_ms(archive.tables), repr(archive))
    return sources, _world(found, sources)


def _origin(found: _Found, archive: Archive, name: str) -> None:
    handle = archive.tables.handle(name)
    rows = archive.tables.read(handle, ["_source", "_simulated"])
    for one in rows.group_by(["_source", "_simulated"]).aggregate([]).to_pylist():
        found.origins.add((one["_source"], one["_simulated"]))


def _take_fills(found: _Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderApprovedFillsByTime"
    known = _Known(found.before, ("builder", "venue"))
    for text in texts:
        fill = _record(Fill, text)
        user = fill.user if by_builder else series.subject
        assert isinstance(user, str)
        fill.user = msgspec.UNSET
        if by_builder:
            found.shown[series.subject][user].add(fill.time)
        known.add(found.fills[user], user, fill, (fill.time, fill.tx_index))


def _take_orders(found: _Found, series: Series, texts: list[bytes]) -> None:
    by_builder = series.operation.type == "builderOrdersByTime"
    known = _Known(found.before, ("builder",))
    for text in texts:
        event = _record(OrderStatus, text)
        user = event.user if by_builder else series.subject
        assert isinstance(user, str)
        event.user = msgspec.UNSET
        if by_builder:
            event.builder = series.subject
        known.add(found.orders[user], user, event, (event.status_timestamp, event.tx_index))


class _Known:
    """Joins the rows of one answer with the same rows of others.

    Parameters
    ----------
    before : dict
        Gains which row came before which, within a transaction.
    apart : tuple of str
        Fields that only some operations show.
    """

    def __init__(self, before: dict[Row, set[Row]], apart: tuple[str, ...]) -> None:
        self._before = before
        self._apart = apart
        self._count: dict[Row, int] = defaultdict(int)
        self._last: tuple[tuple[int, int], Row] | None = None

    def add(self, rows: dict[bytes, Any], user: str, row: Any, moment: tuple[int, int]) -> None:
        """Add a row, or what it says more than the same row of another operation."""
        bare = encode(msgspec.structs.replace(row, **dict.fromkeys(self._apart, msgspec.UNSET)))
        # Equal rows of one answer are different events: each is told by which of them it is.
        self._count[user, bare] += 1
        name = b"%d %b" % (self._count[user, bare], bare)
        held = rows.setdefault(name, row)
        for one in self._apart:
            said = getattr(row, one)
            if said is not msgspec.UNSET and getattr(held, one) in (msgspec.UNSET, None):
                setattr(held, one, said)
        if self._last is not None and self._last[0] == moment:
            self._before[user, name].add(self._last[1])
        self._last = (moment, (user, name))


def _take_funding(found: _Found, series: Series, texts: list[bytes]) -> None:
    for text in texts:
        row = _record(FundingRow, text)
        found.shown[series.subject][row.user].add(row.time)
        found.funding[row.time, row.user, row.delta.coin] = row


def _take_ledger(found: _Found, series: Series, texts: list[bytes]) -> None:
    found.ledger[series.subject] = [_record(LedgerUpdate, text) for text in texts]


def _take_slippage(found: _Found, series: Series, texts: list[bytes]) -> None:
    found.slippage += [_record(SlippageSample, text) for text in texts]


_HISTORIES: Final[dict[str, Callable[[_Found, Series, list[bytes]], None]]] = {
    "fills": _take_fills,
    "orders": _take_orders,
    "funding": _take_funding,
    "ledger": _take_ledger,
    "slippage": _take_slippage,
}


def _take_answer(found: _Found, row: Mapping[str, Any]) -> None:
    """Take an answer; a later one replaces an earlier one."""
    type, asked, body = row["_operation"], msgspec.json.decode(row["_subject"]), row["_body"]
    dex = canonical(asked.get("dex") or "")
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


def _take_latest(found: _Found, type: str, user: str, body: bytes) -> None:
    texts = [bytes(one) for one in msgspec.json.decode(body, type=list[msgspec.Raw])]
    _HISTORIES["fills" if type == "userFills" else "orders"](
        found, Series(OPERATIONS[type], user, {}), texts
    )


def _take_states(found: _Found, asked: Mapping[str, Any], body: bytes) -> None:
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


def _sources(found: _Found, now: int, label: str) -> Sources:
    fills = _in_order(found.fills, ("time", "tx_index"), found.before)
    orders = _in_order(found.orders, ("status_timestamp", "tx_index"), found.before)
    names = sorted({source for source, _ in found.origins})
    times = [fill.time for _, fill in fills] + [key[0] for key in found.funding]
    return Sources(
        start_ms=min(times, default=now),
        now_ms=now,
        label=f"archive of {', '.join(names)}" if names else label,
        simulated=any(simulated for _, simulated in found.origins),
        fills=fills,
        funding=[found.funding[key] for key in sorted(found.funding)],
        ledger=[(user, one) for user, rows in found.ledger.items() for one in rows],
        orders=orders,
        approvals=list(_approvals(found)),
        slippage=found.slippage,
        metas=found.metas,
        contexts=found.contexts,
        depth=found.depth,
        states=found.states,
        unavailable=frozenset(found.unavailable),
        limits=found.limits,
        borrow_lend=found.lent,
        delegations=found.delegations,
    )


def _in_order(
    rows: Mapping[str, Mapping[bytes, Any]],
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


def _approvals(found: _Found) -> Iterator[Approval]:
    """Approve a builder before rows that it was shown, and revoke before those it was not."""
    moments: dict[str, set[int]] = defaultdict(set)
    for user, rows in found.fills.items():
        moments[user].update(fill.time for fill in rows.values())
    for time, user, _ in found.funding:
        moments[user].add(time)
    for builder, users in found.shown.items():
        for user, shown in users.items():
            approved = False
            for time in sorted(moments[user]):
                if (time in shown) != approved:
                    approved = not approved
                    yield Approval(user, builder, time, 0, approved)


def _world(found: _Found, sources: Sources) -> dict[str, Any]:
    """Summarise, with the names that `World.summary` of a simulation has."""
    users = {*found.fills, *found.orders, *found.ledger, *found.lent, *found.delegations}
    users |= {user for states in found.states.values() for user in states}
    coins = [asset.name for meta in found.metas.values() for asset in meta.universe]
    return {
        "start_ms": sources.start_ms,
        "now_ms": sources.now_ms,
        "users": sorted(users),
        "builders": sorted(found.shown),
        "validators": [],
        "perp_coins": coins,
        "spot_coins": [],
        "dexes": sorted(dex for dex in found.metas if dex),
        "venues": [],
        "collateral_tokens": [],
        "not_served": sorted(found.not_served),
    }
