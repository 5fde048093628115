"""TWAP orders: the exchange places one slice every 30 seconds.

Source: specification, "TWAP snapshot".
"""

from typing import Final

SLICE_TYPE: Final = "Twap Slice"
"""The type of the order of a slice."""

SLICE_MS: Final = 30_000
"""Time between two slices, in milliseconds."""
