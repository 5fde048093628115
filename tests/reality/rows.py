"""Frames of hand-made rows, as the fetch functions return them."""

import pandas as pd

from toolkit.frames import frame


def fills_of(rows, numbers="float"):
    """Return fills as `tk.user_fills_by_time` returns them."""
    wire = [{name: value for name, value in row.items() if name != "about"} for row in rows]
    result: pd.DataFrame = frame("userFillsByTime", wire, numbers=numbers)
    return result
