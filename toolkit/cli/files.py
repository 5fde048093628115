"""Frames as files: a file is written completely, or not at all."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from toolkit.cli.console import fail
from toolkit.downloads import MAX_SHEET_ROWS, write_csv, write_excel
from toolkit.errors import MissingExtra
from toolkit.installation import explain_missing

if TYPE_CHECKING:
    import pandas as pd


def check_path(path: Path) -> None:
    """End the command if a file cannot be written at a path; called before anything is read."""
    if path.suffix not in WRITERS:
        fail(f"cannot write {path}: the file name must end in {', '.join(WRITERS)}", code=2)
    if not path.parent.is_dir():
        fail(f"there is no folder {path.parent}: create it first", code=2)
    if path.suffix == ".xlsx":
        try:
            with explain_missing("plots"):
                import xlsxwriter  # noqa: F401  # pandas uses it
        except MissingExtra as error:
            fail(str(error))


def write_frame(frame: "pd.DataFrame", path: Path) -> None:
    """Write a frame into a temporary file beside the path, then rename that file.

    Raises
    ------
    typer.Exit
        If the frame has too many rows for Excel. Then it is written as Parquet.
    OSError
        If the file cannot be written. The error names the path.
    """
    if path.suffix == ".xlsx" and len(frame) > MAX_SHEET_ROWS:
        other = path.with_suffix(".parquet")
        write_frame(frame, other)
        fail(f"{len(frame):,} rows do not fit in an Excel sheet; they are in {other}")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                WRITERS[path.suffix](frame, file)
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)  # the mask can only be read by setting it
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)  # only the owner can read a temporary file
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:  # if the disk is full, Python's error names no file
        raise OSError(error.errno, f"{error.strerror}; nothing was written", str(path)) from error


def write_json_lines(
    frame: "pd.DataFrame", file: BinaryIO, extra: Mapping[str, Any] | None = None
) -> None:
    """Write one JSON object per row.

    Floats have all their digits, exact numbers are text, and times are ISO texts.
    """
    import msgspec
    import pyarrow as pa

    encode = msgspec.json.Encoder().encode
    for batch in pa.Table.from_pandas(frame, preserve_index=False).to_batches(10_000):
        for row in batch.to_pylist():
            file.write(encode({**(extra or {}), **row}) + b"\n")


WRITERS: Final[dict[str, Callable[["pd.DataFrame", BinaryIO], None]]] = {
    ".parquet": lambda frame, file: frame.to_parquet(file, index=False),
    ".csv": write_csv,
    ".xlsx": write_excel,
    ".jsonl": write_json_lines,
}
"""Suffix of a file -> the function that writes it."""
