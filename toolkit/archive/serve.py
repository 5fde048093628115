"""Serve an archive: answer requests with the rows of the series asked, or with a stored answer.

The rows of a history are paged as they were on the wire. If fills are filtered, they become a small
store of their own, which the handlers of the service filter as they do those of a simulated
exchange. Any other request gets the latest stored answer to the same body. Each answer states
whether it is complete.
"""

import json
import operator
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from toolkit.archive import coverage, schemas
from toolkit.archive.archive import missing_archive, open
from toolkit.archive.coverage import RowSpan
from toolkit.archive.read import latest_answer, ordered_rows
from toolkit.archive.schemas import ANSWERS, RECORDS, Series
from toolkit.archive.storage import ArchiveTables, archive_present_ms
from toolkit.completeness.covered_ranges import HistoryCoverage, find_covered_range, make_coverage
from toolkit.completeness.headers import Completeness, write_completeness
from toolkit.contract import paging
from toolkit.contract.answers import encode
from toolkit.contract.dexes import ALL_DEXES, strip_native_dex
from toolkit.contract.fields import drop_beyond_fields
from toolkit.contract.recorded_rows import read_record
from toolkit.contract.records import Fill
from toolkit.contract.requests import filters_of
from toolkit.contract.source_tables import Sources, WorldFacts
from toolkit.display import count_text
from toolkit.errors import ArchiveError, BadRequest, NotReady, ServiceDown
from toolkit.service import Store, build_store, handler_messages
from toolkit.service.answers import HANDLERS
from toolkit.service.handler_messages import CheckedRequest, Response
from toolkit.service.store import json_array
from toolkit.times import to_iso

_MOST_RANGES: Final = 3  # of an archive, in a message
_MOST_ROWS: Final = 2_000  # of a page, if the operation states no limit
_REFRESH: Final = "refresh the archive with this operation"

Pair = tuple[str, str]
"""The operation and the subject of a series."""


def archived_store(path: str | Path, *, strict: bool = False) -> Store:
    """Return a store that answers from an archive.

    Parameters
    ----------
    path : str or Path
        A folder or address; ``<path>@<id>`` is a freeze of the archive.
    strict : bool, default False
        Whether rows have no fields beyond the specification.

    Returns
    -------
    Store
        Its present is the latest time up to which anything was refreshed.

    Raises
    ------
    ArchiveError
        If there is no such folder or freeze, a table is damaged, or rows were lost.
    """
    archive = open(path)
    folder = archive.tables.location
    if "://" not in folder and not Path(folder).is_dir():
        raise missing_archive(folder)
    tables = archive.tables.pin_versions()
    log = coverage.read_log(tables)
    spans: dict[Pair, RowSpan] = {}
    for name in (*RECORDS, ANSWERS):
        spans |= coverage.row_spans(tables, name)
    # If rows were lost, a service would present the rest as complete.
    for pair, entries in log.items():
        found = spans[pair]["rows"] if pair in spans else 0
        if message := coverage.missing_rows_message(found, coverage.count_logged_rows(entries)):
            place = f"{folder}: {' '.join(pair)}"
            raise ArchiveError(f"{place}: {message}. Details: toolkit archive verify {folder}")
    origins = pa.concat_tables(
        [tables.read_rows(name, ["_source", "_simulated"]) for name in (*RECORDS, ANSWERS)]
    )
    names = ", ".join(sorted(pc.unique(origins["_source"]).to_pylist()))
    now = archive_present_ms(tables)
    sources = Sources(
        start_ms=now,
        now_ms=now,
        label=f"archive of {names}" if names else repr(archive),
        simulated=bool(pc.any(origins["_simulated"]).as_py()),
    )
    world = _summarize(tables, spans, sources)
    sources = replace(sources, start_ms=world["start_ms"])
    store = build_store(sources, world=world, strict=strict)
    store.replay = _Replay(tables, log, spans, store, sources).answer
    return store


def _summarize(
    tables: ArchiveTables, spans: Mapping[Pair, RowSpan], sources: Sources
) -> WorldFacts:
    """Return a summary with the same names as `World.summary` of a simulation."""
    users, builders, coins, dexes = set[str](), set[str](), dict[str, None](), set[str]()
    firsts = list[int]()
    paged = set[str]()  # answers of several pages
    for (type, subject), span in spans.items():
        operation = schemas.stored_series(type, subject).operation
        if operation.is_history:
            firsts.append(span["first"])
            if "user" in operation.subject:
                users.add(subject)
            elif "builder" in operation.subject:
                builders.add(subject)
            continue
        if operation.paging != "none":
            paged.add(type)
        body = json.loads(subject)
        users |= {*body.get("users", []), *([body["user"]] if "user" in body else [])}
        dexes.add(body.get("dex") or "")
        if type in ("meta", "metaAndAssetCtxs"):
            answer = json.loads(latest_answer(tables, Series(operation, subject))["_body"])
            meta = answer[0] if type == "metaAndAssetCtxs" else answer
            coins |= dict.fromkeys(asset["name"] for asset in meta["universe"])
    for name in ("fills", "funding", "orders"):  # builders' rows name their accounts
        users |= {*pc.unique(tables.read_rows(name, ["user"])["user"].drop_null()).to_pylist()}
    return {
        "start_ms": min(firsts, default=sources.now_ms),
        "now_ms": sources.now_ms,
        "users": sorted(users),
        "builders": sorted(builders),
        "validators": [],
        "perp_coins": [*coins],
        "spot_coins": [],
        "dexes": sorted(dexes - {"", ALL_DEXES}),
        "venues": [],
        "collateral_tokens": [],
        "not_served": sorted(paged),
    }


@dataclass
class _Replay:
    """Answers requests from the tables of an archive."""

    tables: ArchiveTables
    log: Mapping[Pair, Sequence[Mapping[str, Any]]]
    spans: Mapping[Pair, RowSpan]
    empty: Store
    sources: Sources

    def __post_init__(self) -> None:
        # The native dex may be written or left out.
        self._subjects = {(type, strip_native_dex(subject)): subject for type, subject in self.log}
        self._known: dict[Pair, tuple[Sequence[tuple[Any, ...]], pa.ChunkedArray]] = {}
        self._lock = threading.Lock()

    def answer(self, request: CheckedRequest) -> Response:
        """Return the answer to a request, and state how complete it is."""
        operation, stated = request.operation, Completeness()
        if operation.is_history:
            subject = operation.subject_of(request.parameters)
            subject = self._subjects.get((operation.type, strip_native_dex(subject)), subject)
            response = self._page(Series(operation, subject), request)
            stated = self._completeness(request, subject)
        elif operation.paging != "none":
            reason = f"{operation.type} is not served from an archive: read it with Archive.frame"
            response, stated = _handle(self.empty, request), Completeness(reason)
        else:
            series = schemas.make_series(operation, (), request.parameters)
            reason = f"the archive has no answer to {series.name}: {_REFRESH}"
            if row := latest_answer(self.tables, series):
                headers = {"content-type": "application/json", **json.loads(row["_headers"])}
                response = Response(200, headers, row["_body"])
            elif operation.type == "batchClearinghouseStates":
                response, stated = self._account_states(request)
            elif operation.extra:
                raise BadRequest(f"{reason}; it is not in {self.empty.about['label']}")
            else:
                response, stated = _handle(self.empty, request), Completeness(reason)
        return replace(response, headers={**response.headers, **write_completeness(stated)})

    def _account_states(self, request: CheckedRequest) -> tuple[Response, Completeness]:
        """Return the latest archived state of each account, from answers about others as well."""
        condition = ds.field("_operation") == request.operation.type
        rows = self.tables.read_rows(ANSWERS, condition=condition).sort_by("_fetched").to_pylist()
        states, dex, users = dict[str, Any](), request["dex"] or "", request["users"]
        for row in rows:
            if (json.loads(row["_subject"]).get("dex") or "") == dex:
                answer = json.loads(row["_body"])
                states |= dict(answer["successful_states"])
                states |= dict.fromkeys(answer.get("failed_wallets") or ())
        answer = {
            "successful_states": [[user, states[user]] for user in users if states.get(user)],
            "failed_wallets": [user for user in users if user in states and not states[user]],
        }
        missing = [user for user in users if user not in states]
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        name = " ".join(filter(None, (request.operation.type, dex, *missing[:1])))
        reason = f"the archive has no answer to {name}{more}: {_REFRESH}" if missing else ""
        response = handler_messages.json_response(json.dumps(answer).encode())
        return response, Completeness(reason)

    def _page(self, series: Series, request: CheckedRequest) -> Response:
        """Return a page of the archived rows of a history, as they were on the wire."""
        operation = series.operation
        keys, texts = self._rows(series)
        if filters_of(operation, request.parameters):  # only fills have filters
            fills = [read_record(Fill, text) for text in texts.to_pylist()]
            for fill in fills:
                fill.tx_index = fill.tx_index or 0
            sources = replace(self.sources, fills=[(series.subject, fill) for fill in fills])
            return _handle(build_store(sources, strict=self.empty.about["strict"]), request)
        if cursor := request.parameters.get("cursor") and request.cursor:
            first = (bisect_left if request.inclusive else bisect_right)(keys, cursor)
        else:
            first = bisect_left(keys, (request["start"],))
        end = bisect_right(keys, request.end, key=operator.itemgetter(0))
        most = request[operation.page.python] if operation.page else operation.most_rows
        page = texts.slice(first, max(min(end - first, most or _MOST_ROWS), 0)).to_pylist()
        if self.empty.about["strict"]:
            (record,) = get_args(operation.answer)
            page = [encode(drop_beyond_fields(read_record(record, text))) for text in page]
        return handler_messages.json_response(json_array(page))

    def _rows(self, series: Series) -> tuple[Sequence[tuple[Any, ...]], pa.ChunkedArray]:
        """Return the keys and the texts of a history, in its order."""
        pair = (series.operation.type, series.subject)
        with self._lock:
            if pair not in self._known:
                # Only rows of pulled ranges are served: rows may be missing between others.
                ranges = coverage.pulled_ranges(self.log.get(pair, ())) or [(0, -1)]
                names = [*series.keys, "_json"]
                parts = [ordered_rows(self.tables, series, None, *span, names) for span in ranges]
                rows = pa.concat_tables([rows.take(order) for rows, order in parts])
                rows = schemas.use_milliseconds(rows)
                # A recorded fill may lack its transaction.
                cells = [[cell or 0 for cell in rows[name].to_pylist()] for name in series.keys]
                texts = rows["_json"].cast(pa.large_binary())
                self._known[pair] = (list(zip(*cells, strict=True)), texts)
            return self._known[pair]

    def _completeness(self, request: CheckedRequest, subject: str) -> Completeness:
        """Return how complete the answer to the request of a history is."""
        operation, pair = request.operation, (request.operation.type, subject)
        name = f"{operation.type} {strip_native_dex(subject)}"
        if request.parameters.get("builder") and "builder" not in operation.subject:
            return Completeness(
                f"{name}: an archive does not know through which builder these fills were routed. "
                "Leave out builder"
            )
        span = self.spans.get(pair)
        times = () if span is None else (span["first"], span["last"])
        known = make_coverage(coverage.complete_ranges(self.log.get(pair, ())), times)
        cursor = request.parameters.get("cursor") and request.cursor
        start, end = cursor[0] if cursor else request["start"], request.parameters["end"]
        covered = find_covered_range(known, operation, start, end, request.now_ms)
        if covered is not None:
            return Completeness(covered=covered)
        until = "" if end is None else f" to {paging.time_text(end)}"
        return Completeness(
            f"{name} from {paging.time_text(start)}{until} is not proved complete: the archive has "
            f"{_describe_ranges(known)}; {_REFRESH}, or request a range that it has"
        )


def _handle(store: Store, request: CheckedRequest) -> Response:
    """Return the answer of the operation's handler."""
    try:
        answer = HANDLERS[request.operation.type](store, request)
    except (NotReady, ServiceDown) as error:
        answer = handler_messages.error_response(error)
    return handler_messages.json_response(answer) if isinstance(answer, bytes) else answer


def _describe_ranges(known: HistoryCoverage) -> str:
    if not known.ranges:
        return "no rows of it" if known.first == known.last == 0 else "no complete range of it"
    shown = [f"{to_iso(first)} to {to_iso(last)}" for first, last in known.ranges[-_MOST_RANGES:]]
    if earlier := known.ranges[:-_MOST_RANGES]:
        shown.insert(0, count_text(len(earlier), "earlier range"))
    if known.ranges[-1][1] < known.last:
        shown.append(f"and rows up to {to_iso(known.last)}, of which some may be missing")
    return ", ".join(shown)
