"""What every widget consists of: controls, a line on how it stands, the view, its code."""

import threading
from collections.abc import Sequence
from typing import Any, Final

import ipywidgets as ipw

from toolkit.widgets import markup

__all__ = ["Panel", "button", "choice", "text"]

# In command mode JupyterLab takes a key pressed in a list for one of its own: an arrow would leave
# the cell, "d d" would delete it. Its shortcuts stay away from what bears this attribute.
_OWN_KEYS: Final = (
    "<style onload=\"this.closest('.tk-controls')?.addEventListener('focusin', event => "
    "event.target.setAttribute('data-lm-suppress-shortcuts', 'true'))\">"
    ".tk-controls{padding:2px}"
    # The arrow that ipywidgets draws is black in every theme.
    "[data-jp-theme-light='false'] .tk-controls{--jp-widgets-dropdown-arrow:url(\""
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'%3E"
    "%3Cpath d='M5 7l4 4 4-4' fill='none' stroke='%23ddd' stroke-width='2'/%3E%3C/svg%3E"
    '")}</style>'
)


class Panel:
    """The visible part of a widget: it shows what it is given, from whatever thread.

    Parameters
    ----------
    controls : sequence of ipywidgets
        What is above the view.
    """

    def __init__(self, controls: Sequence[Any]) -> None:
        self.lock = threading.RLock()
        self._state = ipw.HTML()
        self._view = ipw.HTML()
        self._code = ipw.HTML()
        row = ipw.HBox(
            [*controls, ipw.HTML(_OWN_KEYS)],
            layout=ipw.Layout(flex_flow="row wrap", grid_gap="4px 16px"),
        )
        row.add_class("tk-controls")
        self.widget = ipw.VBox([row, self._state, self._view, self._code])
        self._html = ""
        self._words = ""
        self._failure = ""
        self._source = ""

    def say(self, words: str, failure: str = "") -> None:
        """Say how it stands, and what went wrong."""
        with self.lock:
            self._words, self._failure = words, failure
            self._state.value = markup.view(markup.problem(failure), markup.note(words))

    def show(self, html: str, code: str) -> None:
        """Show a view, and the cell that reproduces it."""
        with self.lock:
            self._html, self._source = html, code
            self._view.value = markup.view(html)
            self._code.value = markup.view(markup.code_of(code))

    @property
    def html(self) -> str:
        """The view as HTML that stands alone: what an exported notebook shows."""
        with self.lock:
            said = (markup.problem(self._failure), markup.note(self._words))
            return markup.view(*said, self._html, markup.code_of(self._source))

    def bundle(self, text: str, **options: Any) -> dict[str, Any]:
        """Give what Jupyter displays: the widget, and for where there is none its view."""
        shown: dict[str, Any] = self.widget._repr_mimebundle_(**options)
        return {**shown, "text/plain": text, "text/html": self.html}

    def close(self) -> None:
        """Remove it from the notebook."""
        for one in (*self.widget.children[0].children, *self.widget.children, self.widget):
            one.close()


def choice(name: str, options: Sequence[Any], value: Any, tooltip: str, width: str = "15em") -> Any:
    """Make a labelled list to choose from; options are values, or pairs of label and value."""
    return ipw.Dropdown(
        description=name, options=list(options), value=value, tooltip=tooltip, **_shape(width)
    )


def listing(name: str, options: Sequence[Any], value: Any, tooltip: str, width: str) -> Any:
    """Make a labelled list of which several lines are seen."""
    return ipw.Select(
        description=name,
        options=list(options),
        value=value,
        tooltip=tooltip,
        rows=7,
        **_shape(width),
    )


def text(name: str, value: str, tooltip: str, width: str = "34em") -> Any:
    """Make a labelled field that counts once it is left, or on Enter."""
    return ipw.Text(
        description=name, value=value, tooltip=tooltip, continuous_update=False, **_shape(width)
    )


def button(name: str, tooltip: str) -> Any:
    """Make a button."""
    return ipw.Button(description=name, tooltip=tooltip, layout=ipw.Layout(width="auto"))


def _shape(width: str) -> dict[str, Any]:
    # As wide as the label needs: ipywidgets would cut it off.
    return {
        "style": {"description_width": "initial"},
        "layout": ipw.Layout(width=width, max_width="100%"),
    }
