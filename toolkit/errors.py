"""What can go wrong, as one tree.

::

    ToolkitError
    ├── ServiceError            the service answered with an error status
    │   ├── BadRequest          400: the request is not of the operation's form
    │   ├── InvalidKey          401
    │   ├── NotPermitted        403: the key may not use this operation, or a gateway refused us
    │   ├── NotReady            404: no snapshot has been published yet
    │   ├── RateLimited         429: carries retry_after, in seconds
    │   └── ServiceDown         500, 502 to 504, 520 to 530
    ├── Unreachable             no answer came: connection, DNS, time-out
    ├── AnswerInvalid           an answer that breaks the contract
    │   └── AnswerDamaged       one that broke on the way: cut short, or its compression broken
    ├── Incomplete              not all rows could be had; carries those that could
    ├── BudgetSpent             the points budget does not allow the request
    ├── NotConnected            no session: call tk.connect or tk.local first
    ├── MissingColumns          a helper was given a frame without a column it needs
    ├── ArchiveError            the archive refuses, or is damaged
    └── ReportFailed            a report could not be built

Every message says what happened, where, and what to do. Two classes are warnings: `HistoryWarning`
says that rows may be missing that the service does not have, or of whose time other rows are
given; `RepeatedRows` that a helper left out rows that stand in a frame twice.
"""

from typing import Any

__all__ = [
    "AnswerDamaged",
    "AnswerInvalid",
    "ArchiveError",
    "BadRequest",
    "BudgetSpent",
    "HistoryWarning",
    "Incomplete",
    "InvalidKey",
    "MissingColumns",
    "NotConnected",
    "NotPermitted",
    "NotReady",
    "RateLimited",
    "RepeatedRows",
    "ReportFailed",
    "ServiceDown",
    "ServiceError",
    "ToolkitError",
    "Unreachable",
]


class ToolkitError(Exception):
    """Any error that this package raises on purpose."""


class ServiceError(ToolkitError):
    """The service answered with an error status, or would do so.

    Parameters
    ----------
    message : str
        The service's own words, the value of ``error`` in its answer.
    status : int, optional
        The HTTP status of the answer; every subclass has its usual one. The attribute is None
        where the request was refused on this side: nothing was sent, and no status came.
    operation : str, optional
        The operation's ``type``.
    hint : str, optional
        What to do about it.
    """

    status: int | None = 500
    hint: str = ""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        operation: str = "",
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.status = self.status if status is None else status
        self.operation = operation
        self.hint = self.hint if hint is None else hint
        super().__init__(message)

    def __str__(self) -> str:
        where = f"{self.operation}: " if self.operation else ""
        hint = f". {self.hint}" if self.hint else ""
        status = "" if self.status is None else f" (status {self.status})"
        return f"{where}{self.message}{status}{hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments do not survive the default pickling, and pools pickle errors.
        return (type(self), (self.message,), self.__dict__)


class BadRequest(ServiceError):
    """400: the request does not have the form that the operation asks for.

    Most are found before anything is sent; then `status` is None.
    """

    status: int | None = 400


class InvalidKey(ServiceError):
    """401: the API key is missing or not known to the service."""

    status: int | None = 401
    hint = "Check TOOLKIT_API_KEY or the key given to tk.connect"


class NotPermitted(ServiceError):
    """403: the key may not use this operation, or a gateway refused the client.

    The message and the hint say which of the two it is.
    """

    status: int | None = 403
    hint = "This operation is an add-on that the key must have bought"


class NotReady(ServiceError):
    """404: the service has not published a snapshot yet."""

    status: int | None = 404
    hint = "Wait and ask again, or check the names that were asked for"


class RateLimited(ServiceError):
    """429: more points were asked for than the key has.

    Parameters
    ----------
    retry_after : float, optional
        Seconds to wait, where the service said so.
    """

    status: int | None = 429
    hint = "Wait, or give the session a points_per_minute that matches the key"

    def __init__(self, message: str, *, retry_after: float | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.retry_after = retry_after


class ServiceDown(ServiceError):
    """500 and other 5xx: the service, its upstream or its gateway failed.

    Asking again may help.
    """

    status: int | None = 500
    hint = "The service failed; ask again later"


class Unreachable(ToolkitError):
    """No answer came: the address, the network or the service is at fault.

    Attributes
    ----------
    cause : str
        In a word or two how it failed.
    """

    cause: str = "no answer"


class AnswerInvalid(ToolkitError):
    """An answer that breaks the contract, with the place where it does.

    Parameters
    ----------
    message : str
        What is wrong.
    operation : str
        The operation's ``type``.
    column : str, optional
        The column of the frame that the value belongs to.
    row : int, optional
        The row's number in the page, from 0.
    value : object, optional
        The offending value as it came.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str = "",
        column: str = "",
        row: int | None = None,
        value: object = None,
    ) -> None:
        self.message = message
        self.operation = operation
        self.column = column
        self.row = row
        self.value = value
        super().__init__(message)

    def __str__(self) -> str:
        where = [self.operation or "answer"]
        if self.column:
            where.append(f"column {self.column}")
        if self.row is not None:
            where.append(f"row {self.row}")
        shown = "" if self.value is None else f"; value {_short(self.value)}"
        return f"{', '.join(where)}: {self.message}{shown}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.message,), self.__dict__)


class AnswerDamaged(AnswerInvalid):
    """An answer that broke on its way: asking again may help."""


class Incomplete(ToolkitError):
    """Not every row could be had; `rows` holds the frame of those that could.

    Parameters
    ----------
    message : str
        Why the answer is not complete, and how to go on.
    rows : object, optional
        What was read so far, as a frame where there is one.
    cursor : str, optional
        The last cursor that is known to be good.
    failed : dict, optional
        Subject -> error, where many subjects were asked for at once.
    """

    def __init__(
        self,
        message: str,
        *,
        rows: Any = None,
        cursor: str | None = None,
        failed: dict[str, ToolkitError] | None = None,
    ) -> None:
        super().__init__(message)
        self.rows = rows
        self.cursor = cursor
        self.failed = failed or {}


class BudgetSpent(ToolkitError):
    """The points budget of this session does not allow the request."""


class NotConnected(ToolkitError):
    """There is no session to ask with."""


class MissingColumns(ToolkitError, ValueError):
    """A helper was given a frame that lacks a column which it needs."""


class ArchiveError(ToolkitError):
    """The archive refuses what was asked, or is damaged."""


class ReportFailed(ToolkitError):
    """A report could not be built."""


class HistoryWarning(UserWarning):
    """Rows that were asked for may be missing, because the service does not have them.

    Or rows that were given do not count, because those of their time beside them are missing.
    """


class RepeatedRows(UserWarning):
    """Rows stand in a frame twice; a helper counted each of them once."""


def _short(value: object, most: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
