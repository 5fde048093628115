"""The archive as it is used: `open` one, refresh it, read it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.archive.engines import Engine, scan
from toolkit.archive.layout import (
    ANSWERS,
    PULLS,
    RECORDS,
    operation_named,
    series_of,
    table_of,
)
from toolkit.archive.reading import frames
from toolkit.archive.refreshing import ROWS_PER_COMMIT, Refreshed, refresh
from toolkit.archive.tables import Tables
from toolkit.client import Session
from toolkit.contract.reading import Numbers
from toolkit.contract.records import Record
from toolkit.errors import ArchiveError
from toolkit.times import Time, to_ms

__all__ = ["Archive", "open"]


def open(path: str | Path, *, storage_options: Mapping[str, str] | None = None) -> "Archive":
    """Open an archive: a folder, or an address such as ``s3://bucket/prefix``.

    Nothing is written until it is refreshed; a folder that is not there is an empty archive.

    Parameters
    ----------
    path : str or Path
        Where it is, or shall be.
    storage_options : mapping of str to str, optional
        What an object store needs, by the names of `deltalake`.

    Returns
    -------
    Archive

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
    return Archive(Tables(str(path), storage_options))


class Archive:
    """What was fetched, kept: Delta tables, one a kind of record. Make one with `open`."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def __repr__(self) -> str:
        return f"<Archive {self.tables.location}>"

    def refresh(
        self,
        fetch: Callable[..., Any],
        *arguments: Any,
        session: Session | None = None,
        rows_per_commit: int = ROWS_PER_COMMIT,
        **named: Any,
    ) -> Refreshed:
        """Fetch what is missing, and keep it.

        A history (fills, funding, orders, ledger, slippage) goes on from its last row, and gains
        its beginning where `start` is earlier than what is archived; whatever else is asked for
        is kept as one more answer.

        Parameters
        ----------
        fetch : callable
            A fetch function.
        *arguments, **named
            What it is called with. Histories take no filter: filter when reading. Without a
            `start` they begin with the first day that the service has.
        session : Session, optional
            Whom to ask; the default session when not given.
        rows_per_commit : int
            How many rows, at least, are appended at once.

        Returns
        -------
        Refreshed
            What was new.

        Raises
        ------
        ArchiveError
            If the archive cannot be written, or the service's history is another than before.
        ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent
            As in fetching; what was read before is kept.
        """
        return refresh(
            self.tables,
            fetch,
            arguments,
            named,
            session=session,
            rows_per_commit=rows_per_commit,
        )

    def frame(
        self,
        what: str | Callable[..., Any],
        *arguments: Any,
        start: Time | None = None,
        end: Time | None = None,
        numbers: Numbers = "float",
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

        Returns
        -------
        DataFrame or tuple of DataFrame
            Columns, dtypes and order are exactly those of fetching. Its provenance says
            whether the range is complete.

        Raises
        ------
        ArchiveError
            If nothing is archived of the question.
        """
        series = series_of(operation_named(what), arguments, named)
        made = frames(self.tables, series, start, end, numbers)
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
        name = _table_named(record)
        condition = {}
        if operation is not None:
            condition["_operation"] = operation_named(operation).type
        if subject is not None:
            condition["_subject"] = subject.lower() if subject.startswith("0x") else subject
        first, last = (None if one is None else to_ms(one) for one in (start, end))
        return scan(self.tables, name, condition, first, last, columns, engine)


def _table_named(record: str | type[Record]) -> str:
    for name, one in RECORDS.items():
        if record in (name, one):
            return name
    if record in (ANSWERS, PULLS):
        return str(record)
    if isinstance(record, str):
        return table_of(operation_named(record))
    raise ArchiveError(f"no table holds {record.__name__}: choose one of {', '.join(RECORDS)}")
