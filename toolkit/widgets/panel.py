"""The panel of a widget: controls, a line of status, the view, and its code."""

import threading
from collections.abc import Sequence
from html import escape
from typing import Any, Final, Self

import ipywidgets as ipw

from toolkit.widgets import view_html
from toolkit.widgets.view_html import read_part

# Tables of a view can be sorted by a click or Enter on a heading, and filtered if they are long.
# In command mode JupyterLab takes keys in a list as its own shortcuts: an arrow would leave the
# cell, and "d d" would delete it. It ignores keys in an element with the attribute below.
_SCRIPT: Final = read_part("panel.js")

_STYLE: Final = (
    f'<style onload="{escape(_SCRIPT)}">{view_html.STYLE}'
    ".tk-controls{padding:2px}"
    # The arrow of ipywidgets is black in every theme.
    "[data-jp-theme-light='false'] .tk-controls{--jp-widgets-dropdown-arrow:url(\""
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'%3E"
    "%3Cpath d='M5 7l4 4 4-4' fill='none' stroke='%23ddd' stroke-width='2'/%3E%3C/svg%3E"
    '")}</style>'
)


class Panel:
    """The visible part of a widget; any thread may call its methods.

    - ``controls``: controls above the view
    """

    def __init__(self, controls: Sequence[Any]) -> None:
        self.lock = threading.RLock()
        self._state, self._view, self._code = ipw.HTML(), ipw.HTML(), ipw.HTML()
        row = ipw.HBox(
            [*controls, ipw.HTML(_STYLE)],
            layout=ipw.Layout(flex_flow="row wrap", grid_gap="4px 16px"),
        )
        row.add_class("tk-controls")
        self.widget = ipw.VBox([row, self._state, self._view, self._code])
        self.widget.add_class("tk-panel")

    def show_status(self, words: str, failure: str = "") -> None:
        """Show the status, and an error message."""
        with self.lock:
            self._state.value = view_html.view(view_html.problem(failure), view_html.note(words))

    def show(self, html: str, code: str) -> None:
        """Show a view and its code."""
        with self.lock:
            self._view.value = view_html.view(html)
            self._code.value = view_html.view(view_html.folded_code(code))

    @property
    def html(self) -> str:
        """The view as self-contained HTML, which an exported notebook shows."""
        with self.lock:
            parts = (self._state.value, self._view.value, self._code.value)
        return f"<style>{view_html.STYLE}</style>{''.join(parts)}"


class PanelWidget:
    """What Jupyter shows as a panel. The end of a ``with`` block closes it.

    - ``controls``: controls above the view
    """

    def __init__(self, controls: Sequence[Any]) -> None:
        self._panel = Panel(controls)
        self.widget = self._panel.widget

    def close(self) -> None:
        """Remove it from the notebook."""
        row, *others = self.widget.children
        for widget in (*row.children, row, *others, self.widget):
            widget.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return the widget, and its view where widgets cannot run."""
        bundle: dict[str, Any] = self.widget._repr_mimebundle_(**options)
        return {**bundle, "text/plain": repr(self), "text/html": self._panel.html}


def make_control(
    kind: type[Any], name: str, tooltip: str, width: str = "15em", **options: Any
) -> Any:
    """Return a labelled control of ipywidgets."""
    layout = ipw.Layout(width=width, max_width="100%")
    style = {"description_width": "initial"}  # by default ipywidgets cuts off long labels
    return kind(description=name, tooltip=tooltip, layout=layout, style=style, **options)


def push_button(name: str, tooltip: str) -> Any:
    """Return a button."""
    return ipw.Button(description=name, tooltip=tooltip, layout=ipw.Layout(width="auto"))
