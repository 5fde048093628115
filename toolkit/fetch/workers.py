"""Workers: where the calls for many subjects run. Threads, processes, or a cluster."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any, Final, Protocol
from weakref import WeakSet

from toolkit.client import Recipe, Session
from toolkit.errors import (
    BudgetSpent,
    Incomplete,
    InvalidKey,
    NotConnected,
    NotPermitted,
    ToolkitError,
)
from toolkit.fetch.pull import work_for_many

THREADS: Final = 8
"""As many threads as one client has connections."""
FATAL_ERRORS: Final = (InvalidKey, NotPermitted, NotConnected, BudgetSpent)
"""Errors that every other subject would have, too."""


class ClusterClient(Protocol):
    """The client of a cluster, such as a Dask ``Client``."""

    def get_executor(self) -> Any:
        """Return an executor that runs calls on the cluster."""


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
        self.stop = threading.Event()
        self.fatal_error: ToolkitError | None = None
        self.session = session
        self._turn = threading.Lock()
        self._futures: WeakSet[Future[Any]] = WeakSet()
        threads = 1 if session.source.in_process else THREADS
        self._own_pool = ThreadPoolExecutor(threads) if executor is None else None
        self._pool: Any = self._own_pool or executor
        if executor is not None and not isinstance(executor, Executor):
            self._pool = executor.get_executor()
        self._recipe: Recipe | None = None
        if not isinstance(self._pool, ThreadPoolExecutor):
            self._recipe = session.recipe
            if self._recipe is None:
                raise TypeError(
                    "this session has a transport of its own, which other processes cannot use. "
                    "Use threads, or a session of tk.local or of tk.connect with an address"
                )

    def submit(self, function: Callable[..., Any], call: Mapping[str, Any]) -> "Future[Any]":
        """Run a function with the arguments `call` and a session.

        Raises
        ------
        Incomplete
            If the executor refuses the call, or if it does not return a new future. If it returned
            the future of an earlier call, both calls would have the same result.
        """
        try:
            if self._recipe is None:
                future = self._pool.submit(self._call_in_thread, function, call)
            else:
                future = self._pool.submit(_call_in_process, function, call, self._recipe)
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


def executor_error(error: BaseException) -> Incomplete:
    """Return an error of this package for one that an executor or its worker raised."""
    failure = Incomplete(
        f"the executor broke: {type(error).__name__}: {error}. Fetch this subject again"
    )
    failure.__cause__ = error
    return failure


def _call_in_process(function: Callable[..., Any], call: Mapping[str, Any], recipe: Recipe) -> Any:
    """Call a function in another process, with a session that is made there."""
    with work_for_many(threading.Event()):
        return function(**call, session=recipe.get_session())
