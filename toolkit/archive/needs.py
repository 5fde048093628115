"""What the archive needs beyond the core, imported where it is used."""

import importlib
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
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ArchiveError(
            f"the archive needs {name}, of the extra scale: in the clone, pip install '.[scale]'"
        ) from None
