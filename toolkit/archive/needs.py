"""What the archive needs beyond the core, imported where it is used."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from toolkit.errors import ArchiveError

__all__ = ["need"]


def need(name: str) -> Any:
    """Import a library of the extra `scale`.

    Raises
    ------
    ArchiveError
        If it is not installed; the message names the extra.
    """
    try:
        with nullcontext() if name in sys.modules else _without_native_log():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ArchiveError(
            f"the archive needs {name}, of the extra scale: in the clone, pip install '.[scale]'"
        ) from None


@contextmanager
def _without_native_log() -> Iterator[None]:
    """Keep deltalake from writing to stderr what it raises as well; RUST_LOG brings it back."""
    if "RUST_LOG" in os.environ:
        yield
        return
    os.environ["RUST_LOG"] = "off"
    try:
        yield
    finally:
        os.environ.pop("RUST_LOG", None)
