"""An archive as `Sources`: what was fetched, to be asked again offline, through the same service.

What is proved goes with it, so that the service can say of each answer whether it is all there is.

What several operations showed of one fill or order becomes one record. When a builder was
approved is not on the wire: approvals are drawn so that the service attributes to each builder
the archived rows and no others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.archive.archive import Archive
from toolkit.archive.gathering import HISTORIES, Found, take_answer
from toolkit.archive.joining import in_order
from toolkit.archive.layout import ANSWERS
from toolkit.archive.opening import open
from toolkit.archive.proving import histories_of, proof_of
from toolkit.archive.pulls import Noted, Ranges, loss, noted, ranges_of
from toolkit.archive.reading import texts_of
from toolkit.archive.series import Series
from toolkit.archive.status import Span, present_ms, spans_of
from toolkit.archive.tables import Tables
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import OPERATIONS
from toolkit.contract.sources import Approval, Sources
from toolkit.errors import ArchiveError

__all__ = ["sources_of", "world_of"]


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
