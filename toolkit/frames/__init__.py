"""Decoded rows to typed DataFrames, and nothing else makes frames from the wire.

A frame has every column of its record, in the order of the specification, with the same
dtype whether it is empty or full, on every page and in every run. Pages become columns as
they come and are joined once, so that a million rows never stand in memory as objects.
"""

from toolkit.frames.arrays import column_dtype
from toolkit.frames.cells import EXACT
from toolkit.frames.collect import Collector, Extra, frame, provenance

__all__ = ["EXACT", "Collector", "Extra", "column_dtype", "frame", "provenance"]
