"""An operation, page by page: the rows that are certain, and what to ask next."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import msgspec

from toolkit.client.counts import Counts
from toolkit.client.session import Session
from toolkit.completeness.headers import Completeness
from toolkit.contract.answer_types import Numbers
from toolkit.contract.answers import decode
from toolkit.contract.dexes import ALL_DEXES
from toolkit.contract.operations import Operation
from toolkit.contract.paging import PageReader, page_reader
from toolkit.contract.rows import answer_rows

__all__ = ["Batch", "Progress", "pages"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one page that are certain.

    Attributes
    ----------
    tables : tuple
        For each table of the operation its rows, or its columns by name.
    reader : Reader
        Where the reading stands after this page.
    last : bool
        Whether this is the end.
    content : bytes
        The page's body as it came.
    first : int
        Which of its rows is the first that is certain.
    completeness : Completeness
        What the service stated with the first page about all pages.
    """

    tables: tuple[Any, ...]
    reader: PageReader
    last: bool
    content: bytes = field(default=b"[]", repr=False)
    first: int = 0
    completeness: Completeness = field(default_factory=Completeness)

    def texts(self) -> list[bytes]:
        """Give the rows as they stand on the wire, of an operation that answers with a list."""
        rows = msgspec.json.decode(self.content, type=list[msgspec.Raw])
        return [bytes(row) for row in rows[self.first : self.first + len(self.tables[0])]]


def pages(
    session: Session,
    operation: Operation,
    parameters: Mapping[str, Any],
    numbers: Numbers,
    counts: Counts | None = None,
) -> Iterator[Batch]:
    """Ask for an operation until it is complete.

    Parameters
    ----------
    session : Session
        Whom to ask.
    operation : Operation
        What to ask.
    parameters : mapping
        Python name -> value.
    numbers : {"float", "exact", "text"}
        The form of numbers.
    counts : Counts, optional
        Where to count what is done, as `Session.ask` does.

    Yields
    ------
    Batch
        Rows in the order of the operation; every row once.

    Raises
    ------
    ServiceError, Unreachable, AnswerInvalid, Incomplete, BudgetSpent
    """
    current = dict(parameters)
    where = page_reader(operation, current)
    completeness: Completeness | None = None
    while True:
        answer = session.ask(operation, current, counts)
        completeness = completeness or answer.completeness
        decoded = decode(
            operation, 200, answer.headers, answer.content, numbers=numbers, parameters=current
        )
        tables = (decoded,) if operation.binary else answer_rows(operation, decoded, current)
        _count_dexes(session, operation, current, tables)
        if operation.paging == "none":
            yield Batch(tables, where, True, answer.content, completeness=completeness)
            return
        page = where.read(tables[0])
        certain = _slice(tables[0], page.start, page.stop)
        yield Batch((certain,), where, page.after is None, answer.content, page.start, completeness)
        if page.after is None:
            return
        current |= page.after
        if page.after.get("cursor") is not None:
            current.pop("start", None)


class Progress:
    """A progress bar that shows only where somebody watches, and only when it takes long."""

    def __init__(self, session: Session, what: str, *, hidden: bool = False) -> None:
        shown = _somebody_watches() if session.progress is None else session.progress
        if hidden:
            shown = False
        self._bar: Any = None
        if callable(shown):
            self._bar = shown(what)
        elif shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=what, unit=" rows", unit_scale=True, delay=1.0, leave=False)

    def add(self, rows: int) -> None:
        """Count rows."""
        if self._bar is not None:
            self._bar.update(rows)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _count_dexes(
    session: Session, operation: Operation, asked: Mapping[str, Any], tables: Sequence[Any]
) -> None:
    """Note how many dexes there are, if an answer shows it: costs depend on it."""
    scale = operation.scale
    if scale is not None and asked.get(scale.dex) == ALL_DEXES and tables[0]:
        session.dexes = len({row.dex for row in tables[0]})


def _slice(rows: Sequence[Any], start: int, stop: int) -> Sequence[Any]:
    return rows if start == 0 and stop == len(rows) else rows[start:stop]


def _somebody_watches() -> bool:
    """Whether there is a live kernel or a terminal."""
    if "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()
