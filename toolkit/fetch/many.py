"""One question asked of many subjects at once: nothing lost without a word."""

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from typing import Any, Final, Literal

import pandas as pd

from toolkit.client import Progress, Recipe, Session, current_session
from toolkit.contract.operations import Operation
from toolkit.errors import (
    BudgetSpent,
    HistoryWarning,
    Incomplete,
    InvalidKey,
    NotConnected,
    NotPermitted,
    ToolkitError,
)
from toolkit.fetch.concat import concat_subjects, subjects_of
from toolkit.fetch.notices import IncompleteWarning, pop_held_warning, quiet_calls, warn_caller
from toolkit.fetch.pages import stop_at_next_page
from toolkit.fetch.registry import operation_of
from toolkit.fetch.request import prepare_request
from toolkit.times import to_ms

__all__ = ["FOR_ALL", "OnError", "many"]

OnError = Literal["raise", "warn"]
"""What to do where subjects failed."""

_THREADS: Final = 8  # as many as one client has connections
FOR_ALL: Final = (InvalidKey, NotPermitted, NotConnected, BudgetSpent)
"""What fails for one subject so, fails for all."""


def many(
    fetch: Callable[..., Any],
    subjects: str | Iterable[str],
    *arguments: Any,
    executor: Executor | None = None,
    on_error: OnError = "raise",
    resume: Any = None,
    **named: Any,
) -> Any:
    """Fetch the same for many accounts, builders, validators, coins or dexes.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    subjects : str or iterable of str
        What stands first in its call: addresses, coins or dexes. One text is a list of one.
    *arguments, **named
        The rest of the call.
    executor : Executor, optional
        Where to run the calls: threads, processes, or a cluster's. By default eight threads
        that share the session, its connections and its budget. Other processes make a session
        like it, with the key of *their* ``TOOLKIT_API_KEY``: a key is never sent. With
        ``points_per_minute`` all on one machine keep to one budget.
    on_error : {"raise", "warn"}, default "raise"
        Where subjects failed: raise `Incomplete` with the rows of the others, or warn and
        return these; provenance then says ``complete: no`` and why each ``failed``.
    resume : DataFrame or tuple or exception, optional
        What an earlier, unfinished call gave: its frame, also one read back from Parquet, the
        `Incomplete` that it raised, or the `KeyboardInterrupt`. Only the subjects that it does
        not have are asked for; they come below its rows.

    Returns
    -------
    DataFrame, or named tuple of DataFrame
        What `fetch` returns, the rows below each other in the order of `subjects`, with the
        subject in a first column: `user`, `builder`, `validator`, `coin` or `dex`, as the
        function calls it; `account` where the rows have an address of their own there.
        Subjects without rows have none. Provenance adds up the certificates.

    Raises
    ------
    Incomplete
        If a subject failed. ``error.rows`` holds the rows of the others, ``error.failed``
        the errors by subject; ``resume=error`` asks for those again.
    KeyboardInterrupt
        If it is interrupted: promptly, with what there is as ``rows``, so that
        ``resume=error`` goes on. In a notebook ``sys.last_value`` is that error.
    TypeError
        If the function takes many subjects itself.
    ValueError
        If `resume` is the result of another request.

    Notes
    -----
    A key that is refused, or a budget that is spent, ends the call at once for all subjects.
    Ages such as ``"7d"`` are counted from the beginning of the call, for every subject; when
    resuming, from the beginning of the first call.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> fills = tk.many(tk.user_fills_by_time, session.world["users"][:3], "30d")
    >>> fills.columns[:2].tolist()
    ['user', 'coin']
    """
    operation = operation_of(fetch)
    subjects = _checked(operation, subjects)
    if on_error not in ("raise", "warn"):
        raise ValueError(f"on_error must be 'raise' or 'warn', not {on_error!r}")
    session = current_session(named.pop("session", None))
    call = _call_of(fetch, operation, arguments, named)
    before, call = _earlier(operation, call, session, resume)
    done = [] if before is None else subjects_of(operation, _first(before))
    run = _Run(operation, fetch, call, session)
    numbers = call.get("numbers", "float")
    try:
        run.over([one for one in subjects if one not in set(done)], executor)
        _warn_once(operation, run.answers.values())
        joined = concat_subjects(operation, run.answers, run.failed, numbers, before)
    except KeyboardInterrupt as interrupt:
        rows = concat_subjects(operation, run.answers, run.failed, numbers, before)
        interrupt.rows = rows  # type: ignore[attr-defined]
        interrupt.add_note("the rows so far are on this error as .rows; go on with resume=error")
        raise
    return _finished(run.failed, len(subjects), joined, on_error)


class _Run:
    """The calls for the subjects that are left, and what became of each."""

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
        self.refusal: ToolkitError | None = None  # what ended the call for all

    def over(self, subjects: list[str], executor: Executor | None) -> None:
        """Ask for every subject."""
        with self._runner(executor) as submit:
            running = {submit(one): one for one in subjects}
            try:
                self._gather(running)
            except BaseException:
                self._drop(running)
                raise
            finally:
                self.answers = {k: self.answers[k] for k in subjects if k in self.answers}
                self.failed = {k: self.failed[k] for k in subjects if k in self.failed}

    def _gather(self, running: Mapping["Future[Any]", str]) -> None:
        with Progress(self.session, f"{self.operation.type} of {len(running)}") as progress:
            for future in as_completed(running):
                subject = running[future]
                try:
                    self.answers[subject] = future.result()
                except CancelledError:
                    if self.refusal is not None:
                        self.failed[subject] = self.refusal
                except ToolkitError as error:
                    self.failed[subject] = error
                    if isinstance(error, FOR_ALL):
                        self.refusal = error
                        for other in running:
                            other.cancel()
                except BrokenExecutor as error:
                    self.failed[subject] = Incomplete(f"the executor broke: {error}")
                progress.add(1)

    def _drop(self, running: Mapping["Future[Any]", str]) -> None:
        """Cancel what has not begun; keep what has come and was not looked at yet."""
        for future, subject in running.items():
            if future.cancel() or not future.done() or subject in self.failed:
                continue
            if future.exception() is None:
                self.answers[subject] = future.result()

    def _here(self, call: Mapping[str, Any], stop: threading.Event) -> Any:
        """Ask in a thread; between two pages it looks whether it should stop."""
        if self.refusal is not None:
            raise CancelledError
        try:
            with quiet_calls(), stop_at_next_page(stop):
                return self.fetch(**call, session=self.session)
        except FOR_ALL as error:
            self.refusal = error  # here, so that not even the next in this thread is asked for
            raise

    @contextmanager
    def _runner(self, executor: Executor | None) -> Iterator[Callable[[str], "Future[Any]"]]:
        """Give what submits the call for a subject; when it ends, what runs stops soon."""
        name, stop = self.operation.parameters[0].python, threading.Event()
        shared = executor is None or isinstance(executor, ThreadPoolExecutor)
        pool = ThreadPoolExecutor(_THREADS) if executor is None else executor

        def submit(subject: str) -> "Future[Any]":
            call = {name: subject, **self.call}
            if shared:
                return pool.submit(self._here, call, stop)
            return pool.submit(_elsewhere, self.fetch, call, _recipe(self.session))

        try:
            yield submit
        finally:
            stop.set()
            if executor is None:
                pool.shutdown(wait=False, cancel_futures=True)


def _elsewhere(fetch: Callable[..., Any], call: Mapping[str, Any], recipe: Recipe) -> Any:
    """Ask in another process, with a session that was made there."""
    with quiet_calls():
        return fetch(**call, session=recipe.get_session())


def _recipe(session: Session) -> Recipe:
    if session.recipe is None:
        raise TypeError(
            "this session has a transport of its own, which other processes cannot have: use "
            "threads, or a session of tk.local or of tk.connect with an address"
        )
    return session.recipe


def _checked(operation: Operation, subjects: str | Iterable[str]) -> list[str]:
    if isinstance(subjects, str):
        subjects = [subjects]
    if not operation.parameters or operation.parameters[0].kind in ("addresses", "texts"):
        raise TypeError(f"{operation.function} asks for all at once: call it directly")
    return list(dict.fromkeys(subjects))


def _call_of(
    fetch: Callable[..., Any],
    operation: Operation,
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
) -> dict[str, Any]:
    """Give the arguments besides the subject by name."""
    name = operation.parameters[0].python
    signature = inspect.signature(fetch)
    if signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
        bound = signature.bind(*arguments, **{name: ""}, **named)
    else:
        bound = signature.bind("", *arguments, **named)
    return {key: value for key, value in bound.arguments.items() if key != name}


def _in_milliseconds(operation: Operation, call: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Give the call with its times fixed, so that all subjects have one range."""
    times = {one.python for one in operation.parameters if one.kind == "time"}
    given = {key: call[key] for key in times if call.get(key) is not None}
    return {**call, **{key: to_ms(value, now_ms=now_ms) for key, value in given.items()}}


def _earlier(
    operation: Operation, call: Mapping[str, Any], session: Session, resume: Any
) -> tuple[Any, dict[str, Any]]:
    """Give the rows to go on from, and the call with the range of time that they are of."""
    fixed = _in_milliseconds(operation, call, session.now_ms())
    if resume is None:
        return None, fixed
    before = getattr(resume, "rows", None) if isinstance(resume, BaseException) else resume
    if before is None:
        raise ValueError(f"there are no rows to go on from: {resume!r}")
    facts = _first(before).attrs.get("toolkit", {})
    name = operation.parameters[0].python
    is_ours = f"{name}s" in facts.get("parameters", {}) and "parts" not in facts  # of tk.concat
    if facts.get("operation") != operation.type or not is_ours:
        raise ValueError(f"resume is no result of tk.many with {operation.function}")
    done = subjects_of(operation, _first(before))
    if not done:
        return None, fixed
    asked = facts["parameters"]
    aged = {k for k, v in _in_milliseconds(operation, call, 0).items() if v != fixed[k]}
    fixed |= {key: asked[key] for key in aged if key in asked}
    _same_question(operation, {name: done[0], **fixed}, facts, session)
    return before, fixed


def _same_question(
    operation: Operation, call: Mapping[str, Any], facts: Mapping[str, Any], session: Session
) -> None:
    """Refuse to go on from rows that were asked for otherwise."""
    request = prepare_request(operation, **{**call, "session": session})
    asked = {
        **facts["parameters"],
        "numbers": facts.get("numbers"),
        "extra": facts.get("extra", "drop"),
    }
    wanted = {**request.parameters, "numbers": request.numbers, "extra": request.extra}
    page = operation.page.python if operation.page else ""
    for key, value in wanted.items():
        if key not in (page, operation.parameters[0].python) and asked.get(key) != value:
            raise ValueError(
                f"resume was asked with {key}={asked.get(key)!r}, not {value!r}: the rows would "
                "not belong together"
            )


def _first(joined: Any) -> pd.DataFrame:
    return joined if isinstance(joined, pd.DataFrame) else joined[0]


def _warn_once(operation: Operation, answers: Iterable[Any]) -> None:
    """Warn once of what every call would have warned of."""
    said = dict.fromkeys(pop_held_warning(_first(one)) for one in answers)
    if words := "; ".join(filter(None, said)):
        warn_caller(f"{operation.function}: {words}", HistoryWarning)


def _finished(failed: dict[str, ToolkitError], asked: int, joined: Any, on_error: OnError) -> Any:
    if not failed:
        return joined
    first = next(iter(failed))
    words = f"{len(failed)} of {asked} failed, first {first}: {failed[first]}"
    if on_error == "warn":
        warn_caller(words, IncompleteWarning)
        return joined
    raise Incomplete(
        f"{words} [error.rows holds the others, error.failed every error; go on with "
        "tk.many(..., resume=error)]",
        rows=joined,
        failed=failed,
    )
