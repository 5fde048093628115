"""One request for many subjects at once, without losing any of them silently."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, as_completed
from contextlib import suppress
from typing import Any, Literal, TypeVar, cast

import pandas as pd

from toolkit.client import Session, current_session
from toolkit.contract.operations import Operation
from toolkit.contract.requests import wire_value
from toolkit.display import type_text
from toolkit.errors import HistoryWarning, Incomplete, IncompleteWarning, ToolkitError, warn_caller
from toolkit.fetch.concat import concat_subjects, subjects_of
from toolkit.fetch.pull import pop_deferred_warning, prepare_request
from toolkit.fetch.registry import operation_of
from toolkit.fetch.workers import FATAL_ERRORS, ClusterClient, Workers, executor_error
from toolkit.public_names import publish_as
from toolkit.times import to_ms

__all__ = ["OnError", "many"]

Answer = TypeVar("Answer", bound=pd.DataFrame | tuple[Any, ...])
"""The return type of a fetch function: a frame, or a named tuple of frames."""

OnError = Literal["raise", "warn"]
"""What to do if subjects failed."""


@publish_as("toolkit")
def many(
    fetch: Callable[..., Answer],
    subjects: str | Iterable[str],
    *arguments: object,
    executor: Executor | ClusterClient | None = None,
    on_error: OnError = "raise",
    resume: Answer | BaseException | None = None,
    **named: object,
) -> Answer:
    """Fetch the same operation for many accounts, builders, validators, coins or dexes.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    subjects : str or iterable of str
        Values of its first parameter: addresses, coins or dexes. One text counts as a list of one
        subject. Two spellings of one subject, such as an address in two cases or ``"BTC"`` and
        ``"main:BTC"``, count once.
    *arguments, **named
        The other arguments of the fetch function.
    executor : Executor or Dask Client, optional
        Where the calls run: threads, processes, or a cluster. By default eight threads that share
        the session, its connections and its budget. Other processes make a session like it, with
        the key in *their* ``TOOLKIT_API_KEY``: a key is never sent to a worker. With
        ``points_per_minute`` all processes of one machine share one budget.
    on_error : {"raise", "warn"}, default "raise"
        If subjects failed: raise `Incomplete` with the rows of the others, or warn and return
        these rows; their provenance then says ``complete: no`` and why each subject ``failed``.
    resume : DataFrame or tuple or exception, optional
        The result of an earlier, unfinished call: its frame, also one read back from Parquet, or
        the `Incomplete` or `KeyboardInterrupt` that it raised. Only the subjects that are missing
        in it are fetched; their rows follow those of the earlier call.

    Returns
    -------
    DataFrame, or named tuple of DataFrame
        What `fetch` returns, with the rows of all subjects in the order of `subjects`; after
        `resume` the rows of the earlier call come first. A first column names the subject: `user`,
        `builder`, `validator`, `coin` or `dex`, as in the fetch function. It is not added if the
        rows already have their `coin` or `dex`. If the rows already have another address in a
        column of that name, it is called `account` (of a builder: `requested_builder`). An added
        column has the values that were sent: addresses in lower case, and the name of the native
        dex as the operation writes it. The certificates are summed in provenance.

    Raises
    ------
    Incomplete
        If a subject failed. ``error.rows`` has the rows of the others, ``error.failed`` the errors
        by subject, in the spelling of the request. ``resume=error`` fetches the failed subjects
        again.
    KeyboardInterrupt
        If the call is interrupted: ``error.rows`` has the rows so far, and ``resume=error``
        continues. In a notebook ``sys.last_value`` is that error.
    TypeError
        If the function takes many subjects itself, if `subjects` is None or a frame, or if an
        argument of the function is missing or unknown.
    ValueError
        If `resume` is the result of another request, or `on_error` is not ``raise`` or ``warn``.

    Notes
    -----
    A refused key or a spent budget ends the call at once for all subjects. Ages such as ``"7d"``
    are counted from the beginning of the call for every subject; when resuming, from the beginning
    of the first call.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> fills = tk.many(tk.user_fills_by_time, session.world["users"][:3], "30d")
    >>> fills.columns[:2].tolist()
    ['user', 'coin']
    """
    operation = operation_of(fetch)
    subjects = _unique_subjects(operation, subjects)
    if on_error not in ("raise", "warn"):
        raise ValueError(f"on_error must be 'raise' or 'warn', not {on_error!r}")
    session = current_session(cast("Session | None", named.pop("session", None)))
    arguments_by_name = _bind_arguments(fetch, operation, arguments, named)
    before, call = _resumed_call(operation, arguments_by_name, session, resume)
    done = [] if before is None else subjects_of(operation, _first_frame(before))
    _check_arguments(operation, subjects, call, session)
    calls = _ManyCalls(operation, fetch, call, session)
    numbers = call.get("numbers", "float")
    try:
        calls.run([subject for subject in subjects if subject not in done], executor)
        _warn_once(operation, calls.answers.values())
        joined = concat_subjects(operation, calls.answers, calls.failed, numbers, before)
    except KeyboardInterrupt as interrupt:
        rows = concat_subjects(operation, calls.answers, calls.failed, numbers, before)
        vars(interrupt)["rows"] = rows
        interrupt.add_note("error.rows has the rows so far; resume=error continues")
        raise
    if calls.failed:
        _report_failures(calls.failed, len(subjects), joined, on_error)
    return cast("Answer", joined)


class _ManyCalls:
    """The calls for the subjects, with the answer or the error of each."""

    def __init__(
        self,
        operation: Operation,
        fetch: Callable[..., Any],
        call: Mapping[str, Any],
        session: Session,
    ) -> None:
        self.operation = operation
        self.fetch = fetch
        self.call = call
        self.session = session
        self.answers: dict[str, Any] = {}
        self.failed: dict[str, ToolkitError] = {}

    def run(self, subjects: list[str], executor: Executor | ClusterClient | None) -> None:
        """Call the fetch function for every subject."""
        name = self.operation.parameters[0].python
        with Workers(self.session, executor) as workers:
            running: dict[Future[Any], str] = {}
            try:
                for subject in subjects:
                    try:
                        future = workers.submit(self.fetch, {name: subject, **self.call})
                        running[future] = subject
                    except ToolkitError as error:
                        self.failed[subject] = error
                self._collect(running, workers)
            except BaseException:  # an interrupt, too, leaves no call that runs on
                self._cancel(running)
                raise
            finally:
                self.answers = {k: self.answers[k] for k in subjects if k in self.answers}
                self.failed = {k: self.failed[k] for k in subjects if k in self.failed}

    def _collect(self, running: Mapping["Future[Any]", str], workers: Workers) -> None:
        title = f"{self.operation.type} of {len(running)}"
        with self.session.show_progress(title) as count_subjects:
            for future in as_completed(running):
                subject = running[future]
                try:
                    self.answers[subject] = self._check_answer(subject, future.result())
                except KeyboardInterrupt:
                    raise
                except ToolkitError as error:
                    self.failed[subject] = error
                    if isinstance(error, FATAL_ERRORS):
                        workers.fatal_error = error
                        for other in running:
                            other.cancel()
                except BaseException as error:  # of the executor; a worker may even exit
                    is_cancelled = isinstance(error, CancelledError)
                    reason = workers.fatal_error if is_cancelled else None
                    self.failed[subject] = reason or executor_error(error)
                count_subjects(1)

    def _cancel(self, running: Mapping["Future[Any]", str]) -> None:
        """Cancel what has not begun; keep answers that came and were not collected yet."""
        for future, subject in running.items():
            if future.cancel() or not future.done() or subject in self.failed:
                continue
            if future.exception() is None:
                with suppress(Exception):
                    self.answers[subject] = self._check_answer(subject, future.result())

    def _check_answer(self, subject: str, answer: Any) -> Any:
        """Return an answer; raise TypeError if it is not the one of this subject."""
        frames = answer if isinstance(answer, tuple) else (answer,)
        if len(frames) != len(self.operation.tables) or not all(
            isinstance(frame, pd.DataFrame) for frame in frames
        ):
            raise TypeError(
                f"the executor returned {type_text(answer)}, not the frame of this call"
            )
        facts = frames[0].attrs.get("toolkit", {})
        found = facts.get("parameters", {}).get(self.operation.parameters[0].python)
        if (facts.get("operation"), found) != (self.operation.type, subject):
            raise TypeError(
                f"the executor returned the frame of {facts.get('operation')} of {found}"
            )
        return answer


def _unique_subjects(operation: Operation, subjects: str | Iterable[str]) -> list[str]:
    """Return each subject once, as it is on the wire."""
    if isinstance(subjects, str):
        subjects = [subjects]
    if subjects is None:
        raise TypeError("tk.many takes a list of accounts, builders or coins, not None")
    if isinstance(subjects, pd.DataFrame):
        raise TypeError(
            "tk.many takes a list of accounts, builders or coins, not a frame. Pass one of its "
            'columns, such as frame["user"]'
        )
    if not operation.parameters or operation.parameters[0].kind in ("addresses", "texts"):
        raise TypeError(f"{operation.function} takes all subjects at once: call it directly")
    return list(dict.fromkeys(wire_value(operation.parameters[0], item) for item in subjects))


def _bind_arguments(
    fetch: Callable[..., Any],
    operation: Operation,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments except the subject, by name."""
    name = operation.parameters[0].python
    signature = inspect.signature(fetch)
    try:
        if signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
            bound = signature.bind(*arguments, **{name: ""}, **named)
        else:
            bound = signature.bind("", *arguments, **named)
    except TypeError as error:
        raise TypeError(f"{operation.function}: {error}") from None
    call = {key: value for key, value in bound.arguments.items() if key != name}
    for parameter in operation.parameters[1:]:
        names = {parameter.python, parameter.unless}
        if parameter.required and all(call.get(other) is None for other in names):
            raise TypeError(
                f"{operation.function} needs {parameter.python}. Pass it after the subjects: "
                f"tk.many(tk.{operation.function}, subjects, {parameter.python}=...)"
            )
    return call


def _fix_times(operation: Operation, call: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Return a call with its times in milliseconds, so that all subjects have one range."""
    names = {item.python for item in operation.parameters if item.kind == "time"}
    times = {name: call[name] for name in names if call.get(name) is not None}
    return {**call, **{name: to_ms(value, now_ms=now_ms) for name, value in times.items()}}


def _resumed_call(
    operation: Operation, call: Mapping[str, Any], session: Session, resume: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the rows of the earlier call, and the call with the time range of these rows."""
    now_ms = session.now_ms()
    fixed = _fix_times(operation, call, now_ms)
    if resume is None:
        return None, fixed
    before = getattr(resume, "rows", None) if isinstance(resume, BaseException) else resume
    if before is None:
        raise ValueError(f"resume has no rows to continue from: {resume!r}")
    facts = _first_frame(before).attrs.get("toolkit", {})
    name = operation.parameters[0].python
    is_of_many = f"{name}s" in facts.get("parameters", {}) and "parts" not in facts  # of tk.concat
    if facts.get("operation") != operation.type or not is_of_many:
        raise ValueError(
            f"resume must be the frame or the error of an earlier tk.many({operation.function}, "
            "...), and not a result of tk.concat"
        )
    done = subjects_of(operation, _first_frame(before))
    if not done:
        return None, fixed
    earlier = facts["parameters"]
    # An age gives another time for another present; a date does not.
    aged = {k for k, v in _fix_times(operation, call, now_ms + 1).items() if v != fixed[k]}
    fixed |= {key: earlier[key] for key in aged if key in earlier}
    _check_same_request(operation, {name: done[0], **fixed}, facts, session)
    return before, fixed


def _check_same_request(
    operation: Operation, call: Mapping[str, Any], facts: Mapping[str, Any], session: Session
) -> None:
    """Raise ValueError if the earlier rows are of another request."""
    request = prepare_request(operation, **{**call, "session": session})
    earlier = {
        **facts["parameters"],
        "numbers": facts.get("numbers"),
        "extra": facts.get("extra", "drop"),
    }
    wanted = {**request.parameters, "numbers": request.numbers, "extra": request.extra}
    page = operation.page.python if operation.page else ""
    for key, value in wanted.items():
        if key not in (page, operation.parameters[0].python) and earlier.get(key) != value:
            raise ValueError(
                f"resume was fetched with {key}={earlier.get(key)!r}, not {value!r}. Use the same "
                "arguments"
            )


def _check_arguments(
    operation: Operation, subjects: Sequence[str], call: Mapping[str, Any], session: Session
) -> None:
    """Raise TypeError or ValueError for arguments that no subject can be fetched with."""
    with suppress(ToolkitError):  # these fail for their subject only
        name = operation.parameters[0].python
        for subject in subjects[:1]:
            prepare_request(operation, **{name: subject, **call, "session": session})


def _first_frame(joined: Any) -> pd.DataFrame:
    return joined if isinstance(joined, pd.DataFrame) else joined[0]


def _warn_once(operation: Operation, answers: Iterable[Any]) -> None:
    """Issue one warning for the warnings of all calls."""
    warnings = dict.fromkeys(pop_deferred_warning(_first_frame(answer)) for answer in answers)
    if words := "; ".join(filter(None, warnings)):
        warn_caller(f"{operation.function}: {words}", HistoryWarning)


def _report_failures(
    failed: dict[str, ToolkitError], subjects: int, joined: Any, on_error: OnError
) -> None:
    """Warn that subjects failed, or raise Incomplete with the rows of the others."""
    first = next(iter(failed))
    words = f"{len(failed)} of {subjects} subjects failed. First error: {first}: {failed[first]}"
    if on_error == "warn":
        warn_caller(words, IncompleteWarning)
        return
    raise Incomplete(
        f"{words} [error.rows has the other rows, and error.failed has all errors. Continue with "
        "tk.many(..., resume=error)]",
        rows=joined,
        failed=failed,
    )
