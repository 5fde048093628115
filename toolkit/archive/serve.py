"""Serve an archive: its content as the `Sources` of a service, with what is proved complete.

The time at which a user approved a builder is not on the wire. Approvals are derived so that the
service attributes the archived rows, and no others, to each builder.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolkit.archive.archive import open
from toolkit.archive.content import (
    HISTORY_READERS,
    ArchiveContent,
    LatestRows,
    add_answer,
    sort_by_execution,
)
from toolkit.archive.pulls import (
    count_logged_rows,
    log_ranges,
    missing_rows_message,
    present_ms,
    proved_ranges,
    read_log,
)
from toolkit.archive.read import RowSpan, read_texts, row_spans
from toolkit.archive.schemas import ANSWERS, RECORDS, Series
from toolkit.archive.storage import ArchiveTables
from toolkit.completeness.covered_ranges import TimeRange, make_coverage
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, strip_native_dex
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.paging import key_getter
from toolkit.contract.records import Fill
from toolkit.contract.sources import Approval, Evidence, HistoryCoverage, Sources
from toolkit.errors import ArchiveError

__all__ = ["world_of"]


def world_of(path: str | Path) -> tuple[Sources, dict[str, Any]]:
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
        `Archive.frame` returns, and the service does not: the archive lacks the data from which
        the exchange computed them.

    Raises
    ------
    ArchiveError
        If there is no such folder or freeze, or a table is damaged.
    """
    archive = open(path)
    folder = archive.tables.location
    if "://" not in folder and not Path(folder).is_dir():
        raise ArchiveError(f"there is no archive in {folder}")
    tables = archive.tables.pin_versions()
    content, log = ArchiveContent(), read_log(tables)
    ranges = {pair: proved_ranges(entries) for pair, entries in log.items()}
    spans: dict[tuple[str, str], RowSpan] = {}
    for name in RECORDS:
        table_spans = row_spans(tables, name)
        for pair in table_spans:
            series = Series(OPERATIONS[pair[0]], pair[1])
            # Only pulled ranges are served: a service leaves out no row between its rows.
            covered = log_ranges(log.get(pair, ()))
            texts = [text for bounds in covered for text in read_texts(tables, series, *bounds)]
            HISTORY_READERS[name](content, series, texts)
        content.origins |= _row_origins(tables, name)
        spans |= table_spans
    counts = Counter({pair: span["rows"] for pair, span in spans.items()})
    answers = tables.open_table(ANSWERS)
    if answers is not None:
        for row in tables.read_rows(answers).sort_by("_fetched").to_pylist():
            add_answer(content, row)
            counts[row["_operation"], row["_subject"]] += 1
            content.origins.add((row["_source"], row["_simulated"]))
    # If rows were lost, a service would present the rest as complete.
    for pair, entries in log.items():
        if message := missing_rows_message(counts[pair], count_logged_rows(entries)):
            place = f"{tables.location}: {' '.join(pair)}"
            raise ArchiveError(f"{place}: {message}; toolkit archive verify shows where")
    evidence = Evidence(_history_coverage(ranges, spans), _proved_answers(content))
    sources = _make_sources(content, evidence, present_ms(tables), repr(archive))
    return sources, _summarize_content(content, sources)


def _row_origins(tables: ArchiveTables, name: str) -> set[tuple[str, bool]]:
    handle = tables.open_table(name)
    if handle is None:
        return set()
    rows = tables.read_rows(handle, ["_source", "_simulated"])
    origins = rows.group_by(["_source", "_simulated"]).aggregate([]).to_pylist()
    return {(origin["_source"], origin["_simulated"]) for origin in origins}


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
    """Yield an approval before rows that a builder was shown, a revocation before other rows."""
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


def _summarize_content(content: ArchiveContent, sources: Sources) -> dict[str, Any]:
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
    """Return the coverage of each history, by the names of `toolkit.completeness.subjects`."""
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


def _matching_rows(content: ArchiveContent, latest: LatestRows) -> Iterable[Any]:
    """Return the rows of the content that match the request."""
    user = latest.parameters["user"]
    if latest.operation.tables[0].record is not Fill:
        return content.orders.get(user, {}).values()
    builder, dex = latest.parameters["builder"], latest.parameters["dex"]
    return [
        fill
        for fill in content.fills.get(user, {}).values()
        if builder in (None, None if fill.builder is msgspec.UNSET else fill.builder)
        and (dex is None or coin_dex(fill.coin) == canonical_dex(dex))
    ]


def _is_reproduced(latest: LatestRows, rows: Iterable[Any]) -> bool:
    """Return whether the rows are those of the answer, as far back as the answer goes."""
    found, answered = Counter(map(key_getter(latest.operation), rows)), Counter(latest.keys)
    if _has_all_rows(latest):
        return found == answered
    oldest = min(answered)  # the answer may have only the first rows of its oldest key
    found_later = {key: count for key, count in found.items() if key > oldest}
    return found_later == {key: count for key, count in answered.items() if key > oldest}
