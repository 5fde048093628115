"""An archive as `Sources`: what was fetched, to be asked again offline, through the same service.

What is proved goes with it, so that the service can say of each answer whether it is all there is.

What several operations showed of one fill or order becomes one record. When a builder was
approved is not on the wire: approvals are drawn so that the service attributes to each builder
the archived rows and no others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolkit.archive.archive import Archive, open
from toolkit.archive.content import HISTORIES, Found, Latest, in_order, take_answer
from toolkit.archive.coverage import (
    Noted,
    Ranges,
    Span,
    Spans,
    loss,
    noted,
    present_ms,
    ranges_of,
    spans_of,
)
from toolkit.archive.read import texts_of
from toolkit.archive.schemas import ANSWERS
from toolkit.archive.series import Series
from toolkit.archive.storage import Tables
from toolkit.completeness.coverage import make_coverage
from toolkit.contract.dexes import ALL_DEXES, canonical_dex, coin_dex, strip_native_dex
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.paging import key_getter
from toolkit.contract.sources import Approval, Evidence, HistoryCoverage, Sources
from toolkit.errors import ArchiveError

__all__ = ["histories_of", "proof_of", "sources_of", "world_of"]


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

    Raises
    ------
    ArchiveError
        If there is no such folder or freeze, or a table is damaged.
    """
    archive = open(path)
    folder = archive.tables.location
    if "://" not in folder and not Path(folder).is_dir():
        raise ArchiveError(f"there is no archive in {folder}")
    return _read(archive)


def _read(archive: Archive) -> tuple[Sources, dict[str, Any]]:
    tables = archive.tables.pinned()
    found, held, ranges = Found(), Counter[tuple[str, str]](), ranges_of(tables)
    spans: dict[tuple[str, str], Span] = {}
    for name, take in HISTORIES.items():
        of_it = spans_of(tables, name)
        for (type, subject), span in of_it.items():
            held[type, subject] = span["rows"]
            take(found, *_proved(tables, type, subject, ranges))
        found.origins |= _origins(tables, name)
        spans |= of_it
    answers = tables.handle(ANSWERS)
    if answers is not None:
        rows = tables.read(answers).sort_by("_fetched").to_pylist()
        for row in rows:
            take_answer(found, row)
            held[row["_operation"], row["_subject"]] += 1
            found.origins.add((row["_source"], row["_simulated"]))
    _check_whole(tables.location, noted(tables), held)
    found.histories = histories_of(ranges, spans)
    sources = _sources(found, present_ms(tables), repr(archive))
    return sources, _world(found, sources)


def _check_whole(location: str, notes: Noted, held: Noted) -> None:
    """Refuse to serve what is left of a history: whoever asks would take it for all.

    Raises
    ------
    ArchiveError
    """
    for pair, kept in notes.items():
        if what := loss(held.get(pair, 0), kept):
            where = f"{location}: {' '.join(pair)}"
            raise ArchiveError(f"{where}: {what}; toolkit archive verify says where")


def _proved(tables: Tables, type: str, subject: str, ranges: Ranges) -> tuple[Series, list[bytes]]:
    """Give the rows of ranges that are complete: a service leaves nothing out between its rows."""
    series = Series(OPERATIONS[type], subject, {})
    proved = ranges.get((type, subject), ())
    return series, [text for one in proved for text in texts_of(tables, series, *one)]


def _origins(tables: Tables, name: str) -> set[tuple[str, bool]]:
    handle = tables.handle(name)
    if handle is None:
        return set()
    rows = tables.read(handle, ["_source", "_simulated"])
    found = rows.group_by(["_source", "_simulated"]).aggregate([]).to_pylist()
    return {(one["_source"], one["_simulated"]) for one in found}


def _sources(found: Found, now: int, label: str) -> Sources:
    fills = in_order(found.fills, ("time", "tx_index"), found.before)
    orders = in_order(found.orders, ("status_timestamp", "tx_index"), found.before)
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
        limits={dex: one for dex, one in found.limits.items() if one is not None},
        borrow_lend=found.lent,
        delegations=found.delegations,
        evidence=proof_of(found),
    )


def _approvals(found: Found) -> Iterator[Approval]:
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


def _world(found: Found, sources: Sources) -> dict[str, Any]:
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
        "dexes": sorted(found.dexes - {"", ALL_DEXES}),
        "venues": [],
        "collateral_tokens": [],
        "not_served": sorted(found.not_served),
    }


def histories_of(ranges: Ranges, spans: Spans) -> dict[str, HistoryCoverage]:
    """Give what is known of every history, by the names of `toolkit.completeness.subjects`."""
    found = {}
    for type, subject in sorted({*ranges, *spans}):
        span = spans.get((type, subject))
        times = () if span is None else (span["first"], span["last"])
        known = make_coverage(ranges.get((type, subject), ()), times)
        found[f"{type} {strip_native_dex(subject)}"] = known
    return found


def proof_of(found: Found) -> Evidence:
    """Give what is proved of the rows and answers that were found.

    An answer is proved where what was gathered gives it again: the latest rows of a user are not,
    once another operation has shown later ones, since that one does not show every column; nor is
    a state that another answer says cannot be had.
    """
    answers: dict[str, int | None] = dict.fromkeys(found.answered)
    answers |= dict.fromkeys(
        name for name, could in found.stated.items() if could is _had(found, name)
    )
    for name, latest in found.latest.items():
        if _comes_again(latest, list(_rows(found, latest))):
            answers[name] = None if _is_whole(latest) else latest.parameters["max_rows"]
    return Evidence(found.histories, answers)


def _had(found: Found, name: str) -> bool:
    return name.rpartition(" ")[2] not in found.unavailable


def _is_whole(latest: Latest) -> bool:
    """Whether there were fewer rows than asked for."""
    return len(latest.keys) < int(latest.parameters["max_rows"])


def _rows(found: Found, latest: Latest) -> Iterable[Any]:
    """Give the gathered rows that the question is about."""
    user = latest.parameters["user"]
    if latest.operation.type == "historicalOrders":
        return found.orders.get(user, {}).values()
    return _filtered(latest, found.fills.get(user, {}).values())


def _filtered(latest: Latest, fills: Iterable[Any]) -> Iterator[Any]:
    builder, dex = latest.parameters["builder"], latest.parameters["dex"]
    for fill in fills:
        routed = None if fill.builder is msgspec.UNSET else fill.builder
        if builder in (None, routed) and (dex is None or coin_dex(fill.coin) == canonical_dex(dex)):
            yield fill


def _comes_again(latest: Latest, rows: list[Any]) -> bool:
    """Whether the gathered rows, as far back as the answer went, are those of the answer."""
    gathered, answered = Counter(map(key_getter(latest.operation), rows)), Counter(latest.keys)
    if _is_whole(latest):
        return gathered == answered
    oldest = min(answered)  # of it, the answer may have had only the first rows
    later = {key: rows for key, rows in gathered.items() if key > oldest}
    return later == {key: rows for key, rows in answered.items() if key > oldest}
