"""HTML parts of a page, rendered from templates; every value is escaped."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render_part(part: str, **values: Any) -> str:
    """Return a part of a page as HTML.

    - ``part``: file name of the template in the folder ``parts``
    - ``**values``: values that the template shows. Text is escaped; only the templates contain
      HTML.

    >>> "<script>" in render_part("words.html", paragraphs=["<script>"], lead=True)
    False
    """
    return _jinja_environment().get_template(part).render(**values)


@cache
def _jinja_environment() -> Environment:
    return Environment(
        loader=PackageLoader("toolkit.reports", "parts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
