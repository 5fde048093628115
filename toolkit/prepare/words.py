"""Words about what a result covers, from numbers."""

from collections.abc import Mapping
from typing import Any

CURVE_GAPS = {
    "unpriced_fees": "fees in other tokens",
    "unknown_flows": "flows of unknown amount",
    "missing_amounts": "funding rows of unknown amount",
}
"""Counts of what the sums of a curve leave out. All of its fills have their amounts."""


def curve_coverage(covers: str, counts: Mapping[Any, Any]) -> str:
    """Return the sources that a curve covers, and the number of rows without a known amount."""
    gaps = [
        f"without {counts[name]:.0f} {text}" for name, text in CURVE_GAPS.items() if counts[name]
    ]
    return ", ".join([covers, *gaps])
