"""Tables as files: CSV and Excel, as a file on disk or as an address that a page contains."""

import base64
import datetime as dt
import io
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, BinaryIO, Final, NamedTuple

from toolkit.installation import explain_missing

MAX_SHEET_ROWS: Final = 2**20 - 1  # of a sheet, below its heading
_MAX_DIGITS: Final = 15  # of a number in a sheet
_MADE: Final = dt.datetime(1980, 1, 1)  # a fixed time, so that equal tables are equal files
_PLAIN_TEXT: Final = {"options": {f"strings_to_{kind}": False for kind in ("formulas", "urls")}}


class Download(NamedTuple):
    """A file that a page contains.

    - ``kind``: the name that a reader sees, such as CSV
    - ``name``: the name of the file
    - ``address``: its content, as a ``data:`` address
    """

    kind: str
    name: str
    address: str


def downloads(caption: str, frame: Any, columns: Iterable[str]) -> list[Download]:
    """Return columns of a frame as CSV and as Excel, named by the first words of a caption.

    Examples
    --------
    >>> import pandas as pd
    >>> [file.name for file in downloads("By coin, in USD.", pd.DataFrame({"a": [1]}), ["a"])]
    ['by-coin-in-usd.csv', 'by-coin-in-usd.xlsx']
    """
    shown = frame[list(dict.fromkeys(columns))]
    name = "-".join(re.findall(r"[a-z0-9]+", caption.lower())[:6]) or "table"
    made = []
    for kind, suffix, media_type, write in _KINDS:
        file = io.BytesIO()
        write(shown, file)
        # Without a slash, so that no part of the text looks like an address of another page.
        text = base64.b64encode(file.getvalue()).decode().replace("/", "%2F")
        made.append(Download(kind, f"{name}.{suffix}", f"data:{media_type};base64,{text}"))
    return made


def write_csv(frame: Any, file: BinaryIO) -> None:
    """Write a frame as CSV, with all of its digits."""
    frame.to_csv(file, index=False, lineterminator="\n")


def write_excel(frame: Any, file: BinaryIO) -> None:
    """Write a frame as the only sheet of an Excel file; equal frames make equal files.

    A time is in UTC, without its zone, which Excel does not know. An integer or exact number of
    more than 15 digits is text, with the whole column, because Excel would round it. Floats keep
    16 digits.

    Raises
    ------
    ValueError
        If the frame has more rows than a sheet, 1,048,575.
    """
    import pandas as pd

    if len(frame) > MAX_SHEET_ROWS:
        raise ValueError(
            f"{len(frame):,} rows do not fit in an Excel sheet, which has {MAX_SHEET_ROWS:,}; "
            "write Parquet or CSV instead"
        )
    shown = pd.DataFrame({name: _sheet_column(column) for name, column in frame.items()})
    with explain_missing("plots"):
        import xlsxwriter  # noqa: F401  # pandas uses it
    with pd.ExcelWriter(
        file, "xlsxwriter", datetime_format="yyyy-mm-dd hh:mm:ss.000", engine_kwargs=_PLAIN_TEXT
    ) as writer:
        writer.book.set_properties({"created": _MADE})
        shown.to_excel(writer, index=False, freeze_panes=(1, 0))
        writer.book.worksheets()[0].autofit()


def _sheet_column(column: Any) -> Any:
    """Return a column with values for a spreadsheet: numbers, text, booleans, or UTC times."""
    import pandas as pd

    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None)
    if not pd.api.types.is_object_dtype(column.dtype) and not hasattr(
        column.dtype, "pyarrow_dtype"
    ):
        large = pd.api.types.is_integer_dtype(column) and column.abs().ge(10**_MAX_DIGITS).any()
        return column.astype("str") if large else column
    values = [None if value is None or value is pd.NA else value for value in column]
    if all(value is None or isinstance(value, Decimal) for value in values):
        # Zeros at the end of a number do not count.
        digits = [len(value.normalize().as_tuple().digits) for value in values if value is not None]
        short = max(digits, default=0) <= _MAX_DIGITS
        write: Callable[[Decimal], Any] = float if short else "{:f}".format
    else:
        write = _sheet_value
    return [None if value is None else write(value) for value in values]


def _sheet_value(value: Any) -> Any:
    """Return a scalar as it is, and a list or a mapping as JSON."""
    import msgspec

    return msgspec.json.encode(value).decode() if isinstance(value, (list, dict)) else value


_KINDS: Final = (
    ("CSV", "csv", "text/csv", write_csv),
    (
        "Excel",
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        write_excel,
    ),
)
