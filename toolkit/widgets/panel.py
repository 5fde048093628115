"""The panel of a widget: controls, a line of status, the view, and its code."""

import threading
from collections.abc import Sequence
from html import escape
from typing import Any, Final, Self

import ipywidgets as ipw

from toolkit.widgets import view_html

# Tables of a view can be sorted by a click or Enter on a heading, and filtered if they are long.
# In command mode JupyterLab takes keys in a list as its own shortcuts: an arrow would leave the
# cell, and "d d" would delete it. It ignores keys in an element with the attribute below.
_SCRIPT: Final = """
const panel = this.closest('.tk-panel') || this.closest('.tk-controls');
if (!panel) return;
panel.addEventListener('focusin', event =>
  event.target.setAttribute('data-lm-suppress-shortcuts', 'true'));
const number = text => Number(text.replace(/[, %\u00d7+]/g, '').replace('\u2212', '-'));
const sort = heading => {
  const way = heading.getAttribute('aria-sort') === 'descending' ? 'ascending' : 'descending';
  const place = heading.cellIndex, body = heading.closest('table').tBodies[0];
  for (const other of heading.parentElement.cells) other.setAttribute('aria-sort', 'none');
  heading.setAttribute('aria-sort', way);
  const sign = way === 'ascending' ? 1 : -1;
  const known = text => text !== '\u2014';
  const rows = [...body.rows].map(row => [row.cells[place].innerText.trim(), row]);
  const numbers = rows.every(([text]) => !known(text) || !isNaN(number(text)));
  rows.sort(([a], [b]) => (known(b) - known(a)) || sign *
    (numbers ? number(a) - number(b) : a.localeCompare(b)));
  body.append(...rows.map(([, row]) => row));
};
const prepare = () => panel.querySelectorAll('.tk-scroll:not([data-ready])').forEach(region => {
  region.dataset.ready = 'yes';
  const body = region.querySelector('tbody');
  if (!body || body.rows.length < 2) return;
  for (const heading of region.querySelectorAll('thead th')) {
    heading.tabIndex = 0;
    heading.setAttribute('aria-sort', 'none');
    heading.addEventListener('click', () => sort(heading));
    heading.addEventListener('keydown', event => {
      if (event.key === 'Enter') { event.preventDefault(); sort(heading); }
    });
  }
  const save = region.parentElement.querySelector('.tk-save');
  if (body.rows.length < 8 || !save) return;
  const input = document.createElement('input');
  input.type = 'search';
  input.placeholder = 'filter';
  input.setAttribute('aria-label', `Filter: ${region.getAttribute('aria-label')}`);
  input.addEventListener('input', () => {
    const words = input.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.innerText.toLowerCase().includes(words);
  });
  save.append(input);
});
new MutationObserver(prepare).observe(panel, {childList: true, subtree: true});
prepare();
"""

_CONTROLS_STYLE: Final = (
    f'<style onload="{escape(_SCRIPT)}">'
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
        self._state = ipw.HTML()
        self._view = ipw.HTML()
        self._code = ipw.HTML()
        row = ipw.HBox(
            [*controls, ipw.HTML(_CONTROLS_STYLE)],
            layout=ipw.Layout(flex_flow="row wrap", grid_gap="4px 16px"),
        )
        row.add_class("tk-controls")
        self.widget = ipw.VBox([row, self._state, self._view, self._code])
        self.widget.add_class("tk-panel")
        self._html = ""
        self._words = ""
        self._failure = ""
        self._source = ""

    def show_status(self, words: str, failure: str = "") -> None:
        """Show the status, and an error message."""
        with self.lock:
            self._words, self._failure = words, failure
            self._state.value = view_html.view(view_html.problem(failure), view_html.note(words))

    def show(self, html: str, code: str) -> None:
        """Show a view and its code."""
        with self.lock:
            self._html, self._source = html, code
            self._view.value = view_html.view(html)
            self._code.value = view_html.view(view_html.folded_code(code))

    @property
    def html(self) -> str:
        """The view as self-contained HTML, which an exported notebook shows."""
        with self.lock:
            status = (view_html.problem(self._failure), view_html.note(self._words))
            return view_html.view(*status, self._html, view_html.folded_code(self._source))

    def bundle(self, text: str, **options: Any) -> dict[str, Any]:
        """Return what Jupyter displays: the widget, and its view where widgets cannot run."""
        widget: dict[str, Any] = self.widget._repr_mimebundle_(**options)
        return {**widget, "text/plain": text, "text/html": self.html}

    def close(self) -> None:
        """Remove it from the notebook."""
        for widget in (*self.widget.children[0].children, *self.widget.children, self.widget):
            widget.close()


class PanelWidget:
    """What Jupyter shows as a panel. The end of a ``with`` block closes it.

    - ``controls``: controls above the view
    """

    def __init__(self, controls: Sequence[Any]) -> None:
        self._panel = Panel(controls)
        self.widget = self._panel.widget

    def close(self) -> None:
        """Remove it from the notebook."""
        self._panel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        return self._panel.bundle(repr(self), **options)


def dropdown_list(
    name: str, options: Sequence[Any], value: Any, tooltip: str, width: str = "15em"
) -> Any:
    """Return a labelled drop-down list; options are values, or pairs of label and value."""
    return ipw.Dropdown(
        description=name,
        options=list(options),
        value=value,
        tooltip=tooltip,
        **_layout_options(width),
    )


def option_list(name: str, options: Sequence[Any], value: Any, tooltip: str, width: str) -> Any:
    """Return a labelled list with several visible lines."""
    return ipw.Select(
        description=name,
        options=list(options),
        value=value,
        tooltip=tooltip,
        rows=7,
        **_layout_options(width),
    )


def text_field(name: str, value: str, tooltip: str, width: str = "34em") -> Any:
    """Return a labelled text field whose value changes on Enter or when it is left."""
    return ipw.Text(
        description=name,
        value=value,
        tooltip=tooltip,
        continuous_update=False,
        **_layout_options(width),
    )


def push_button(name: str, tooltip: str) -> Any:
    """Return a button."""
    return ipw.Button(description=name, tooltip=tooltip, layout=ipw.Layout(width="auto"))


def _layout_options(width: str) -> dict[str, Any]:
    # By default ipywidgets cuts off long labels.
    return {
        "style": {"description_width": "initial"},
        "layout": ipw.Layout(width=width, max_width="100%"),
    }
