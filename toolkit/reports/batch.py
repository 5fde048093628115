"""Many reports of one kind, a few kernels at a time."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolkit.errors import ReportFailed
from toolkit.reports.building import build, digest_of, write
from toolkit.reports.printing import print_pdf

__all__ = ["Written", "write_many"]

_AT_ONCE: Final = 2


class Written(NamedTuple):
    """One report of many: its name, where it lies and its digest, or why one is missing."""

    name: str
    path: Path | None
    digest: str | None
    error: str | None
    pdf: Path | None = None


def write_many(
    notebook: str | os.PathLike[str],
    asked: Sequence[Mapping[str, Any]],
    source: str,
    folder: str | os.PathLike[str],
    *,
    at_once: int = _AT_ONCE,
    pdf: bool = False,
    code: bool = False,
) -> Iterator[Written]:
    """Write a report for each set of parameters; one that fails does not stop the others.

    Parameters
    ----------
    notebook : str or path
        Which report.
    asked : sequence of mapping
        Parameters of each. The first one names the file.
    source : str
        An expression that makes the session.
    folder : path
        Where to write them.
    at_once : int, default 2
        Kernels at a time.
    pdf : bool, default False
        Whether to print each as PDF, too. What is not printed has an error, and its page.
    code : bool, default False
        Whether to show the code as well, folded.

    Yields
    ------
    Written
        In the order asked.

    Raises
    ------
    ReportFailed
        If two would have the same name.
    """
    names = [_name(parameters) for parameters in asked]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ReportFailed(f"several reports would be written to {', '.join(twice)}.html")

    def one(name: str, parameters: Mapping[str, Any]) -> Written:
        try:
            page = build(notebook, source, parameters, code=code)
        except ReportFailed as error:
            return Written(name, None, None, str(error))
        path = write(page.html, Path(folder) / f"{name}.html")
        made = Written(name, path, digest_of(page.html), None)
        try:
            return made._replace(pdf=print_pdf(path)) if pdf else made
        except ReportFailed as error:
            return made._replace(error=str(error))

    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(one, names, asked)


def _name(parameters: Mapping[str, Any]) -> str:
    """Name a file after the first parameter: a coin such as ``dex:COIN`` is no file name."""
    first = str(next(iter(parameters.values()), "report"))
    return re.sub(r"[^A-Za-z0-9._@-]+", "-", first).strip("-.") or "report"
