"""Reports as PDF, printed by a local browser."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from toolkit.errors import ReportFailed
from toolkit.installation import find_browser

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
_TIMEOUT: Final = 180  # seconds


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
        command = [browser, *_OPTIONS, f"--user-data-dir={folder}", f"--print-to-pdf={printed}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium as root does not start with a sandbox
        try:
            subprocess.run(
                [*command, source.as_uri()], check=True, capture_output=True, timeout=_TIMEOUT
            )
            shutil.copyfile(printed, path)
        except (subprocess.SubprocessError, FileNotFoundError) as error:
            raise ReportFailed(
                f"{browser} could not print {source.name} as PDF ({_failure_text(error)}). Open "
                "the page in a browser, and print it there"
            ) from None
    return path


def _failure_text(error: Exception) -> str:
    """Return why a browser printed nothing, in a few words."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it took more than {_TIMEOUT} s"
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return f"exit code {error.returncode}{f': {lines[-1]}' if lines else ''}"
    return "it wrote no file"
