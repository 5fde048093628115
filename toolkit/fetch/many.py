"""One question asked of many subjects at once: nothing lost without a word."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pandas as pd

from toolkit.client import Progress, current_session
from toolkit.contract.operations import Operation
from toolkit.contract.reading import Numbers
from toolkit.errors import Incomplete, ToolkitError
from toolkit.fetch.certificate import SUMMED, summed
from toolkit.fetch.serves import operation_of
from toolkit.frames import Collector

__all__ = ["many"]

_THREADS = 8  # as many as one client has connections
_COUNTED = (*SUMMED, "retries", "first", "last", "why")  # true of one subject's rows alone


def many(
    fetch: Callable[..., Any],
    subjects: Iterable[str],
    *arguments: Any,
    executor: Executor | None = None,
    **named: Any,
) -> Any:
    """Fetch the same for many accounts, builders, validators, coins or dexes.

    Parameters
    ----------
    fetch : callable
        A fetch function.
    subjects : iterable of str
        What stands first in its call: addresses, coins or dexes.
    *arguments, **named
        The rest of the call.
    executor : Executor, optional
        Threads to run the calls in; eight when not given. They share the session and its
        points budget.

    Returns
    -------
    DataFrame, or named tuple of DataFrame
        What `fetch` returns, the rows below each other in the order of `subjects`, with the
        subject in a first column: `user`, `builder`, `validator`, `coin` or `dex`, as the
        function calls it; `account` where the rows have an address of their own there.
        Subjects without rows have none.

    Raises
    ------
    Incomplete
        If a subject failed. ``error.rows`` holds the rows of the others, ``error.failed``
        the errors by subject.
    TypeError
        If `subjects` is one text, or the function takes many subjects itself.

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
    named["session"] = session = current_session(named.get("session"))
    call = _call(fetch, operation)
    answers: dict[str, Any] = {}
    failed: dict[str, ToolkitError] = {}
    with (
        nullcontext(executor) if executor else _threads() as runner,
        Progress(session, f"{operation.type} of {len(subjects)}") as progress,
    ):
        calls = {one: runner.submit(call, one, *arguments, **named) for one in subjects}
        for one, running in calls.items():
            try:
                answers[one] = running.result()
                progress.add(1)
            except ToolkitError as error:
                failed[one] = error
    joined = _join(operation, answers, named.get("numbers", "float"))
    if failed:
        first = next(iter(failed))
        raise Incomplete(
            f"{len(failed)} of {len(subjects)} failed, first {first}: {failed[first]} [error.rows "
            "holds the others, error.failed every error; ask again for the keys of error.failed]",
            rows=joined,
            failed=failed,
        )
    return joined


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Give threads for the calls; an interrupt drops those that have not begun."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _checked(operation: Operation, subjects: Iterable[str]) -> list[str]:
    if isinstance(subjects, str):
        raise TypeError("subjects is one text: give a list of them")
    if not operation.parameters or operation.parameters[0].kind in ("addresses", "texts"):
        raise TypeError(f"{operation.function} asks for all at once: call it directly")
    return list(dict.fromkeys(subjects))


def _call(fetch: Callable[..., Any], operation: Operation) -> Callable[..., Any]:
    """Give a call whose first argument is the subject, also where it must be named."""
    name = operation.parameters[0].python
    if inspect.signature(fetch).parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY:
        return fetch
    return lambda subject, *arguments, **named: fetch(*arguments, **{name: subject}, **named)


def _join(operation: Operation, answers: dict[str, Any], numbers: Numbers) -> Any:
    """Join what was answered for each subject, table by table."""
    rows = list(answers.values())
    if not rows:
        frames = Collector(operation, numbers).frames(
            {"operation": operation.type, "complete": "yes"}
        )
        joined = [_below(operation, [], [one]) for one in frames]
        return joined[0] if len(joined) == 1 else tuple(joined)
    if isinstance(rows[0], pd.DataFrame):
        return _below(operation, list(answers), rows)
    return type(rows[0])(
        *(_below(operation, list(answers), parts) for parts in zip(*rows, strict=True))
    )


def _below(
    operation: Operation, subjects: Sequence[str], parts: Sequence[pd.DataFrame]
) -> pd.DataFrame:
    name = operation.parameters[0].python
    facts = _facts(name, subjects, parts)
    counted = zip(subjects, parts, strict=False)
    column = [subject for subject, part in counted for _ in range(len(part))]
    bare = [part.copy(deep=False) for part in parts]
    for part in bare:
        part.attrs = {}  # attrs that differ would be compared, and dropped
    joined = pd.concat(bare, ignore_index=True)
    if name != "coin" or name not in joined.columns:
        place = "account" if name in joined.columns else name
        joined.insert(0, place, pd.Series(column, dtype="str"))
    joined.attrs["toolkit"] = facts | {"rows": len(joined)}
    return joined


def _facts(name: str, subjects: Sequence[str], parts: Sequence[pd.DataFrame]) -> dict[str, Any]:
    """Say of the whole what holds for every part; it is complete where each part is."""
    each = [part.attrs.get("toolkit", {}) for part in parts]
    common = {key: value for key, value in each[0].items() if key not in _COUNTED}
    parameters = {key: value for key, value in common.get("parameters", {}).items() if key != name}
    states = {facts.get("complete") for facts in each}
    cut = [one for one, facts in zip(subjects, each, strict=False) if facts["complete"] != "yes"]
    return common | {
        "parameters": parameters | {f"{name}s": list(subjects)},
        "complete": states.pop() if len(states) == 1 else f"not of {', '.join(cut)}",
        **summed(each),
    }
