"""Serve an archive: its content as the `Sources` of a service, with its complete ranges.

Several operations can show the same fill or order. Their rows become one record, in the order of
execution.

The time at which a user approved a builder is not on the wire. Approvals are derived so that the
service attributes the archived rows, and no others, to each builder.
"""

import graphlib
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from toolkit.archive.archive import missing_archive, open
from toolkit.archive.coverage import (
    RowSpan,
    complete_ranges,
    count_logged_rows,
    missing_rows_message,
    pulled_ranges,
    read_log,
    row_spans,
)
from toolkit.archive.read import read_texts
from toolkit.archive.schemas import ANSWERS, RECORDS, Series
from toolkit.archive.storage import archive_present_ms
from toolkit.completeness.covered_ranges import TimeRange, make_coverage
from toolkit.completeness.evidence_names import evidence_names
from toolkit.contract import records as r
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, strip_native_dex
from toolkit.contract.operations import OPERATIONS, Operation
from toolkit.contract.paging import row_keys
from toolkit.contract.recorded_rows import join_records, read_record
from toolkit.contract.requests import check_request
from toolkit.contract.source_tables import Approval, Evidence, HistoryCoverage, Sources, WorldFacts
from toolkit.errors import ArchiveError

__all__ = ["ANSWER_READERS", "HISTORY_READERS", "world_of"]

EventId = tuple[Any, ...]
"""The event of a row, and the row's number among the rows of this event."""
RowId = tuple[str, EventId]
"""The user and the event of a row."""

# The fields that identify a fill, and those that identify a change of an order.
_fill_event = operator.attrgetter("time", "tx_index", "coin", "side", "oid", "tid")
_order_event = operator.attrgetter("status_timestamp", "tx_index", "order.oid", "status")


def world_of(path: str | Path) -> tuple[Sources, WorldFacts]:
    """Return what a service can serve from an archive, and a summary like that of a simulation.

    Parameters
    ----------
    path : str or Path
        A folder or address; ``<path>@<id>`` is a freeze of the archive.

    Returns
    -------
    tuple of Sources and dict
        The present of the sources is the latest time up to which anything was refreshed. The
        entry ``not_served`` of the summary lists operations whose archived answers
        `Archive.frame` returns, but the service does not return: the archive lacks the data from
        which the exchange computed these answers.

    Raises
    ------
    ArchiveError
        If there is no such folder or freeze, or a table is damaged.
    """
    archive = open(path)
    folder = archive.tables.location
    if "://" not in folder and not Path(folder).is_dir():
        raise missing_archive(folder)
    tables = archive.tables.pin_versions()
    content, log = ArchiveContent(), read_log(tables)
    ranges = {pair: complete_ranges(entries) for pair, entries in log.items()}
    spans: dict[tuple[str, str], RowSpan] = {}
    for name in RECORDS:
        table_spans = row_spans(tables, name)
        for pair in table_spans:
            series = Series(OPERATIONS[pair[0]], pair[1])
            # Only rows of pulled ranges are served, because rows may be missing between others.
            pulled = pulled_ranges(log.get(pair, ()))
            texts = [text for bounds in pulled for text in read_texts(tables, series, *bounds)]
            HISTORY_READERS[name](content, series, texts)
        rows = tables.read_rows(name, ["_source", "_simulated"])
        origins = rows.group_by(["_source", "_simulated"]).aggregate([]).to_pylist()
        content.origins |= {(origin["_source"], origin["_simulated"]) for origin in origins}
        spans |= table_spans
    counts = Counter({pair: span["rows"] for pair, span in spans.items()})
    for row in tables.read_rows(ANSWERS).sort_by("_fetched").to_pylist():
        add_answer(content, row)
        counts[row["_operation"], row["_subject"]] += 1
        content.origins.add((row["_source"], row["_simulated"]))
    # If rows were lost, a service would present the rest as complete.
    for pair, entries in log.items():
        if message := missing_rows_message(counts[pair], count_logged_rows(entries)):
            place = f"{tables.location}: {' '.join(pair)}"
            details = f"Details: toolkit archive verify {tables.location}"
            raise ArchiveError(f"{place}: {message}. {details}")
    evidence = Evidence(_history_coverage(ranges, spans), _proved_answers(content))
    sources = _make_sources(content, evidence, archive_present_ms(tables), repr(archive))
    return sources, _summarize_content(content, sources)


@dataclass(frozen=True, slots=True)
class LatestRows:
    """An answer with the latest rows of a user."""

    operation: Operation
    parameters: Mapping[str, Any]  # Python name -> value: the user, filters, the number of rows
    keys: Sequence[tuple[Any, ...]]  # of the rows


@dataclass(slots=True)
class ArchiveContent:
    """All records and answers of an archive."""

    fills: dict[str, dict[EventId, r.Fill]] = field(default_factory=lambda: defaultdict(dict))
    orders: dict[str, dict[EventId, r.OrderStatus]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    funding: dict[tuple[int, str, str], r.FundingRow] = field(default_factory=dict)
    ledger: dict[str, list[r.LedgerUpdate]] = field(default_factory=dict)
    slippage: list[r.SlippageSample] = field(default_factory=list)
    # Row -> the rows of the same transaction that some answer returned before it.
    predecessors: dict[RowId, set[RowId]] = field(default_factory=lambda: defaultdict(set))
    # Builder -> user -> the times at which the builder was shown a row of the user.
    shown_times: dict[str, dict[str, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    metas: dict[str, r.Meta] = field(default_factory=dict)
    contexts: dict[str, list[r.AssetContext]] = field(default_factory=dict)
    limits: dict[str, r.PerpDexLimits | None] = field(default_factory=dict)
    depth: r.Depth | None = None
    states: dict[str, dict[str, r.ClearinghouseState]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    unavailable: set[str] = field(default_factory=set)
    borrow_lend: dict[str, r.BorrowLend] = field(default_factory=dict)
    delegations: dict[str, list[r.Delegation]] = field(default_factory=dict)
    dexes: set[str] = field(default_factory=set)  # of all requests
    not_served: set[str] = field(default_factory=set)
    origins: set[tuple[str, bool]] = field(default_factory=set)  # source, whether it is simulated
    # What is known of answers, by the names of `toolkit.completeness.evidence_names`.
    answered: set[str] = field(default_factory=set)
    latest: dict[str, LatestRows] = field(default_factory=dict)
    has_state: dict[str, bool] = field(default_factory=dict)


def _make_sources(content: ArchiveContent, evidence: Evidence, now: int, label: str) -> Sources:
    predecessors = content.predecessors
    fills = sort_by_execution(content.fills, ("time", "tx_index"), predecessors)
    orders = sort_by_execution(content.orders, ("status_timestamp", "tx_index"), predecessors)
    names = sorted({source for source, _ in content.origins})
    times = [fill.time for _, fill in fills] + [time for time, *_ in content.funding]
    return Sources(
        start_ms=min(times, default=now),
        now_ms=now,
        label=f"archive of {', '.join(names)}" if names else label,
        simulated=any(simulated for _, simulated in content.origins),
        fills=fills,
        funding=[content.funding[key] for key in sorted(content.funding)],
        ledger=[(user, update) for user, updates in content.ledger.items() for update in updates],
        orders=orders,
        approvals=list(_derive_approvals(content)),
        slippage=content.slippage,
        metas=content.metas,
        contexts=content.contexts,
        depth=content.depth,
        states=content.states,
        unavailable=frozenset(content.unavailable),
        limits={dex: limits for dex, limits in content.limits.items() if limits is not None},
        borrow_lend=content.borrow_lend,
        delegations=content.delegations,
        evidence=evidence,
    )


def _derive_approvals(content: ArchiveContent) -> Iterator[Approval]:
    """Yield the approvals and revocations that the returned rows imply.

    An approval is before a user's rows that were returned for a builder; a revocation is before
    rows of the user that were not.
    """
    user_times: dict[str, set[int]] = defaultdict(set)
    for user, fills in content.fills.items():
        user_times[user].update(fill.time for fill in fills.values())
    for time, user, _ in content.funding:
        user_times[user].add(time)
    for builder, shown_users in content.shown_times.items():
        for user, shown_times in shown_users.items():
            is_approved = False
            for time in sorted(user_times[user]):
                if (time in shown_times) != is_approved:
                    is_approved = not is_approved
                    yield Approval(user, builder, time, 0, is_approved)


def _summarize_content(content: ArchiveContent, sources: Sources) -> WorldFacts:
    """Return a summary with the same names as `World.summary` of a simulation."""
    users = {*content.fills, *content.orders, *content.ledger}
    users |= {*content.borrow_lend, *content.delegations}
    users |= {user for states in content.states.values() for user in states}
    coins = [asset.name for meta in content.metas.values() for asset in meta.universe]
    return {
        "start_ms": sources.start_ms,
        "now_ms": sources.now_ms,
        "users": sorted(users),
        "builders": sorted(content.shown_times),
        "validators": [],
        "perp_coins": coins,
        "spot_coins": [],
        "dexes": sorted(content.dexes - {"", ALL_DEXES}),
        "venues": [],
        "collateral_tokens": [],
        "not_served": sorted(content.not_served),
    }


def _history_coverage(
    ranges: Mapping[tuple[str, str], Sequence[TimeRange]], spans: Mapping[tuple[str, str], RowSpan]
) -> dict[str, HistoryCoverage]:
    """Return the coverage of each history by its name (`toolkit.completeness.evidence_names`)."""
    coverage = {}
    for type, subject in sorted({*ranges, *spans}):
        span = spans.get((type, subject))
        times = () if span is None else (span["first"], span["last"])
        known = make_coverage(ranges.get((type, subject), ()), times)
        coverage[f"{type} {strip_native_dex(subject)}"] = known
    return coverage


def _proved_answers(content: ArchiveContent) -> dict[str, int | None]:
    """Return the answers that the service can prove, and the number of rows that are proved.

    An answer is proved if the content reproduces it. The latest rows of a user are not proved
    after another operation has shown later rows, because that operation does not show every
    column. A state is not proved if another answer states that it is unavailable.
    """
    answers: dict[str, int | None] = dict.fromkeys(content.answered)
    for name, has_state in content.has_state.items():
        user = name.rpartition(" ")[2]
        if has_state is (user not in content.unavailable):
            answers[name] = None
    for name, latest in content.latest.items():
        if _is_reproduced(latest, _matching_rows(content, latest)):
            has_all_rows = _has_all_rows(latest)
            answers[name] = None if has_all_rows else latest.parameters["max_rows"]
    return answers


def _has_all_rows(latest: LatestRows) -> bool:
    """Return whether the answer has fewer rows than requested, so that there are no more."""
    return len(latest.keys) < int(latest.parameters["max_rows"])


def _matching_rows(content: ArchiveContent, latest: LatestRows) -> Collection[Any]:
    """Return the archived rows that match the request."""
    user = latest.parameters["user"]
    if latest.operation.tables[0].record is not r.Fill:
        return content.orders.get(user, {}).values()
    builder, dex = latest.parameters["builder"], latest.parameters["dex"]
    return [
        fill
        for fill in content.fills.get(user, {}).values()
        if builder in (None, None if fill.builder is msgspec.UNSET else fill.builder)
        and (dex is None or coin_dex(fill.coin) == canonical_dex(dex))
    ]


def _is_reproduced(latest: LatestRows, rows: Collection[Any]) -> bool:
    """Return whether the rows are those of the answer, as far back as the answer goes."""
    found, answered = Counter(row_keys(latest.operation, rows)), Counter(latest.keys)
    if _has_all_rows(latest):
        return found == answered
    oldest = min(answered)  # the answer may have only the first rows of its oldest key
    found_later = {key: count for key, count in found.items() if key > oldest}
    return found_later == {key: count for key, count in answered.items() if key > oldest}


class _RowMerger:
    """Merges the rows of one answer into the rows of other answers.

    Two answers may show one event differently: other operations have other fields, a later service
    has new fields, and ingested frames have numbers without trailing zeros. `event_of` returns the
    fields of a row that identify its event. `ArchiveContent.predecessors` is extended.
    """

    def __init__(
        self, predecessors: dict[RowId, set[RowId]], event_of: Callable[[Any], EventId]
    ) -> None:
        self._predecessors = predecessors
        self._event_of = event_of
        self._counts: dict[tuple[str, EventId], int] = defaultdict(int)
        self._previous: tuple[tuple[int, int], RowId] | None = None

    def add_row(
        self, rows: dict[EventId, Any], user: str, row: Any, transaction: tuple[int, int]
    ) -> None:
        """Add a row. If another answer had the same row, add only the fields that it lacked."""
        event = self._event_of(row)
        # Equal rows of one answer are different events, so they are numbered.
        self._counts[user, event] += 1
        event_id = (self._counts[user, event], *event)
        known = rows.setdefault(event_id, row)
        if known is not row:
            rows[event_id] = join_records(known, row)
        if self._previous is not None and self._previous[0] == transaction:
            self._predecessors[user, event_id].add(self._previous[1])
        self._previous = (transaction, (user, event_id))


def sort_by_execution(
    rows: Mapping[str, Mapping[EventId, Any]],
    key: tuple[str, str],
    predecessors: Mapping[RowId, set[RowId]],
) -> list[tuple[str, Any]]:
    """Return the user and the row of each event, in the order of execution.

    `rows` is user -> event -> row. Rows are ordered by transaction, which the fields `key`
    identify, and within a transaction as every answer returned them.
    """
    transaction_of = operator.attrgetter(*key)
    transactions: dict[Any, dict[RowId, Any]] = defaultdict(dict)
    for user, events in rows.items():
        for event_id, row in events.items():
            transactions[transaction_of(row)][user, event_id] = row
    return [
        (row_id[0], transactions[transaction][row_id])
        for transaction in sorted(transactions)
        for row_id in _sort_transaction(list(transactions[transaction]), predecessors)
    ]


def _sort_transaction(
    row_ids: list[RowId], predecessors: Mapping[RowId, set[RowId]]
) -> list[RowId]:
    """Return the rows of a transaction in order; if answers disagree, in the order they came."""
    if len(row_ids) == 1:
        return row_ids
    graph = {row_id: predecessors.get(row_id, set()) for row_id in row_ids}
    try:
        return list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError:
        return row_ids


def _add_fills(content: ArchiveContent, series: Series, texts: list[bytes]) -> None:
    merger = _RowMerger(content.predecessors, _fill_event)
    for text in texts:
        fill = _decode_record(r.Fill, text)
        user = _row_user(series, fill)
        fill.user = msgspec.UNSET
        if not _is_of_user(series.operation):
            content.shown_times[series.subject][user].add(fill.time)
        merger.add_row(content.fills[user], user, fill, (fill.time, fill.tx_index))


def _add_orders(content: ArchiveContent, series: Series, texts: list[bytes]) -> None:
    merger = _RowMerger(content.predecessors, _order_event)
    for text in texts:
        event = _decode_record(r.OrderStatus, text)
        user = _row_user(series, event)
        event.user = msgspec.UNSET
        if not _is_of_user(series.operation):
            event.builder = series.subject
        transaction = (event.status_timestamp, event.tx_index)
        merger.add_row(content.orders[user], user, event, transaction)


def _add_funding(content: ArchiveContent, series: Series, texts: list[bytes]) -> None:
    for text in texts:
        row = _decode_record(r.FundingRow, text)
        row.user = _row_user(series, row)
        if not _is_of_user(series.operation):
            content.shown_times[series.subject][row.user].add(row.time)
        content.funding[row.time, row.user, row.delta.coin] = row


def _add_ledger(content: ArchiveContent, series: Series, texts: list[bytes]) -> None:
    content.ledger[series.subject] = [_decode_record(r.LedgerUpdate, text) for text in texts]


def _add_slippage(content: ArchiveContent, series: Series, texts: list[bytes]) -> None:
    for text in texts:
        sample = _decode_record(r.SlippageSample, text)
        if not isinstance(sample.amount_usd, int | float | str):
            sample.amount_usd = float(series.subject.rpartition(" ")[2])
        content.slippage.append(sample)


HistoryReader = Callable[[ArchiveContent, Series, list[bytes]], None]

HISTORY_READERS: Final[dict[str, HistoryReader]] = {
    "fills": _add_fills,
    "orders": _add_orders,
    "funding": _add_funding,
    "ledger": _add_ledger,
    "slippage": _add_slippage,
}
"""Table -> the function that adds rows of a series to the content."""


def _is_of_user(operation: Operation) -> bool:
    """Return whether a subject is an account. Otherwise it is a builder, and rows have a user."""
    return "user" in operation.subject


def _row_user(series: Series, row: Any) -> str:
    """Return the account of a row."""
    user = series.subject if _is_of_user(series.operation) else row.user
    if not isinstance(user, str):
        raise ArchiveError(
            f"{series.operation.type} of {series.subject}: an archived row has no user, so a "
            "service cannot place it. The archive's frame() still reads it"
        )
    return user


@dataclass(frozen=True, slots=True)
class _StoredAnswer:
    """A row of the table of whole answers, with its request decoded."""

    operation: Operation
    parameters: Mapping[str, Any]
    body: bytes

    @property
    def dex(self) -> str:
        """The dex of the request."""
        return canonical_dex(self.parameters.get("dex") or "")

    @property
    def names(self) -> list[str]:
        """The names of everything that the request is about."""
        return evidence_names(self.operation, self.parameters)


def add_answer(content: ArchiveContent, row: Mapping[str, Any]) -> None:
    """Add an archived answer. A later answer replaces an earlier one."""
    operation = OPERATIONS[row["_operation"]]
    parameters = check_request(operation, msgspec.json.decode(row["_subject"]))
    answer = _StoredAnswer(operation, parameters, row["_body"])
    content.dexes.add(answer.dex)
    reader = ANSWER_READERS.get(operation.type)
    names = None if reader is None else reader(content, answer)
    if names is None:
        content.not_served.add(operation.type)
    else:
        content.answered.update(names)


# Each reader returns the names that the answer proves, or None if a service cannot return the
# answer from the content.


def _add_meta(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    meta, dex = _decode_record(r.Meta, answer.body), answer.dex
    if content.metas.get(dex) != meta:
        # The archived states of the markets belong to the perps of an earlier time.
        content.contexts.pop(dex, None)
        combined = OPERATIONS[answer.operation.part_of]
        content.answered.difference_update(evidence_names(combined, {"dex": dex}))
    content.metas[dex] = meta
    return answer.names


def _add_meta_and_contexts(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    pair = tuple[msgspec.Raw, list[msgspec.Raw]]
    meta, contexts = msgspec.json.decode(answer.body, type=pair)
    content.metas[answer.dex] = _decode_record(r.Meta, bytes(meta))
    content.contexts[answer.dex] = [
        _decode_record(r.AssetContext, bytes(context)) for context in contexts
    ]
    return answer.names


def _add_limits(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    is_null = answer.body.strip() == b"null"
    content.limits[answer.dex] = None if is_null else _decode_record(r.PerpDexLimits, answer.body)
    return answer.names


def _add_depth(content: ArchiveContent, answer: _StoredAnswer) -> list[str] | None:
    if answer.parameters["dex"] is not None:  # the markets of one dex only
        return None
    content.depth = _decode_record(r.Depth, answer.body)
    return answer.names


def _add_states(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    """Add the states of users; a user whose state failed has no state on any dex."""
    dex = answer.parameters["dex"]
    states: list[tuple[str, Mapping[str, r.ClearinghouseState]]]
    if dex == ALL_DEXES:
        by_dex = _decode_record(r.BatchStatesByDex, answer.body)
        states, failed = list(by_dex.successful_states), by_dex.failed_wallets
    else:
        batch = _decode_record(r.BatchStates, answer.body)
        states = [(user, {dex: state}) for user, state in batch.successful_states]
        failed = batch.failed_wallets
    for user, dex_states in states:
        for name, state in dex_states.items():
            if state is not None:
                content.states[canonical_dex(name)][user] = state
    successful, failed = [user for user, _ in states], failed or []  # UNSET and None are false
    content.unavailable.difference_update(successful)
    content.unavailable.update(failed)
    for users, has_state in ((successful, True), (failed, False)):
        names = evidence_names(answer.operation, {**answer.parameters, "users": users})
        content.has_state.update(dict.fromkeys(names, has_state))
    return []  # `has_state` proves them


def _add_borrow_lend(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    content.borrow_lend[answer.parameters["user"]] = _decode_record(r.BorrowLend, answer.body)
    return answer.names


def _add_delegations(content: ArchiveContent, answer: _StoredAnswer) -> list[str]:
    rows = msgspec.json.decode(answer.body, type=list[msgspec.Raw])
    delegations = [_decode_record(r.Delegation, bytes(row)) for row in rows]
    content.delegations[answer.parameters["user"]] = delegations
    return answer.names


def _add_latest_rows(
    add_rows: HistoryReader, content: ArchiveContent, answer: _StoredAnswer
) -> list[str] | None:
    operation, parameters = answer.operation, answer.parameters
    if parameters.get("aggregate_by_time"):  # merged rows do not show the single fills
        return None
    texts = [bytes(text) for text in msgspec.json.decode(answer.body, type=list[msgspec.Raw])]
    record = operation.tables[0].record
    add_rows(content, Series(operation, parameters["user"]), texts)
    keys = row_keys(operation, [_decode_record(record, text) for text in texts])
    (name,) = answer.names
    content.latest[name] = LatestRows(operation, parameters, keys)
    return []  # `latest` proves them


ANSWER_READERS: Final[dict[str, Callable[..., list[str] | None]]] = {
    "meta": _add_meta,
    "metaAndAssetCtxs": _add_meta_and_contexts,
    "perpDexLimits": _add_limits,
    "currentDepth": _add_depth,
    "batchClearinghouseStates": _add_states,
    "borrowLendUserState": _add_borrow_lend,
    "delegations": _add_delegations,
    "userFills": partial(_add_latest_rows, _add_fills),
    "historicalOrders": partial(_add_latest_rows, _add_orders),
}


def _decode_record(record: Any, text: bytes) -> Any:
    """Return the record of an archived row; a row without a transaction index gets 0."""
    decoded = read_record(record, text)
    if getattr(decoded, "tx_index", 0) in (None, msgspec.UNSET):
        decoded.tx_index = 0
    return decoded
