"""From a template and values to one HTML page; every value is escaped."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["render"]


def render(template: str, **values: Any) -> str:
    """Fill a template of this package.

    Parameters
    ----------
    template : str
        Its file name.
    **values
        What it shows. Text is escaped; only the templates themselves hold HTML.

    Examples
    --------
    >>> from toolkit.reports.tables import Table
    >>> "<script>" in render("table.html", table=Table("<script>", [], []))
    False
    """
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("toolkit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
