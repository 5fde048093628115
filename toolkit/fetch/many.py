"""One request for many subjects at once, without losing any of them silently.

The calls run in threads, in processes or on a cluster: `Workers`.
"""

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar, cast
from weakref import WeakSet

import pandas as pd

from toolkit import errors
from toolkit.client import Recipe, Session, current_session
from toolkit.contract.operations import Operation
from toolkit.contract.requests import wire_value
from toolkit.display import type_text
from toolkit.errors import Incomplete, ToolkitError
from toolkit.fetch.concat import concat_subjects
from toolkit.fetch.pull import DEFERRED_WARNING, prepare_request, work_for_many
from toolkit.fetch.registry import operation_of
from toolkit.public_names import publish_as
from toolkit.times import to_ms

Answer = TypeVar("Answer", bound=pd.DataFrame | tuple[Any, ...])
"""The return type of a fetch function: a frame, or a named tuple of frames."""

OnError = Literal["raise", "warn"]
"""What to do if subjects failed."""

THREADS: Final = 8
"""As many threads as one client has connections."""

FATAL_ERRORS: Final = (
    errors.InvalidKey, errors.NotPermitted, errors.NotConnected, errors.BudgetSpent,
)  # fmt: skip
"""Errors that every other subject would have, too."""


class ClusterClient(Protocol):
    """The client of a cluster, such as a Dask ``Client``."""

    def get_executor(self) -> Any:
        """Return an executor that runs calls on the cluster."""


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
        Where the calls run: threads, processes, or a cluster. By default eight threads (one, if
        the service is in this process) that share the session, its connections and its budget.
        Other processes make a session like it, with the key in *their* ``TOOLKIT_API_KEY``: a key
        is never sent to a worker. With ``points_per_minute`` all processes of one machine share
        one budget.
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
    call, now_ms = _bind_arguments(fetch, operation, arguments, named), session.now_ms()
    names = (item.python for item in operation.parameters if item.kind == "time")
    given = {name: call[name] for name in names if call.get(name) is not None}
    times = {name: to_ms(value, now_ms=now_ms) for name, value in given.items()}
    # An age gives another time for another present; a date does not.
    aged = [name for name in given if to_ms(given[name], now_ms=now_ms + 1) != times[name]]
    call |= times  # so that all subjects have one range
    before = None if resume is None else _earlier_rows(operation, call, aged, resume, session)
    name = operation.parameters[0].python
    done = () if before is None else {*_first_facts(before)["parameters"][f"{name}s"]}
    with suppress(ToolkitError):  # these fail for their subject only
        for subject in subjects[:1]:
            prepare_request(operation, **{name: subject, **call, "session": session})
    results: dict[str, Any] = {}  # subject -> its answer, or why there is none

    def join_answers() -> tuple[Any, dict[str, ToolkitError]]:
        found = {subject: results[subject] for subject in subjects if subject in results}
        failed = {k: result for k, result in found.items() if isinstance(result, ToolkitError)}
        answers = {subject: result for subject, result in found.items() if subject not in failed}
        form = call.get("numbers", "float")
        return concat_subjects(operation, answers, failed, form, before), failed

    try:
        with Workers(session, executor) as workers:
            calls = {item: {name: item, **call} for item in subjects if item not in done}
            _run_calls(operation, fetch, calls, workers, results)
        answers = (answer for answer in results.values() if not isinstance(answer, ToolkitError))
        each = (_first_facts(answer).pop(DEFERRED_WARNING, "") for answer in answers)
        if words := "; ".join(filter(None, dict.fromkeys(each))):
            errors.warn_caller(f"{operation.function}: {words}", errors.HistoryWarning)
        joined, failed = join_answers()
    except KeyboardInterrupt as interrupt:
        vars(interrupt)["rows"] = join_answers()[0]
        interrupt.add_note("error.rows has the rows so far; resume=error continues")
        raise
    if failed:
        first, error = next(iter(failed.items()))
        words = f"{len(failed)} of {len(subjects)} subjects failed. First error: {first}: {error}"
        if on_error == "raise":
            raise Incomplete(
                f"{words} [error.rows has the other rows, and error.failed has all errors. "
                "Continue with tk.many(..., resume=error)]",
                rows=joined,
                failed=failed,
            )
        errors.warn_caller(words, errors.IncompleteWarning)
    return cast("Answer", joined)


def _first_facts(answer: Any) -> Any:
    """Return the provenance of an answer, or of the first of its frames."""
    frame = answer if isinstance(answer, pd.DataFrame) else answer[0]
    return frame.attrs.get("toolkit", {})


def _run_calls(
    operation: Operation,
    fetch: Callable[..., Any],
    calls: Mapping[str, Mapping[str, Any]],
    workers: "Workers",
    results: dict[str, Any],
) -> None:
    """Call a function for every subject, and add each answer or error to `results`."""
    running: dict[Future[Any], str] = {}
    try:
        for subject, call in calls.items():
            try:
                running[workers.submit(fetch, call)] = subject
            except ToolkitError as error:
                results[subject] = error
        title = f"{operation.type} of {len(running)}"
        with workers.session.show_progress(title) as count_subjects:
            for future in as_completed(running):
                subject = running[future]
                try:
                    results[subject] = _check_answer(operation, subject, future.result())
                except KeyboardInterrupt:
                    raise
                except ToolkitError as error:
                    results[subject] = error
                    if isinstance(error, FATAL_ERRORS):
                        workers.fatal_error = error
                        for other in running:
                            other.cancel()
                except CancelledError as error:
                    results[subject] = workers.fatal_error or executor_error(error)
                except BaseException as error:  # of the executor; a worker may even exit
                    results[subject] = executor_error(error)
                count_subjects(1)
    except BaseException:  # an interrupt, too, leaves no call that runs on, and keeps what came
        for future, subject in running.items():
            if not future.cancel() and future.done() and subject not in results:
                with suppress(BaseException):  # a process has the interrupt as its result
                    results[subject] = _check_answer(operation, subject, future.result(0))
        raise


def _check_answer(operation: Operation, subject: str, answer: Any) -> Any:
    """Return an answer; raise TypeError if it is not the one of this subject."""
    frames = answer if isinstance(answer, tuple) else (answer,)
    if not all(isinstance(frame, pd.DataFrame) for frame in frames) or not frames:
        raise TypeError(f"the executor returned {type_text(answer)}, not the frame of this call")
    facts = _first_facts(frames)
    found = facts.get("parameters", {}).get(operation.parameters[0].python)
    if (facts.get("operation"), found) != (operation.type, subject):
        raise TypeError(f"the executor returned the frame of {facts.get('operation')} of {found}")
    return answer


def _unique_subjects(operation: Operation, subjects: str | Iterable[str]) -> list[str]:
    """Return each subject once, as it is on the wire."""
    if subjects is None:
        raise TypeError("tk.many takes a list of accounts, builders or coins, not None")
    if isinstance(subjects, pd.DataFrame):
        raise TypeError(
            "tk.many takes a list of accounts, builders or coins, not a frame. Pass one of its "
            'columns, such as frame["user"]'
        )
    if not operation.parameters or operation.parameters[0].kind in ("addresses", "texts"):
        raise TypeError(f"{operation.function} takes all subjects at once: call it directly")
    each = [subjects] if isinstance(subjects, str) else subjects
    return list(dict.fromkeys(wire_value(operation.parameters[0], item) for item in each))


def _bind_arguments(
    fetch: Callable[..., Any],
    operation: Operation,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments except the subject, by name."""
    signature, (subject, *others) = inspect.signature(fetch), operation.parameters
    rest = [item for name, item in signature.parameters.items() if name != subject.python]
    try:
        call = dict(signature.replace(parameters=rest).bind(*arguments, **named).arguments)
    except TypeError as error:
        raise TypeError(f"{operation.function}: {error}") from None
    for parameter in others:
        names = {parameter.python, parameter.unless}
        if parameter.required and all(call.get(other) is None for other in names):
            raise TypeError(
                f"{operation.function} needs {parameter.python}. Pass it after the subjects: "
                f"tk.many(tk.{operation.function}, subjects, {parameter.python}=...)"
            )
    return call


def _earlier_rows(
    operation: Operation, call: dict[str, Any], aged: list[str], resume: Any, session: Session
) -> Any:
    """Return the rows of the earlier call, or None if it has no subject; `call` gets its ages.

    Raise ValueError if they are of another request.
    """
    before = getattr(resume, "rows", None) if isinstance(resume, BaseException) else resume
    if before is None:
        raise ValueError(f"resume has no rows to continue from: {resume!r}")
    facts, name = _first_facts(before), operation.parameters[0].python
    earlier = {"extra": "drop", **facts, **facts.get("parameters", {})}
    is_of_many = f"{name}s" in facts.get("parameters", {}) and "parts" not in facts  # of tk.concat
    if facts.get("operation") != operation.type or not is_of_many:
        raise ValueError(
            f"resume must be the frame or the error of an earlier tk.many({operation.function}, "
            "...), and not a result of tk.concat"
        )
    if not (subjects := earlier[f"{name}s"]):
        return None
    call |= {key: earlier[key] for key in aged if key in facts["parameters"]}
    request = prepare_request(operation, **{**call, name: subjects[0], "session": session})
    wanted = {**request.parameters, "numbers": request.numbers, "extra": request.extra}
    page = operation.page.python if operation.page else ""
    for key, value in wanted.items():
        if key not in (page, name) and earlier.get(key) != value:
            raise ValueError(
                f"resume was fetched with {key}={earlier.get(key)!r}, not {value!r}. Use the same "
                "arguments"
            )
    return before


class Workers:
    """Run functions on an executor. Each call gets the session as the argument `session`.

    Threads share the session. Other processes make a session like it, without the key. After the
    `with` block, threads that still run end their waits and send no further request.

    Parameters
    ----------
    session : Session
        The session.
    executor : Executor or ClusterClient or None
        None stands for `THREADS` threads, or for one if the service is in this process: it needs
        the processor itself.

    Attributes
    ----------
    session : Session
        The session.
    stop : threading.Event
        Once it is set, calls in threads end their waits and send no further request.
    fatal_error : ToolkitError or None
        An error of a call in a thread that every other call would have, too. No further call
        begins.
    """

    def __init__(self, session: Session, executor: Executor | ClusterClient | None) -> None:
        self.session, self.stop, self._turn = session, threading.Event(), threading.Lock()
        self.fatal_error: ToolkitError | None = None
        self._futures: WeakSet[Future[Any]] = WeakSet()
        threads = 1 if session.source.in_process else THREADS
        self._own_pool = ThreadPoolExecutor(threads) if executor is None else None
        pool: Any = self._own_pool or executor
        self._pool = pool if isinstance(pool, Executor) else pool.get_executor()
        self._call: Callable[..., Any] = self._call_in_thread
        if not isinstance(self._pool, ThreadPoolExecutor):
            if session.recipe is None:
                raise TypeError(
                    "this session has a transport of its own, which other processes cannot use. "
                    "Use threads, or a session of tk.local or of tk.connect with an address"
                )
            self._call = partial(_call_in_process, session.recipe)

    def submit(self, function: Callable[..., Any], call: Mapping[str, Any]) -> "Future[Any]":
        """Run a function with the arguments `call` and a session.

        Raises
        ------
        Incomplete
            If the executor refuses the call, or if it does not return a new future. If it returned
            the future of an earlier call, both calls would have the same result.
        """
        try:
            future = self._pool.submit(self._call, function, call)
        except Exception as error:  # such as a cluster that is closed
            raise executor_error(error) from error
        if not isinstance(future, Future) or future in self._futures:
            raise Incomplete(
                f"the executor's submit() returned {future!r}. It must return a new Future for "
                "each call: pass another executor"
            )
        self._futures.add(future)
        return future

    def _call_in_thread(self, function: Callable[..., Any], call: Mapping[str, Any]) -> Any:
        if self.fatal_error is not None:
            raise CancelledError
        try:
            with work_for_many(self.stop, self._turn):
                return function(**call, session=self.session)
        except FATAL_ERRORS as error:
            self.fatal_error = error  # set here, so that this thread begins no further call
            raise

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        if self._own_pool is not None:
            self._own_pool.shutdown(wait=False, cancel_futures=True)


def _call_in_process(recipe: Recipe, function: Callable[..., Any], call: Mapping[str, Any]) -> Any:
    """Call a function in another process, with a session that is made there."""
    with work_for_many(threading.Event()):
        return function(**call, session=recipe.get_session())


def executor_error(error: BaseException) -> Incomplete:
    """Return an error of this package for one that an executor or its worker raised."""
    failure = Incomplete(
        f"the executor broke: {type(error).__name__}: {error}. Fetch this subject again"
    )
    failure.__cause__ = error
    return failure
