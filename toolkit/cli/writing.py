"""Frames into files: whole, or not at all."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from toolkit.cli.options import fail

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["WRITERS", "check_place", "write", "write_lines"]


def check_place(path: Path) -> None:
    """Refuse before anything is read what could not be written in the end."""
    if path.suffix not in WRITERS:
        fail(f"{path} ends in none of {', '.join(WRITERS)}", code=2)
    if not path.parent.is_dir():
        fail(f"there is no folder {path.parent}", code=2)


def write(frame: "pd.DataFrame", path: Path) -> None:
    """Write a frame beside the place, then put it there in one step.

    Raises
    ------
    OSError
        If it cannot be written; it names the place.
    """
    try:
        _write_whole(frame, path)
    except OSError as error:  # of a full disk Python names no file
        raise OSError(error.errno, f"{error.strerror}; nothing was written", str(path)) from error


def _write_whole(frame: "pd.DataFrame", path: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            WRITERS[path.suffix](frame, file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())  # a temporary file is for its owner alone
        os.replace(name, path)
    except BaseException:  # an interrupt leaves no half a file either
        Path(name).unlink(missing_ok=True)
        raise


def write_lines(
    frame: "pd.DataFrame", file: IO[bytes], extra: Mapping[str, Any] | None = None
) -> None:
    """Write one JSON object a row: every digit of a float, exact numbers as text, times as ISO."""
    import msgspec
    import pyarrow as pa

    encode = msgspec.json.Encoder().encode
    for batch in pa.Table.from_pandas(frame, preserve_index=False).to_batches(10_000):
        for row in batch.to_pylist():
            file.write(encode({**(extra or {}), **row}) + b"\n")


def _write_parquet(frame: "pd.DataFrame", file: IO[bytes]) -> None:
    frame.to_parquet(file, index=False)


def _write_csv(frame: "pd.DataFrame", file: IO[bytes]) -> None:
    frame.to_csv(file, index=False, lineterminator="\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


WRITERS: Final[dict[str, Callable[["pd.DataFrame", IO[bytes]], None]]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": write_lines,
}
"""How a file is written, by its suffix."""
