"""Frames as tables of text: what a column is called, and how its values are written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd

from toolkit.plots import formats
from toolkit.reports.filling import fill

__all__ = ["Column", "Table", "table"]

Writer = Callable[[Any], str]
MISSING = "\N{EM DASH}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: from which column of the frame, its heading, how it is written."""

    name: str
    heading: str
    write: Writer
    number: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text, ready for a template; `total` is its last row, set apart."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    total: Sequence[str] = ()

    def _repr_html_(self) -> str:
        return fill("table.html", table=self)


def table(caption: str, frame: pd.DataFrame, columns: Sequence[Column]) -> Table:
    """Write a frame as a table; what is missing is a dash, never 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"coin": ["BTC", "ETH"], "net": [1234.5, None]})
    >>> columns = [Column("coin", "coin", text, False), Column("net", "net", formats.whole_dollars)]
    >>> made = table("Net", frame, columns)
    >>> [row[0] for row in made.rows], made.rows[0][1]
    (['BTC', 'ETH'], '1,234')
    """
    if frame.empty:
        return Table(caption, columns, [])
    written = [
        [MISSING if pd.isna(value) else one.write(value) for value in frame[one.name]]
        for one in columns
    ]
    return Table(caption, columns, [list(row) for row in zip(*written, strict=True)])


def text(value: Any) -> str:
    """Write text as it is."""
    return str(value)


def cents(value: Any) -> str:
    """Write an amount to the cent that cannot be negative, such as a cost: without a sign.

    Examples
    --------
    >>> cents(Decimal("12345.678")), cents(0)
    ('12,345.68', '0.00')
    """
    return formats.true_minus(f"{value:,.2f}")


def signed_usd(value: Any) -> str:
    """Write an amount to the cent, with its sign.

    Examples
    --------
    >>> signed_usd(Decimal("12345.678")), signed_usd(-0.001)
    ('+12,345.68', '0.00')
    """
    text = f"{abs(value):,.2f}"
    if text == "0.00":
        return text
    return f"{formats.MINUS if value < 0 else '+'}{text}"


def exact_usd(value: Any) -> str:
    """Write an amount with every digit it has, at least two after the point.

    Examples
    --------
    >>> exact_usd(Decimal("1234.500000")), exact_usd(Decimal("0.000001"))
    ('1,234.50', '0.000001')
    """
    whole, _, digits = f"{abs(Decimal(value)):,f}".partition(".")
    return f"{formats.MINUS if value < 0 else ''}{whole}.{digits.rstrip('0').ljust(2, '0')}"


def moment(value: Any) -> str:
    """Write a time to the millisecond."""
    return f"{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}"


def yes_no(value: Any) -> str:
    """Write a flag."""
    return "yes" if value else "no"
