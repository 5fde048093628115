"""The archive: `open` it, refresh it, read it."""

import contextlib
import html
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import pandas as pd
import pyarrow.dataset as ds

from toolkit.archive import coverage, ingest, read, refresh_plan, schemas, storage
from toolkit.archive.coverage import RefreshResult
from toolkit.archive.ingest import IngestResult
from toolkit.archive.refresh import ROWS_PER_COMMIT, is_fatal, prepare_refresh, refresh_all
from toolkit.archive.refresh_plan import RefreshPlan
from toolkit.archive.storage import ArchiveTables
from toolkit.archive.verify import Finding, verify_tables
from toolkit.client import Session, current_session
from toolkit.contract.records import Record
from toolkit.contract.value_kinds import Numbers
from toolkit.display import count_text
from toolkit.errors import ArchiveError, CommitConflict, Incomplete, ToolkitError
from toolkit.fetch.many import ClusterClient
from toolkit.fetch.snapshots import account_value_snapshots
from toolkit.frames import Collector, Extra
from toolkit.partitions import Files
from toolkit.times import Time, to_ms

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation
    from polars import LazyFrame
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession

    Scanned = DuckDBPyRelation | LazyFrame | pd.DataFrame | SparkFrame

FrameResult = TypeVar("FrameResult", pd.DataFrame, tuple[pd.DataFrame, ...])

_FREEZE_ID: Final = re.compile("f[0-9a-f]{16}")


class Archive:
    """Fetched rows in Delta tables, one table per kind of record. Open one with `open`."""

    def __init__(
        self,
        tables: ArchiveTables,
        frozen: str | None = None,
        manifest: Mapping[str, object] | None = None,
    ) -> None:
        self.tables = tables
        self.frozen = frozen
        self._manifest = manifest or {}

    def __repr__(self) -> str:
        suffix = f"@{self.frozen}" if self.frozen else ""
        return f"<Archive {self.tables.location}{suffix}>"

    def _repr_html_(self) -> str:
        """Return the tables of the archive as HTML, or why they cannot be read."""
        try:
            shown = coverage.summarize_tables(self.tables).to_html(index=False, border=0)
        except ArchiveError as error:
            shown = f"<p>{html.escape(str(error))}</p>"
        return f"<p><code>{html.escape(repr(self)[1:-1])}</code></p>{shown}"

    def refresh(
        self,
        fetch: Callable[..., object],
        *arguments: object,
        session: Session | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        **named: object,
    ) -> RefreshResult:
        """Fetch what is missing, and append it.

        For a history (such as fills, funding, orders, ledger, slippage) only the missing part of
        the range from `start` to `end` is fetched. For any other operation one more answer is
        archived.

        Parameters
        ----------
        fetch : callable
            A fetch function.
        *arguments, **named
            Its arguments. Histories take no filter: filter when you read. With a `start` and no
            `end`, the range between the last archived row and `start` is fetched as well, so that
            a late refresh leaves no gap. With both, only that range is fetched. Without a `start`
            the range begins with the first archived row, so that gaps are filled; if nothing is
            archived, it begins with the first day of the operation, or at time 0.
        session : Session, optional
            The session to use; the default session if not given.
        rows_per_commit : int
            The number of rows from which a commit is made; the last commit may have fewer.

        Returns
        -------
        RefreshResult
            The number of new rows; ``history`` has remarks about data that the service lacks for
            the range, or may lack. A remark that the caller may not expect is also a
            `HistoryWarning`, as in fetching.

        Raises
        ------
        ArchiveError
            If the archive cannot be written, or the service's history differs from the archive.
        ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent, KeyboardInterrupt
            As in fetching. Rows that were pulled before the error are archived, and a note on the
            error states how many.
        """
        self.tables.check_writable()
        session = current_session(session)
        request = prepare_refresh(fetch, arguments, named, session.now_ms(), session)
        ((_, outcome),) = refresh_all(self.tables, [request], session, rows_per_commit)
        if isinstance(outcome, ToolkitError):
            raise outcome
        return outcome

    def refresh_many(
        self,
        fetch: Callable[..., object],
        subjects: Iterable[str],
        *arguments: object,
        session: Session | None = None,
        executor: Executor | ClusterClient | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        **named: object,
    ) -> list[RefreshResult]:
        """Refresh one operation for many accounts, builders, validators, coins or dexes.

        The rows of many subjects share a commit, so thousands of subjects make few files. The state
        of the archive is read once for all subjects.

        Parameters
        ----------
        fetch : callable
            A fetch function.
        subjects : iterable of str
            Values of its first parameter.
        *arguments, **named
            Its other arguments, as in `refresh`.
        session : Session, optional
            The session to use; the default session if not given.
        executor : Executor or Dask Client, optional
            Where the requests are sent and the rows decoded, as in `tk.many`, also by default. The
            archive itself is written by this process alone.
        rows_per_commit : int
            The number of rows from which a commit is made; the last commit may have fewer.

        Returns
        -------
        list of RefreshResult
            In the order of the subjects.

        Raises
        ------
        Incomplete
            If a subject failed. The others are archived; ``error.failed`` has the errors by
            subject, and ``error.rows`` the results of the others. Refresh again to continue.
        ArchiveError
            If the archive cannot be written.
        KeyboardInterrupt
            As in `refresh`; the rows that came are archived.
        """
        self.tables.check_writable()
        session = current_session(session)
        now_ms = session.now_ms()
        requests = {
            subject: prepare_refresh(fetch, (subject, *arguments), named, now_ms, session)
            for subject in ([subjects] if isinstance(subjects, str) else subjects)
        }
        unique = {request.series.name: request for request in requests.values()}
        refresh = refresh_all(self.tables, [*unique.values()], session, rows_per_commit, executor)
        outcomes = {request.series.name: outcome for request, outcome in refresh}
        error = next(filter(is_fatal, outcomes.values()), None)
        every = {name: outcomes.get(each.series.name, error) for name, each in requests.items()}
        failed = {name: error for name, error in every.items() if isinstance(error, ToolkitError)}
        done = [outcome for outcome in every.values() if isinstance(outcome, RefreshResult)]
        if failed:
            first, others = next(iter(failed)), len(done)
            rest = f"; the other {others:,} {'is' if others == 1 else 'are'} archived"
            raise Incomplete(
                f"{len(failed):,} of {count_text(len(every), 'subject')} failed"
                f"{rest if others else ''}. First error: {first}: {failed[first]}. Refresh again "
                "to continue [error.failed has all errors]",
                rows=done,
                failed=failed,
            )
        return done

    def plan_refresh(
        self,
        fetch: Callable[..., object],
        users: Iterable[str] | None = None,
        *,
        start: Time | None = None,
        session: Session | None = None,
    ) -> RefreshPlan:
        """Archive the latest account snapshot, and return which accounts need a refresh.

        The cash of an account is its value less its long positions plus its short positions. An
        account needs no refresh if its cash is the same in the latest snapshot and in one that is
        older than the end of its archived range. Perp fills, funding payments, and transfers into
        or out of the account value change the cash; prices do not. If the value of an account
        does not include its spot balances, a snapshot does not show its spot fills and its spot,
        staking and token transfers. It also does not show changes that cancel each other: a
        position that was opened and closed without a gain or a fee, a transfer into a subaccount
        and back, or a transfer between two dexes of the account. Such transfers are rows of
        ``tk.user_non_funding_ledger_updates``, so a plan for it misses more than a plan for fills.
        If the plan does not select an account, its covered range does not grow, and its next
        refresh fetches these rows. So refresh all accounts from time to time.

        Parameters
        ----------
        fetch : callable
            The fetch function of an account's history, such as ``tk.user_fills_by_time``.
        users : iterable of str, optional
            The accounts; by default all that are archived for `fetch`.
        start : Time, optional
            The start of the range. An account needs a refresh if its archived range begins later.
        session : Session, optional
            The session to use; the default session if not given. Its key needs the add-on of
            account snapshots.

        Returns
        -------
        RefreshPlan
            ``to_ask``, the accounts to pass to `refresh_many`; ``accounts``, with the reason for
            each; ``points`` and ``points_of_all``.

        Raises
        ------
        ArchiveError
            If `fetch` is not the history of an account, or the archive cannot be written.
        """
        session = current_session(session)
        operation = schemas.resolve_operation(fetch)
        start_ms = None if start is None else to_ms(start, now_ms=session.now_ms())
        self.refresh(account_value_snapshots, list(refresh_plan.ALL_TOKENS), session=session)
        every = None if users is None else list(users)
        return refresh_plan.make_refresh_plan(self.tables, operation, every, start_ms)

    def ingest(self, what: str | Path | pd.DataFrame) -> IngestResult:
        """Append rows that were fetched before: recorded answers, or the frame of a history.

        Parameters
        ----------
        what : path or DataFrame
            A JSON file with ``request``, ``status`` and ``response``, or a folder of such files in
            the order of their names; they are archived unchanged. If a page may be cut, the range
            before its last time counts as complete, and the next refresh fetches the rest. It can
            also be a frame that a fetch function returned, or a Parquet file of such a frame. The
            archive writes new JSON for the rows of a frame. This JSON has exactly the numbers that
            the service sent only if the frame has ``numbers="text"``. A folder may have both kinds
            of files.

        Returns
        -------
        IngestResult
            ``kept``: new rows by file or series; ``left``: why a file was left out, for example
            because the archive has later rows.

        Raises
        ------
        ArchiveError
            If a frame is not a complete history with all its columns, or the archive has rows
            after its beginning that do not continue it.
        """
        self.tables.check_writable()
        if isinstance(what, pd.DataFrame):
            return ingest.ingest_frame(self.tables, what)
        if not isinstance(what, str | Path):
            raise TypeError(
                f"ingest takes a file, a folder or a fetched pandas frame, not {reprlib.repr(what)}"
            )
        return ingest.ingest_recordings(self.tables, Path(what))

    def ingest_bulk(
        self,
        path: str | Path,
        fetch: Callable[..., object],
        start: Time,
        end: Time,
        *,
        columns: Mapping[str, str] | None = None,
        source: str | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> IngestResult:
        """Append the rows of many accounts from bulk files, such as a published history.

        The files must have all rows of every account between `start` and `end`. The accounts may be
        in any order, but the rows of one account must be in the order of its history. The rows are
        checked in the same way as in a refresh. A call that was interrupted can be repeated.

        Parameters
        ----------
        path : str or Path
            A Parquet file, a file of JSON lines (rows of the wire with their account, or blocks of
            a node's file of fills), or a folder of such files of one kind.
        fetch : callable
            The fetch function whose rows they are, such as ``tk.user_fills_by_time``.
        start, end : Time
            The range that the files cover, both ends inclusive. Other rows are left out.
        columns : mapping of str to str, optional
            Our name of a column -> its name in the files. ``user`` (or the subject of the
            operation) names the account. A column that is not in the mapping has our name or the
            name on the wire, such as ``startPosition``. Numbers may be texts, floats or decimals;
            times may be timestamps or Unix milliseconds. All other columns are kept in the texts of
            the rows: ``frame(..., extra="keep")`` shows them.
        source : str, optional
            The name of the source in provenance; by default the name of the file.
        progress : callable, optional
            Called repeatedly with the number of rows that are archived.

        Returns
        -------
        IngestResult
            ``kept``: new rows by series; ``left``: why the rows of a subject were left out.

        Raises
        ------
        ArchiveError
            If a needed column is missing, or another process writes the same histories.
        """
        self.tables.check_writable()
        times, file = (to_ms(start), to_ms(end)), Path(path)
        modified_ms = file.stat().st_mtime_ns // 1_000_000
        origin = schemas.RowOrigin(source or f"bulk {file.name}", False, modified_ms)
        operation = schemas.resolve_operation(fetch)
        return ingest.ingest_bulk(
            self.tables, file, operation, columns or {}, times, origin, progress
        )

    @overload
    def frame(
        self,
        what: Callable[..., FrameResult],
        *arguments: object,
        start: Time | None = None,
        end: Time | None = None,
        numbers: Numbers = "float",
        extra: Extra = "drop",
        **named: object,
    ) -> FrameResult: ...

    @overload
    def frame(
        self, what: str, *arguments: object, **named: Any
    ) -> pd.DataFrame | tuple[pd.DataFrame, ...]: ...

    def frame(
        self,
        what: str | Callable[..., object],
        *arguments: object,
        start: Time | None = None,
        end: Time | None = None,
        numbers: Numbers = "float",
        extra: Extra = "drop",
        **named: object,
    ) -> pd.DataFrame | tuple[pd.DataFrame, ...]:
        """Return what fetching would return, without any request.

        Parameters
        ----------
        what : callable or str
            A fetch function, or the type of an operation.
        *arguments, **named
            The arguments of the fetch function, without times.
        start, end : Time, optional
            The range of a history, both ends inclusive; by default all archived rows. Ages such as
            ``"7d"`` count back from the last refresh.
        numbers : {"float", "exact", "text"}
            The form of numbers.
        extra : {"drop", "keep"}
            Fields that this version does not know: left out, or text columns after the others.
            The archive keeps them in both cases.

        Returns
        -------
        DataFrame or tuple of DataFrame
            Columns, dtypes and order are exactly those of fetching. The provenance states whether
            the range is complete. If the history ends before the archive's present, ``history``
            states that. If it ends more than an hour before, a `HistoryWarning` is issued.

        Raises
        ------
        ArchiveError
            If nothing is archived for the request.
        """
        operation, times = schemas.resolve_operation(what), {"start": start, "end": end}
        if not operation.is_history:  # its range is a part of the request
            named |= {name: to_ms(time) for name, time in times.items() if time is not None}
        series = schemas.make_series(operation, arguments, named)
        read.check_choice("numbers", numbers, Numbers)
        read.check_choice("extra", extra, Extra)
        collector = Collector(operation, numbers, extra)
        if operation.is_history:
            frames = read.history_frames(self.tables, series, start, end, collector)
        else:
            frames = read.state_frames(self.tables, series, collector)
        return frames if len(frames) > 1 else frames[0]

    def files(self, fetch: str | Callable[..., object]) -> Files:
        """Return the files that have the archived rows of a fetch function, for `tk.apply`.

        Raises
        ------
        ArchiveError
            If nothing of it is archived.
        """
        operation = schemas.resolve_operation(fetch)
        handle = self.tables.open_table(schemas.operation_table(operation))
        if handle is None:
            raise ArchiveError(f"{self.tables.location} has no rows of {operation.type}")
        dataset, ours = self.tables.open_dataset(handle), ds.field("_operation") == operation.type
        origin = dataset.head(1, columns=["_source", "_simulated"], filter=ours).to_pydict()
        facts = {name[1:]: values[0] for name, values in origin.items() if values}
        owner = "_subject" if operation.subject == ("user",) else "user"
        return Files(
            dataset.files, dataset.filesystem, dataset.schema, operation.type, owner, facts
        )

    def scan(
        self,
        record: str | type[Record],
        *,
        operation: str | Callable[..., object] | None = None,
        subject: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        engine: read.Engine = "duckdb",
        session: "SparkSession | None" = None,
        numbers: Numbers = "float",
    ) -> "Scanned":
        """Read all rows of one kind of record on an engine, even if they do not fit into memory.

        Parameters
        ----------
        record : str or Record
            A table (``fills``, ``funding``, ``ledger``, ``orders``, ``slippage``, or that of
            another history), its record, an operation of the table, or ``answers`` or ``pulls``.
        operation : str or callable, optional
            Only rows of this operation. If two operations returned the same fill, the table has it
            twice.
        subject : str, optional
            Only rows of this account, builder, or ``"<coin> <amount>"``.
        start, end : Time, optional
            Time range, both ends inclusive.
        columns : sequence of str, optional
            The columns; by default all but ``_json``, the text of the wire.
        engine : {"duckdb", "polars", "pandas", "spark"}
            The library that reads.
        session : SparkSession, optional
            The session of ``"spark"``, classic or Spark Connect. Its executors read the files
            themselves, so they must reach them under the same path.
        numbers : {"float", "exact", "text"}
            The form of numbers. Exact decimals (36 digits, 18 of them after the point) and texts
            are extracted from the texts of the rows.

        Returns
        -------
        DuckDBPyRelation, polars.LazyFrame, pandas.DataFrame or pyspark.sql.DataFrame
            Rows in no order. Times are UTC in microseconds.

        Raises
        ------
        ArchiveError
            If there is no such table or column, or the engine is not installed.
        ValueError
            If `engine` or `numbers` is none of the values above, a time is not valid, or only one
            of `session` and ``engine="spark"`` is passed.
        TypeError
            If `columns` is one text, or `subject` is not text.
        """
        name = schemas.find_table(record)
        values = {}
        if isinstance(columns, str):
            raise TypeError(f"columns must be a list of names: pass [{columns!r}]")
        if operation is not None:
            values["_operation"] = schemas.resolve_operation(operation).type
        if subject is not None:
            if not isinstance(subject, str):
                raise TypeError(f"subject must be text, not {subject!r}")
            values["_subject"] = subject.lower() if subject.startswith("0x") else subject
        first, last = (None if time is None else to_ms(time) for time in (start, end))
        rows: Scanned = read.scan_table(
            self.tables, name, values, (first, last), columns, engine, session, numbers
        )
        return rows

    def status(self) -> pd.DataFrame:
        """Return what is in the archive.

        Returns
        -------
        DataFrame
            One row per table, operation and subject: ``rows``; ``first`` and ``last``, the times
            of rows; ``covered_from`` and ``covered_until``, the start of the first and the end of
            the last complete range; ``gaps``, the number of time ranges between the complete
            ranges, and before or after them if there are rows; ``version`` of the table; ``bytes``
            of its files, in proportion to the rows.
        """
        return coverage.summarize_series(self.tables.pin_versions())

    def verify(self, *, progress: Callable[[int], object] | None = None) -> list[Finding]:
        """Read everything, and return what is wrong.

        The files and rows must be those that were appended and logged. Each run must have each of
        its rows once, and as many rows as its counter states. Columns must equal the texts of the
        rows. Then position chains of perp fills, funding hours, the grid of slippage samples and
        duplicates are checked, and for a freeze its digests. Rows are sorted in temporary files, so
        that the memory grows more slowly than the number of rows.

        Parameters
        ----------
        progress : callable, optional
            Called repeatedly with the number of rows that were read.

        Returns
        -------
        list of Finding
            Empty if nothing is wrong. A finding whose ``severity`` is ``notice`` may have a
            harmless cause.

        Raises
        ------
        ArchiveError
            If the store cannot be reached. Damage is returned, not raised.
        """
        return list(dict.fromkeys(verify_tables(self.tables, self._manifest, progress or int)))

    def compact(
        self,
        *,
        forget_after_hours: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Join the small files of many refreshes. Others can read and write at the same time.

        Parameters
        ----------
        forget_after_hours : int, optional
            Also remove files that neither the present version nor a freeze has needed for this
            number of hours. Processes that read an older version for longer would miss them.
        progress : callable, optional
            Called with 1 for each table that is done.

        Returns
        -------
        int
            The number of files that compaction saved.
        """
        freezes, fewer = storage.read_freezes(self.tables).values(), 0
        for name in self.tables.table_names():
            frozen = [freeze[name]["version"] for freeze in freezes if name in freeze]
            with contextlib.suppress(CommitConflict):  # another process compacts this table
                fewer += storage.compact_table(self.tables, name, frozen, forget_after_hours)
            if progress is not None:
                progress(1)
        return fewer

    def freeze(self, *, progress: Callable[[int], object] | None = None) -> str:
        """Store the versions and digests of the present tables under an id.

        Parameters
        ----------
        progress : callable, optional
            Called repeatedly with the number of rows that were read.

        Returns
        -------
        str
            The id. `open` with it reads exactly these rows, whatever is refreshed or compacted
            later.

        Raises
        ------
        ArchiveError
            If the archive is empty.
        """
        return storage.make_freeze(self.tables, progress)


def open(
    path: str | Path, *, frozen: str | None = None, storage_options: Mapping[str, str] | None = None
) -> Archive:
    """Open an archive: a folder, or an address such as ``s3://bucket/prefix``.

    Nothing is written before the first refresh. A folder that does not exist is an empty archive.

    Parameters
    ----------
    path : str or Path
        Where the archive is, or will be. ``<path>@<id>`` opens a freeze.
    frozen : str, optional
        The id of a freeze. Exactly its rows are read, and nothing can be written.
    storage_options : mapping of str to str, optional
        Options of the object store, by their names in `deltalake`. By default they come from the
        environment, for example ``AWS_ACCESS_KEY_ID``. They are never shown, and not written into
        the archive.

    Returns
    -------
    Archive

    Raises
    ------
    ArchiveError
        If there is no such freeze, the path is neither a folder nor the address of a store, or the
        address contains credentials.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> user = session.world["users"][0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive = open(folder)
    ...     done = archive.refresh(tk.user_fills_by_time, user, 0)
    ...     fills = archive.frame(tk.user_fills_by_time, user)
    >>> fills.equals(tk.user_fills_by_time(user, 0))
    True
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"the path of an archive must be a str or a Path, not {path!r}")
    location = str(path)
    folder, _, name = location.rpartition("@")
    if frozen is None and folder:
        # A folder may have a name with `@`, unless the part before the `@` is an archive.
        is_folder = "://" in location or Path(location).exists()
        is_freeze = not is_folder and Path(folder).is_dir() and ArchiveTables(folder).has_tables()
        if is_freeze or _FREEZE_ID.fullmatch(name):
            location, frozen = folder, name
    storage.check_location(location)
    tables = ArchiveTables(location, storage_options)
    if frozen is None:
        return Archive(tables)
    freezes = storage.read_freezes(tables)
    if (manifest := freezes.get(frozen)) is None:
        existing = f"it has {', '.join(sorted(freezes)) or 'no freezes'}"
        raise ArchiveError(f"{tables.location} has no freeze {frozen!r}: {existing}")
    versions = {name: entry["version"] for name, entry in manifest.items()}
    return Archive(ArchiveTables(location, storage_options, versions), frozen, manifest)


def open_existing(path: str | Path) -> Archive:
    """Open an archive that must exist, so that a misspelt path is not an empty archive.

    Raises
    ------
    ArchiveError
        If there is no archive.
    """
    archive = open(path)
    if not archive.tables.has_tables():
        raise missing_archive(archive.tables.location)
    return archive


def missing_archive(location: str) -> ArchiveError:
    """Return the error that a location has no archive, with its whole path and what to do."""
    place = location if "://" in location else Path(location).absolute()
    return ArchiveError(
        f"there is no archive in {place}. Check the path. `toolkit archive refresh` makes an "
        "archive"
    )
