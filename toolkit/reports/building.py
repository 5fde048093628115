"""Build a report: a notebook, its parameters, a source of data; out comes one HTML file."""

import hashlib
import os
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from toolkit.errors import ReportFailed
from toolkit.reports.page import Page, page_of
from toolkit.reports.running import read_notebook, run_notebook

__all__ = ["NAMES", "build", "digest_of", "template", "write"]

NAMES: Final = ("wallet", "market", "builder", "market_quality")
"""The reports that come with this package."""


def build(
    notebook: str | os.PathLike[str],
    source: str | None,
    parameters: Mapping[str, Any] | None = None,
    *,
    code: bool = False,
    on_cell: Callable[[int, int], None] | None = None,
) -> Page:
    """Run a notebook with parameters over a source of data, and make its page.

    Parameters
    ----------
    notebook : str or path
        One of `NAMES`, or a notebook of your own: ``.py``, ``.md`` or ``.ipynb``. Its cell tagged
        ``parameters`` says what it takes; its cell tagged ``source`` makes ``session``.
    source : str, optional
        An expression that makes the session, as those of `toolkit.reports.source`; it takes the
        place of the cell tagged ``source``. None leaves that cell as it is.
    parameters : mapping, optional
        Values for its parameters.
    code : bool, default False
        Whether the page shows the code as well, folded.
    on_cell : callable, optional
        Called before each cell: its number, and how many there are.

    Raises
    ------
    ReportFailed
        If there is no such notebook or parameter, a cell raises, or the page would need
        something from elsewhere.
    """
    given = read_notebook(template(notebook) if notebook in NAMES else Path(notebook))
    return page_of(run_notebook(given, parameters or {}, source, on_cell), code=code)


def template(name: str | os.PathLike[str]) -> Path:
    """Give the path of a notebook that comes with this package, to copy and change.

    Parameters
    ----------
    name : str
        ``wallet``, ``market``, ``builder`` or ``market_quality``.

    Returns
    -------
    Path
        A ``.py`` in percent format; not to be changed where it lies.

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
        raise ReportFailed(f"there is no report {name}; there are {', '.join(NAMES)}")
    with as_file(files("toolkit.reports") / "notebooks" / f"{name}.py") as path:
        return path


def write(html: str, out: str | os.PathLike[str]) -> Path:
    """Write a page, with its folders: whole or not at all, the same bytes on every system."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(html.encode("utf-8"))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def digest_of(html: str) -> str:
    """Give the SHA-256 of a page."""
    return hashlib.sha256(html.encode("utf-8")).hexdigest()
