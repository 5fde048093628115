"""Reports as files: from a notebook, its parameters and a source of data to an HTML page."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolkit.errors import ReportFailed
from toolkit.reports.notebook_runner import read_notebook, run_notebook
from toolkit.reports.page import ReportPage, make_page
from toolkit.reports.pdf import print_pdf

NAMES: Final = ("wallet", "market", "builder", "market_quality", "comparison")
"""The reports of this package."""

_KERNELS: Final = 2


class WrittenReport(NamedTuple):
    """One of several reports: its name, path and digest, or why it is missing."""

    name: str
    path: Path | None
    digest: str | None
    error: str | None
    pdf: Path | None = None


def build(
    notebook: str | os.PathLike[str],
    source: str | None,
    parameters: Mapping[str, Any] | None = None,
    *,
    code: bool = False,
    on_cell: Callable[[int, int], None] | None = None,
) -> ReportPage:
    """Run a notebook with parameters over a source of data, and return its page.

    Parameters
    ----------
    notebook : str or path
        One of `NAMES`, or your own notebook: ``.py``, ``.md`` or ``.ipynb``. Its cell with the tag
        ``parameters`` defines the parameters, its cell with the tag ``source`` makes ``session``.
    source : str, optional
        An expression that makes the session, such as those of
        `toolkit.reports.source_expressions`. It replaces the cell with the tag ``source``; None
        keeps this cell.
    parameters : mapping, optional
        Values of the parameters.
    code : bool, default False
        Whether the page shows the code, folded.
    on_cell : callable, optional
        Called before each cell with its number and the number of cells.

    Raises
    ------
    ReportFailed
        If there is no such notebook or parameter, if a cell raises, or if an output would load
        something from outside the page.
    """
    path = template(notebook) if notebook in NAMES else Path(notebook)
    executed = run_notebook(read_notebook(path), parameters or {}, source, on_cell)
    return make_page(executed, code=code)


def template(name: str | os.PathLike[str]) -> Path:
    """Return the path of a notebook of this package, to copy and change.

    Parameters
    ----------
    name : str
        ``wallet``, ``market``, ``builder``, ``market_quality`` or ``comparison``.

    Returns
    -------
    Path
        A ``.py`` file in percent format. Change a copy, not this file.

    Raises
    ------
    ReportFailed
        If there is no such report.

    Examples
    --------
    >>> template("wallet").name
    'wallet.py'
    """
    if name not in NAMES:
        raise ReportFailed(f"unknown report {name!r}; choose one of {', '.join(NAMES)}")
    with as_file(files("toolkit.reports") / "notebooks" / f"{name}.py") as path:
        return path


def write_page(html: str, out: str | os.PathLike[str]) -> Path:
    """Write a page completely or not at all, with the same bytes on every system."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(html.encode("utf-8"))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def page_digest(html: str) -> str:
    """Return the SHA-256 of a page."""
    return hashlib.sha256(html.encode("utf-8")).hexdigest()


def write_reports(
    notebook: str | os.PathLike[str],
    parameter_sets: Sequence[Mapping[str, Any]],
    source: str,
    folder: str | os.PathLike[str],
    *,
    kernels: int = _KERNELS,
    pdf: bool = False,
    code: bool = False,
) -> Iterator[WrittenReport]:
    """Write a report for each set of parameters; a failed report does not stop the others.

    - ``notebook``: notebook of the reports
    - ``parameter_sets``: parameters of each report. The first parameter names the file.
    - ``source``: an expression that makes the session
    - ``folder``: folder to write to
    - ``kernels``: number of kernels at the same time
    - ``pdf``: whether to print each report as PDF, too. If printing fails, the report has an error
      and the path of its page.
    - ``code``: whether the pages show the code, folded

    Yields: in the order of the parameters.

    Raise ReportFailed if two reports would have the same name.
    """
    names = [_file_name(parameters) for parameters in parameter_sets]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ReportFailed(
            f"several reports would be written to {', '.join(repeated)}.html. Pass each account "
            "once"
        )

    def write_report(name: str, parameters: Mapping[str, Any]) -> WrittenReport:
        try:
            page = build(notebook, source, parameters, code=code)
        except ReportFailed as error:
            return WrittenReport(name, None, None, str(error))
        path = write_page(page.html, Path(folder) / f"{name}.html")
        report = WrittenReport(name, path, page_digest(page.html), None)
        try:
            return report._replace(pdf=print_pdf(path)) if pdf else report
        except ReportFailed as error:
            return report._replace(error=str(error))

    with ThreadPoolExecutor(kernels) as pool:
        yield from pool.map(write_report, names, parameter_sets)


def _file_name(parameters: Mapping[str, Any]) -> str:
    """Return the first parameter without the characters that a file name cannot have."""
    first = str(next(iter(parameters.values()), "report"))
    return re.sub(r"[^A-Za-z0-9._@-]+", "-", first).strip("-.") or "report"
