"""The archive as it is used: `open` one, refresh it, read it."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from toolkit.archive.checks import Finding
from toolkit.archive.coverage import Refreshed, present_ms, status, summary
from toolkit.archive.freezes import compact, freeze, manifest_of
from toolkit.archive.ingest import ingest_frame, ingest_recordings
from toolkit.archive.read import Engine, frames, scan
from toolkit.archive.refresh import ROWS_PER_COMMIT, refresh
from toolkit.archive.schemas import table_named
from toolkit.archive.series import operation_named, series_of
from toolkit.archive.storage import Tables
from toolkit.archive.verify import verify
from toolkit.client import Session
from toolkit.contract.answer_types import Numbers
from toolkit.contract.records import Record
from toolkit.errors import ArchiveError
from toolkit.frames import Extra
from toolkit.times import Time, to_ms

__all__ = ["Archive", "open"]


class Archive:
    """What was fetched, kept: Delta tables, one a kind of record. Make one with `open`."""

    def __init__(
        self, tables: Tables, frozen: str | None = None, manifest: Mapping[str, Any] | None = None
    ) -> None:
        self.tables = tables
        self.frozen = frozen
        self._manifest = manifest

    def __repr__(self) -> str:
        at = f"@{self.frozen}" if self.frozen else ""
        return f"<Archive {self.tables.location}{at}>"

    def _repr_html_(self) -> str:
        """Show what is in it; where it cannot be read, why."""
        try:
            shown = summary(self.tables).to_html(index=False, border=0)
        except ArchiveError as error:
            shown = f"<p>{html.escape(str(error))}</p>"
        return f"<p><code>{html.escape(repr(self)[1:-1])}</code></p>{shown}"

    def refresh(
        self,
        fetch: Callable[..., Any],
        *arguments: Any,
        session: Session | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        **named: Any,
    ) -> Refreshed:
        """Fetch what is missing, and keep it.

        Of a history (fills, funding, orders, ledger, slippage) that is what is not archived of the
        range from `start` to `end`; whatever else is asked for is kept as one more answer.

        Parameters
        ----------
        fetch : callable
            A fetch function.
        *arguments, **named
            What it is called with. Histories take no filter: filter when reading. With a `start`
            and no `end`, what lies between that start and what is archived before it is fetched
            as well, so that a late refresh leaves no gap; with both, that range alone. Without a
            `start` they go on from where what is archived begins, so that gaps are filled; where
            nothing is, from the first day that the service has.
        session : Session, optional
            Whom to ask; the default session when not given.
        rows_per_commit : int
            How many rows, at least, are appended at once.

        Returns
        -------
        Refreshed
            What was new; ``history`` says what the service does not have of the range, or may not
            have. What somebody may not expect is a `HistoryWarning`, too, as in fetching.

        Raises
        ------
        ArchiveError
            If the archive cannot be written, or the service's history is another than before.
        ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent, KeyboardInterrupt
            As in fetching; what was read before is kept, and a note on the error says how much.
        """
        return refresh(
            self.tables,
            fetch,
            arguments,
            named,
            session=session,
            rows_per_commit=rows_per_commit,
        )

    def ingest(self, what: str | Path | pd.DataFrame) -> dict[str, dict[str, Any]]:
        """Keep what was fetched before: recorded answers, or the frame of a complete history.

        Parameters
        ----------
        what : path or DataFrame
            A JSON file with ``request``, ``status`` and ``response``, or a folder of them, in the
            order of their names: they are kept as they came. Of a page that may be cut, the range
            before its last moment counts as complete; the next refresh asks for the rest. Or a
            frame that a fetch function returned: the texts of its numbers are written anew, best
            from ``numbers="text"``.

        Returns
        -------
        dict
            ``kept``: rows that were new, by file or series; ``left``: why a file was left out,
            for example because rows may be missing between it and what is archived.

        Raises
        ------
        ArchiveError
            If a frame is not a complete history with all its columns, or does not join on to what
            is archived.
        """
        if isinstance(what, pd.DataFrame):
            done = ingest_frame(self.tables, what)
            return {"kept": {f"{done.operation} {done.subject}": done.rows}, "left": {}}
        return ingest_recordings(self.tables, Path(what))

    def frame(
        self,
        what: str | Callable[..., Any],
        *arguments: Any,
        start: Time | None = None,
        end: Time | None = None,
        numbers: Numbers = "float",
        extra: Extra = "drop",
        **named: Any,
    ) -> Any:
        """Give what fetching would give, without asking anybody.

        Parameters
        ----------
        what : callable or str
            A fetch function, or the type of an operation.
        *arguments, **named
            Of whom or what: what the fetch function is called with, less times.
        start, end : Time, optional
            The range of a history, both inclusive; all that is archived when not given. Ages
            such as ``"7d"`` count back from the last refresh.
        numbers : {"float", "exact", "text"}
            The form of numbers.
        extra : {"drop", "keep"}
            Fields that this version does not know: left out, or columns of text behind the
            others. The archive keeps them either way.

        Returns
        -------
        DataFrame or tuple of DataFrame
            Columns, dtypes and order are exactly those of fetching. Its provenance says
            whether the range is complete. Where the history ends before the archive's present,
            ``history`` says so; by more than an hour is a `HistoryWarning`.

        Raises
        ------
        ArchiveError
            If nothing is archived of the question.
        """
        series = series_of(operation_named(what), arguments, named)
        made = frames(self.tables, series, start, end, numbers, extra)
        return made if len(made) > 1 else made[0]

    def scan(
        self,
        record: str | type[Record],
        *,
        operation: str | Callable[..., Any] | None = None,
        subject: str | None = None,
        start: Time | None = None,
        end: Time | None = None,
        columns: Sequence[str] | None = None,
        engine: Engine = "duckdb",
    ) -> Any:
        """Read all rows of one kind of record on an engine, more than memory holds if need be.

        Parameters
        ----------
        record : str or Record
            A table (``fills``, ``funding``, ``ledger``, ``orders``, ``slippage``), its record, or
            ``answers`` or ``pulls``.
        operation : str or callable, optional
            Only rows of this operation. A fill that two operations gave stands there twice.
        subject : str, optional
            Only rows of this account, builder, or ``"<coin> <amount>"``.
        start, end : Time, optional
            Range of time, both inclusive.
        columns : sequence of str, optional
            Which columns; by default all but ``_json``, the text of the wire.
        engine : {"duckdb", "polars", "pandas"}
            Who reads.

        Returns
        -------
        DuckDBPyRelation, polars.LazyFrame or pandas.DataFrame
            Rows in no order. Numbers are float64, times UTC in microseconds.

        Raises
        ------
        ArchiveError
            If there is no such table or column, or the engine is not installed.
        """
        name = table_named(record)
        condition = {}
        if isinstance(columns, str):
            raise TypeError(f"columns is a list of names: [{columns!r}]")
        if operation is not None:
            condition["_operation"] = operation_named(operation).type
        if subject is not None:
            if not isinstance(subject, str):
                raise TypeError(f"subject is a text, not {subject!r}")
            condition["_subject"] = subject.lower() if subject.startswith("0x") else subject
        first, last = (None if one is None else to_ms(one) for one in (start, end))
        return scan(self.tables, name, condition, first, last, columns, engine)

    def status(self) -> pd.DataFrame:
        """Say what is in the archive.

        Returns
        -------
        DataFrame
            One row per table, operation and subject: ``rows``; ``first`` and ``last``, times of
            rows; ``covered_from`` and ``covered_until``, the range that is known to be complete;
            ``gaps``, stretches that no refresh has proved complete; ``version`` of the table;
            ``bytes`` of its files, shared out by rows.
        """
        return status(self.tables)

    def verify(self, *, progress: Callable[[int], object] | None = None) -> list[Finding]:
        """Read everything, and say what is wrong.

        Files and rows are counted, and must be those that were appended and that refreshes noted;
        each run must hold its rows once and as many as its cursor says, columns must say what the
        texts say; then position chains of perp fills, funding hours, the grid of slippage samples,
        duplicates; of a freeze also its digests. It takes some hundred bytes of memory a row.

        Parameters
        ----------
        progress : callable, optional
            Is told how many rows were read, again and again.

        Returns
        -------
        list of Finding
            Empty when all is well. A finding whose ``severity`` is ``notice`` may have an
            innocent cause.

        Raises
        ------
        ArchiveError
            If the store cannot be reached. Damage is found, not raised.
        """
        return verify(self.tables, self._manifest, progress)

    def compact(
        self,
        *,
        forget_after_hours: int | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Join the many small files of many refreshes. Readers and writers may go on meanwhile.

        Parameters
        ----------
        forget_after_hours : int, optional
            Also remove old files, that are in no present and no frozen version, when they have
            not been needed for so long. A reader that takes longer would miss them.
        progress : callable, optional
            Is told 1 for each table that is done.

        Returns
        -------
        int
            How many files there are fewer.
        """
        return compact(self.tables, forget_after_hours, progress)

    def freeze(self, *, progress: Callable[[int], object] | None = None) -> str:
        """Give the present rows a name for good.

        Parameters
        ----------
        progress : callable, optional
            Is told how many rows were read, again and again.

        Returns
        -------
        str
            An id. It names tables, versions and digests: `open` with it reads exactly these
            rows, whatever is refreshed or compacted later.

        Raises
        ------
        ArchiveError
            If there is nothing in the archive.
        """
        return freeze(self.tables, present_ms(self.tables), progress)


_FROZEN: Final = re.compile(r"(?P<location>.+)@(?P<id>f[0-9a-f]{16})")
_LIKE_AN_ID: Final = re.compile(r"f[0-9a-fA-F]{7,}")
_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ADDRESS: Final = re.compile(r"(?P<scheme>[a-z0-9+]+)://[^@?#]+")
_SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss", "file")


def open(
    path: str | Path,
    *,
    frozen: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Archive:
    """Open an archive: a folder, or an address such as ``s3://bucket/prefix``.

    Nothing is written until it is refreshed; a folder that is not there is an empty archive.

    Parameters
    ----------
    path : str or Path
        Where it is, or shall be. ``<path>@<id>`` opens a freeze.
    frozen : str, optional
        The id of a freeze: exactly its rows are read, and nothing is written.
    storage_options : mapping of str to str, optional
        What an object store needs, by the names of `deltalake`; else the environment's, such as
        ``AWS_ACCESS_KEY_ID``. They are never shown, and not written into the archive.

    Returns
    -------
    Archive

    Raises
    ------
    ArchiveError
        If there is no such freeze, the path is of no folder and no store's, or credentials stand
        in the address.

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
        raise TypeError(f"an archive's path is a str or a Path, not {path!r}")
    location = str(path)
    if frozen is None and (named := _FROZEN.fullmatch(location)):
        location, frozen = named["location"], named["id"]
    _check_address(location) if "://" in location else _check_folder(location)
    tables = Tables(location, storage_options)
    if frozen is None:
        return Archive(tables)
    manifest = manifest_of(tables, frozen)
    versions = {name: one["version"] for name, one in manifest.items()}
    return Archive(Tables(location, storage_options, versions), frozen, manifest)


def existing(path: str | Path) -> Archive:
    """Open an archive that is there: one that is misspelt shall not pass for an empty one.

    Raises
    ------
    ArchiveError
        If there is none.
    """
    found = open(path)
    if not found.tables.any():
        raise ArchiveError(f"there is no archive in {found.tables.location}")
    return found


def _check_address(location: str) -> None:
    address = _ADDRESS.fullmatch(location)
    if address is None:
        raise ArchiveError(
            "an archive's address is scheme://bucket/prefix and nothing else: credentials belong "
            "into the environment (AWS_ACCESS_KEY_ID, ...) or storage_options"
        )
    if address["scheme"] not in _SCHEMES:
        known = ", ".join(f"{one}://" for one in _SCHEMES)
        raise ArchiveError(f"{location}: no archive lies there: an address begins with {known}")


def _check_folder(location: str) -> None:
    folder, _, wanted = location.rpartition("@")
    if not location:
        raise ArchiveError("an archive's path is empty: give its folder, or its address")
    if escape := _ESCAPE.search(str(Path(location).absolute())):
        raise ArchiveError(
            f"{location}: no archive can lie there: {escape[0]} in the name of a folder would be "
            "read as the sign that it stands for in an address; name it otherwise"
        )
    if Path(location).exists():
        if not Path(location).is_dir():
            raise ArchiveError(f"{location} is a file: an archive is a folder")
    elif _LIKE_AN_ID.fullmatch(wanted) and Path(folder).is_dir():
        raise ArchiveError(
            f"{folder} has no freeze {wanted!r}: the id of one is f and 16 hexadecimal digits, as "
            "Archive.freeze gives it"
        )
