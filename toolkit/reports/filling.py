"""From a part of a page and values to HTML; every value is escaped."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["fill"]


def fill(part: str, **values: Any) -> str:
    """Fill a part of this package.

    Parameters
    ----------
    part : str
        Its file name.
    **values
        What it shows. Text is escaped; only the parts themselves hold HTML.

    Examples
    --------
    >>> from toolkit.reports.tables import Table
    >>> "<script>" in fill("table.html", table=Table("<script>", [], []))
    False
    """
    return _environment().get_template(part).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("toolkit.reports", "parts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
