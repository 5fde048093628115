"""The errors and warnings of this package.

::

    ToolkitError
    ├── ServiceError            the service answered with an error; carries retry_after, in seconds
    │   ├── BadRequest          400: the request is not valid for the operation
    │   ├── InvalidKey          401
    │   ├── NotPermitted        403: no permission for this operation, or a gateway refused
    │   ├── NotReady            404: no snapshot has been published yet
    │   ├── RateLimited         429
    │   └── ServiceDown         500, 502 to 504, 520 to 530
    ├── Unreachable             no answer: connection, DNS, time-out
    ├── AnswerInvalid           an answer that breaks the contract
    │   └── AnswerDamaged       an answer damaged on its way: cut, or its compression is broken
    ├── Incomplete              some rows could not be fetched; carries the others
    ├── BudgetSpent             the points budget does not allow the request
    ├── NotConnected            no session: call tk.connect or tk.local first
    ├── MissingExtra            a library of an extra is not installed; names the command
    ├── MissingColumns          a helper got a frame without a column that it needs
    ├── ArchiveError            the archive refuses the request, or it is damaged
    │   ├── CommitConflict      another process appended to the same history first
    │   ├── StoreUnreachable    the object store did not answer or refused access
    │   └── HistoryMismatch     the service's rows differ from the archived rows
    └── ReportFailed            a report could not be built

Every message says what is wrong, where, and what to do.

The warnings are subclasses of UserWarning::

    HistoryWarning              rows may be missing: the service or another frame lacks them
    IncompleteWarning           requested rows are missing from a frame
    RepeatedRows                rows that were in a frame twice were counted once
    KeyExposed                  somebody other than the service may read the API key
    LimitWarning                a request waits, because the service limits requests
    UnknownField                an answer has a field that the contract does not know
    MissingField                an answer lacks an expected field, or has an unreadable value
    MissingAmounts              some fills lack a price, size, closed PnL or fee
    MissingFees                 no fill with a builder has a builder fee
    MissingTokens               spot buys do not name the token of their fee
    MissingDirections           rows do not state the kind of their event or order
    UnmeasuredAccounts          the margin of accounts is not known, so they are left out
    UnusedPrices                a price is passed for a token that nothing uses
    UnnamedAccount              positions of fills break, and no account is named
"""

import sys
import warnings


class ToolkitError(Exception):
    """The base class of all errors of this package."""


class ServiceError(ToolkitError):
    """The service answered with an error status, or it would do so.

    It may also answer with status 200 and an object that has only an error message.

    Parameters
    ----------
    message : str
        The message of the service: the value of ``error`` in its answer.
    status : int, optional
        The HTTP status of the answer; every subclass has its usual one. The attribute is None if
        this package refused the request and sent nothing.
    operation : str, optional
        The operation's ``type``.
    hint : str, optional
        What to do about it.
    retry_after : float, optional
        Seconds to wait, if the service stated them.
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
        retry_after: float | None = None,
    ) -> None:
        self.message = message
        self.status = self.status if status is None else status
        self.operation = operation
        self.hint = self.hint if hint is None else hint
        self.retry_after = retry_after
        super().__init__(message)

    def __str__(self) -> str:
        where = f"{self.operation}: " if self.operation else ""
        hint = f". {self.hint}" if self.hint else ""
        status = "" if self.status is None else f" (status {self.status})"
        return f"{where}{self.message}{status}{hint}"


class BadRequest(ServiceError):
    """400: the request is not valid for the operation.

    Most are found before a request is sent; then `status` is None.
    """

    status: int | None = 400


def unsent(message: str, operation: str = "", hint: str = "") -> BadRequest:
    """Return the error of a request that was not sent, and so has no status."""
    error = BadRequest(message, operation=operation, hint=hint)
    error.status = None
    return error


class InvalidKey(ServiceError):
    """401: the API key is missing, or the service does not know it."""

    status: int | None = 401
    hint = "Check TOOLKIT_API_KEY or the api_key of tk.connect"


class NotPermitted(ServiceError):
    """403: the key has no permission for this operation, or a gateway refused the client.

    The message and the hint say which of the two is true.
    """

    status: int | None = 403
    hint = "Buy the add-on for this key, or use a key that has it"


class NotReady(ServiceError):
    """404: the service has not published a snapshot yet."""

    status: int | None = 404
    hint = "Wait and try again, or check the names in the request"


class RateLimited(ServiceError):
    """429: the points of the key, or the limit of an operation or a gateway, are used up."""

    status: int | None = 429
    hint = "Wait, or give the session a points_per_minute that matches the key"


class ServiceDown(ServiceError):
    """500 and other 5xx: the service, its upstream or its gateway failed.

    A retry may help.
    """

    status: int | None = 500
    hint = "The service failed; try again later"


class Unreachable(ToolkitError):
    """There was no answer, because of the address, the network or the service.

    Attributes
    ----------
    cause : str
        The reason in a few words.
    has_no_service : bool
        Whether no program listens at an address of this machine, and none has answered before.
    """

    cause: str = "no answer"
    has_no_service: bool = False


class AnswerInvalid(ToolkitError):
    """An answer that breaks the contract, with the place of the problem.

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
        The invalid value as in the answer.
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
        shown = "" if self.value is None else f"; value {_shorten(self.value)}"
        return f"{', '.join(where)}: {self.message}{shown}"


class AnswerDamaged(AnswerInvalid):
    """An answer that was damaged on its way; a retry may help."""


class Incomplete(ToolkitError):
    """Some rows could not be fetched; `rows` is the frame of the others.

    Parameters
    ----------
    message : str
        Why the answer is not complete, and how to continue.
    rows : object, optional
        The rows that were read, as a frame if possible.
    cursor : str, optional
        The cursor from which you can continue; None if there is none.
    failed : dict, optional
        Subject -> error, if the request was for many subjects.
    """

    def __init__(
        self,
        message: str,
        *,
        rows: object = None,
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
    """There is no session that can send the request."""


class MissingColumns(ToolkitError, ValueError):
    """A helper got a frame that lacks a needed column, or whose values there cannot be used."""


class MissingExtra(ToolkitError, ModuleNotFoundError):
    """A library is not installed that is part of an extra; the message has the command for it."""


class ArchiveError(ToolkitError):
    """The archive refuses the request, or it is damaged."""


class CommitConflict(ArchiveError):
    """Another process appended to the same history first."""


class StoreUnreachable(ArchiveError):
    """The store did not answer or refused access, so its content is unknown."""


class HistoryMismatch(ArchiveError):
    """The rows that the service returns for a history differ from the archived rows."""


class ReportFailed(ToolkitError):
    """A report could not be built."""


class HistoryWarning(UserWarning):
    """Requested rows may be missing, because the service does not have them.

    A helper also issues it if rows do not count because related rows of their time are missing.
    """


class RepeatedRows(UserWarning):
    """A frame contains repeated rows; a helper counted each of them once."""


class KeyExposed(UserWarning):
    """Somebody other than the service may read the API key on its way."""


class LimitWarning(UserWarning):
    """A request waits for more than 5 s, because the service limits requests.

    Either its operation has a limit on the number of calls, or the service refused the request for
    some time. The waits of `points_per_minute` have no warning.
    """


class MissingField(UserWarning):
    """An answer lacks a field that the specification says always exists.

    The field is missing (NA) in the frame. The same warning is issued for a field beyond the
    specification that the answer lacks, or whose value cannot be read.
    """


class UnknownField(UserWarning):
    """An answer has a field that the contract does not know; ``extra="keep"`` shows it."""


class IncompleteWarning(UserWarning):
    """Rows that were requested are missing from a frame; its provenance says why."""


class MissingAmounts(UserWarning):
    """Some fills lack a price, size, closed PnL or fee, or a curve lacks amounts."""


class MissingFees(UserWarning):
    """No fill with a builder has a builder fee."""


class MissingTokens(UserWarning):
    """Spot buys do not name the token of their fee."""


class UnmeasuredAccounts(UserWarning):
    """The margin of accounts is not known, so they are left out.

    The collateral of a unified or portfolio-margin account is in its spot wallet, not in its state.
    """


class UnusedPrices(UserWarning):
    """A price is passed for a token that no fill and no dex uses."""


class MissingDirections(UserWarning):
    """Rows do not state the kind of their event or order."""


class UnnamedAccount(UserWarning):
    """Positions of fills break, and nothing names the account of the fills."""


def _shorten(value: object, most: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("toolkit"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


__all__ = [name for name, value in sorted(globals().items()) if isinstance(value, type)]
"""All errors and warnings of the list above."""
