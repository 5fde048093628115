"""What is installed: the extras of this package, their libraries, and the command that adds them.

The core fetches frames and runs the local service. Each extra adds libraries for one purpose. If a
library is missing, `MissingExtra` names the command that fits this installation. A command never
names this package on a registry, because no registry has it.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from toolkit.errors import MissingExtra

DISTRIBUTION: Final = "exchange-toolkit"

_BROWSERS: Final = "chromium chromium-browser google-chrome google-chrome-stable chrome msedge"

EXTRAS: Final = {
    "analysis": "estimates with intervals: slippage fits, markouts, performance, fill times",
    "plots": "plots, widgets and Excel files",
    "reports": "reports as HTML files; contains analysis and plots",
    "lab": "JupyterLab and notebooks; contains reports and serve",
    "scale": "the archive, Polars and DuckDB",
    "serve": "the service on a port",
}
"""Name of an extra -> what it is for; the extra ``all`` contains each of them."""


@contextmanager
def explain_missing(extra: str) -> Iterator[None]:
    """Re-raise the failed import of a library as MissingExtra, with what to do.

    - ``extra``: the extra that contains the libraries of the block
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if isinstance(error, MissingExtra) or library in ("", "toolkit"):
            raise
        raise MissingExtra(
            f"this needs {library}, which is part of the extra {extra} ({EXTRAS[extra]}). "
            f"Run: {install_command(extra)}",
            name=library,
        ) from None


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    try:
        own = distribution(DISTRIBUTION)
        with_uv = (own.read_text("INSTALLER") or "").strip() == "uv"
        record = own.read_text("direct_url.json")
    except PackageNotFoundError:
        with_uv, record = False, None
    python = _quote(sys.executable)
    installer = f"uv pip install --python {python}" if with_uv else f"{python} -m pip install"
    if (clone := clone_folder()) is not None:
        return f"{installer} -e {_quote(f'{clone}[{extra}]')}"
    address = urlsplit(json.loads(record)["url"] if record else "")
    # The wheel or folder that the package was installed from.
    if address.scheme == "file" and (wheel := Path(unquote(address.path))).exists():
        return f"{installer} {_quote(f'{wheel}[{extra}]')}"
    return f"{installer} {' '.join(map(_quote, extra_requirements(extra)))}"


@cache
def package_version() -> str:
    """Return the version of this package, or "unknown" if it is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def clone_folder() -> Path | None:
    """Return the folder of the clone that this package runs from, if it runs from one."""
    folder = Path(__file__).resolve().parents[1]
    return folder if (folder / "pyproject.toml").is_file() else None


def notebook_folder() -> Path:
    """Return the folder of the notebooks that belong to this package."""
    packaged = Path(__file__).with_name("notebooks")  # in a wheel
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[1] / "notebooks"


def find_browser() -> str | None:
    """Return the path of a browser that prints PDF, if this machine has one."""
    return next(filter(None, map(shutil.which, _BROWSERS.split())), None)


def find_shadow(folder: Path) -> Path | None:
    """Return a module or package in a folder that hides this package from programs there."""
    own = Path(__file__).resolve().parent
    for path in (folder / "toolkit.py", folder / "toolkit" / "__init__.py"):
        if path.is_file() and path.resolve().parent != own:
            return path if path.name == "toolkit.py" else path.parent
    return None


def extra_requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, those of the extras in it included; "" is the core."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    try:
        texts = distribution(DISTRIBUTION).requires or []
    except PackageNotFoundError:  # the package runs from a folder that is not installed
        return []
    found: list[str] = []
    for item in map(Requirement, texts):
        marker = str(item.marker or "")
        is_required = item.marker is None or item.marker.evaluate({"extra": extra})
        if ("extra ==" in marker) != bool(extra) or not is_required:
            continue
        if canonicalize_name(item.name) == DISTRIBUTION:
            found += [text for inner in sorted(item.extras) for text in extra_requirements(inner)]
        else:
            found.append(f"{item.name}{item.specifier}")
    return list(dict.fromkeys(found))


def _quote(text: object) -> str:
    """Return a text as one word of a command line."""
    word = str(text)
    return subprocess.list2cmdline([word]) if os.name == "nt" else shlex.quote(word)
