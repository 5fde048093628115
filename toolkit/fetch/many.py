"""One question asked of many subjects at once: one frame, nothing lost without a word."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pandas as pd

from toolkit.client import Progress, current_session
from toolkit.errors import Incomplete, ToolkitError
from toolkit.fetch.serves import operation_of

__all__ = ["many"]

_THREADS = 8  # as many as one client has connections


def many(
    fetch: Callable[..., pd.DataFrame],
    subjects: Iterable[str],
    *arguments: Any,
    executor: Executor | None = None,
    **named: Any,
) -> pd.DataFrame:
    """Fetch the same for many accounts, builders, validators or coins.

    Parameters
    ----------
    fetch : callable
        A fetch function whose answer is one frame.
    subjects : iterable of str
        What stands first in its call: addresses, or coins.
    *arguments, **named
        The rest of the call.
    executor : Executor, optional
        Where the calls run; eight threads when not given. They share the session and its
        points budget.

    Returns
    -------
    DataFrame
        The frames below each other, in the order of `subjects`, with the subject in a first
        column: `user`, `builder`, `validator` or `coin`, as the function calls it; `account`
        where the rows have such a column of their own. Subjects without rows have none.

    Raises
    ------
    Incomplete
        If a subject failed. ``error.rows`` holds the frame of the others, ``error.failed``
        the errors by subject.

    Examples
    --------
    >>> import toolkit as tk
    >>> session = tk.local(seed=7, size="tiny")
    >>> fills = tk.many(tk.user_fills_by_time, session.world["users"][:3], "30d")
    >>> fills.columns[:2].tolist()
    ['user', 'coin']
    """
    subjects = list(dict.fromkeys(subjects))
    named["session"] = session = current_session(named.get("session"))
    operation = operation_of(fetch)
    frames: dict[str, pd.DataFrame] = {}
    failed: dict[str, ToolkitError] = {}
    pool = nullcontext(executor) if executor else ThreadPoolExecutor(_THREADS)
    with pool as runner, Progress(session, f"{operation.type} of {len(subjects)}") as progress:
        calls = {one: runner.submit(fetch, one, *arguments, **named) for one in subjects}
        for one, call in calls.items():
            try:
                frames[one] = call.result()
                progress.add(len(frames[one]))
            except ToolkitError as error:
                failed[one] = error
    joined = _join(operation.parameters[0].python, frames, lambda: _empty(fetch))
    if failed:
        first = next(iter(failed))
        raise Incomplete(
            f"{len(failed)} of {len(subjects)} failed, first {first}: {failed[first]} [error.rows "
            "holds the others, error.failed every error; ask again for the keys of error.failed]",
            rows=joined,
            failed=failed,
        )
    return joined


def _join(
    name: str, frames: dict[str, pd.DataFrame], empty: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    parts = list(frames.values()) or [empty()]
    column = "account" if name in parts[0].columns else name
    facts = parts[0].attrs.get("toolkit", {})
    subjects = pd.Series(
        [subject for subject, part in frames.items() for _ in range(len(part))], dtype="str"
    )
    for part in parts:
        part.attrs = {}  # attrs that differ would be compared, row by row, and dropped
    joined = pd.concat(parts, ignore_index=True)
    joined.insert(0, column, subjects)
    parameters = {k: v for k, v in facts.get("parameters", {}).items() if k != name}
    joined.attrs["toolkit"] = {
        **facts,
        "parameters": parameters | {f"{name}s": list(frames)},
        "rows": len(joined),
    }
    return joined


def _empty(fetch: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    from toolkit.frames import frame

    made = frame(operation_of(fetch).type, [])
    assert isinstance(made, pd.DataFrame)
    return made
