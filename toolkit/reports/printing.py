"""A report on paper: PDF by a browser that is here."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from toolkit.errors import ReportFailed

__all__ = ["print_pdf"]

_BROWSERS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
_OPTIONS: Final = (
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
_PATIENCE: Final = 180  # seconds


def print_pdf(page: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Path:
    """Print a report as PDF, with Chromium or Chrome.

    Parameters
    ----------
    page : path
        The HTML file.
    out : path, optional
        Where to write; beside the page when not given.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ReportFailed
        If there is no such browser, or it does not print.
    """
    source = Path(page).absolute()
    path = source.with_suffix(".pdf") if out is None else Path(out)
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise ReportFailed("no browser here prints PDF: install Chromium, or print the HTML file")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="print-", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / "page.pdf"
        command = [browser, *_OPTIONS, f"--user-data-dir={folder}", f"--print-to-pdf={made}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to run as root with one
        try:
            subprocess.run(
                [*command, source.as_uri()], check=True, capture_output=True, timeout=_PATIENCE
            )
            shutil.copyfile(made, path)
        except (subprocess.SubprocessError, FileNotFoundError) as error:
            raise ReportFailed(f"{browser} did not print {source.name}: {error}") from None
    return path
