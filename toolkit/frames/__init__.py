"""Typed DataFrames from decoded rows; no other package makes frames from the wire.

A frame has every column of its record in the order of the specification. Its dtypes are always the
same, even if it is empty. Each page becomes columns at once and the columns are joined at the end,
so that a million rows are never in memory as objects.
"""

from toolkit.frames.answer_frames import frame
from toolkit.frames.arrays import EXACT, column_dtype
from toolkit.frames.collect import Collector, Extra
from toolkit.frames.provenance import Provenance, provenance

__all__ = ["EXACT", "Collector", "Extra", "Provenance", "column_dtype", "frame", "provenance"]
