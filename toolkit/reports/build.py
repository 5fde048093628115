"""Reports as files: from a notebook, its parameters and a source of data to an HTML page."""

import hashlib
import inspect
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final, NamedTuple

from toolkit.client import Session, connect
from toolkit.contract.apis import EXCHANGE
from toolkit.errors import ReportFailed
from toolkit.installation import find_browser
from toolkit.reports.notebook_runner import read_notebook, run_notebook
from toolkit.reports.page import ReportPage, make_page

NAMES: Final = ("wallet", "market", "builder", "market_quality", "comparison")
"""The reports of this package."""

_KERNELS: Final = 2
_FOLDERS: Final = ("recordings", "archive")
_DEFAULTS: Final = {"cursors": "exclusive", "clock": "fixed", "strict": False, "like": "service"}
_PDF_OPTIONS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-pdf-header-footer",
)
_PDF_TIMEOUT: Final = 180  # seconds


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
        An expression that makes the session, such as that of `session_source`. It replaces the
        cell with the tag ``source``; None keeps this cell.
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
    # The first parameter, without the characters that a file name cannot have.
    firsts = (str(next(iter(parameters.values()), "report")) for parameters in parameter_sets)
    names = [re.sub(r"[^A-Za-z0-9._@-]+", "-", each).strip("-.") or "report" for each in firsts]
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


def print_pdf(page: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Print a report as PDF with Chromium or Chrome.

    - ``page``: the HTML file
    - ``out``: file to write; by default in the folder of the page

    Returns: the file.

    Raise ReportFailed if there is no such browser, or it does not print the page.
    """
    source = Path(page).absolute()
    path = source.with_suffix(".pdf") if out is None else Path(out)
    browser = find_browser()
    if browser is None:
        raise ReportFailed(
            "no browser on this machine prints PDF. Install Chromium, or print the HTML file"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="print-", ignore_cleanup_errors=True) as folder:
        printed = Path(folder) / "page.pdf"
        options = [*_PDF_OPTIONS, f"--user-data-dir={folder}", f"--print-to-pdf={printed}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium as root does not start with a sandbox
        command = [browser, *options, source.as_uri()]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_PDF_TIMEOUT)
            shutil.copyfile(printed, path)
            return path
        except subprocess.TimeoutExpired:
            failure = f"it took more than {_PDF_TIMEOUT} s"
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            failure = f"exit code {error.returncode}{f': {lines[-1]}' if lines else ''}"
        except FileNotFoundError:
            failure = "it wrote no file"
    raise ReportFailed(
        f"{browser} could not print {source.name} as PDF ({failure}). Open the page in a browser, "
        "and print it there"
    )


def source_expression(function: str = "local", /, **arguments: Any) -> str:
    """Return the expression with which the kernel of a report makes its session.

    - ``function``: ``local`` or ``connect``
    - ``**arguments``: its arguments. Folders become absolute; ``@<id>`` after the path of an
      archive names a freeze.

    >>> source_expression(seed=7, size="tiny"), source_expression("connect", exchange=None)
    ("tk.local(seed=7, size='tiny')", 'tk.connect()')
    """
    chosen = {}
    for name, value in arguments.items():
        if name in _FOLDERS and value is not None and "://" not in str(value):
            chosen[name] = os.path.abspath(value)
        elif value is not None and _DEFAULTS.get(name) != value:
            chosen[name] = str(value) if isinstance(value, Path) else value
    if chosen.keys() & set(_FOLDERS):
        chosen = {name: value for name, value in chosen.items() if name not in ("seed", "size")}
    text = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    return f"tk.{function}({text})"


def session_source(session: Session) -> str:
    """Return the expression with which another process opens the same source, without the key.

    Raise ReportFailed if the source cannot be opened again, or its key is not in the environment.

    >>> import toolkit as tk
    >>> session_source(tk.local(seed=7, size="tiny", default=False))
    "tk.local(seed=7, size='tiny')"
    """
    recipe = session.recipe
    if recipe is None:
        raise ReportFailed(
            f"a report runs in a process of its own, which cannot open {session.label} again. "
            "Make the session with tk.local, or with tk.connect without transport="
        )
    if recipe.lacks_key:
        raise ReportFailed(
            "a report runs in a process of its own, and the key is not sent to it. Set "
            "TOOLKIT_API_KEY in the environment"
        )
    arguments = dict(recipe.arguments)
    if "base_url" not in arguments:
        return source_expression(**arguments)
    if session.api is EXCHANGE:
        arguments["exchange"] = EXCHANGE.name
    names = inspect.signature(connect).parameters  # the others are of tests
    known = {name: value for name, value in arguments.items() if name in names}
    return source_expression("connect", **known)
