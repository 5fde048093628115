"""Fetched frames in a notebook: one line for each row, short hashes, and times to the millisecond.

pandas breaks times and hashes over several lines of a cell, and a hash of 66 characters takes half
of a screen. The frame itself stays as it is.
"""

from typing import Any, Final

import pandas as pd

from toolkit import display

_STYLE: Final = (
    "<style>.tk-frame{overflow-x:auto}.tk-frame td,.tk-frame th{white-space:nowrap}</style>"
)
_LONG: Final = 20
"""Longer texts that begin with 0x are shortened: addresses and hashes."""


def register_view(formatter: Any) -> None:
    """Make a notebook show fetched frames as `frame_html`.

    Frames of other origin stay as they are, and so does a view of frames that the user chose.

    Parameters
    ----------
    formatter : IPython.core.formatters.HTMLFormatter
        What makes HTML of the values of cells.
    """
    try:
        formatter.lookup_by_type(pd.DataFrame)
    except KeyError:
        formatter.for_type(pd.DataFrame, frame_html)


def frame_html(frame: pd.DataFrame) -> str | None:
    """Return a frame as HTML for a notebook; a frame that nothing fetched as pandas shows it.

    Examples
    --------
    >>> frame = pd.DataFrame({"hash": ["0x" + 64 * "a"]})
    >>> frame.attrs["toolkit"] = {"rows": 1}
    >>> "<td>0xaaaaaa…aaaa</td>" in frame_html(frame)
    True
    """
    if type(frame) is not pd.DataFrame or "toolkit" not in frame.attrs:
        html: str | None = frame._repr_html_()  # type: ignore[operator]  # the stubs see a column
        return html
    if not pd.get_option("display.notebook_repr_html"):
        return None
    most, few = pd.get_option("display.max_rows"), pd.get_option("display.min_rows")
    formatters = {
        name: display.time_text if isinstance(dtype, pd.DatetimeTZDtype) else _cell_text
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, pd.DatetimeTZDtype) or pd.api.types.is_string_dtype(dtype)
    }
    body = frame.to_html(
        max_rows=(few or most) if most and len(frame) > most else None,
        max_cols=pd.get_option("display.max_columns"),
        formatters=formatters,
        show_dimensions=True,
        notebook=True,
    )
    return f'<div class="tk-frame">{_STYLE}{body}</div>'


def _cell_text(value: object) -> str:
    text = str(value)
    is_long = text[:2] == "0x" and len(text) > _LONG
    return f"{text[:8]}\N{HORIZONTAL ELLIPSIS}{text[-4:]}" if is_long else text
