"""The panel of a widget: controls, a line of status, the view, and its code."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import ipywidgets as ipw

from toolkit.widgets import view_html
from toolkit.widgets.fetcher import error_text
from toolkit.widgets.threads import NewestRequestWorker, WidgetRequest
from toolkit.widgets.view_html import read_part

# Tables of a view can be sorted by a click or Enter on a heading, and filtered if they are long.
# In command mode JupyterLab takes keys in a list as its own shortcuts: an arrow would leave the
# cell, and "d d" would delete it. It ignores keys in an element with the attribute below.
_STYLE: Final = (
    f'<style onload="{escape(read_part("panel.js"))}">{view_html.STYLE}'
    f"{read_part('panel.css')}</style>"
)


class _ViewWithCode(Protocol):
    @property
    def code(self) -> str: ...


WidgetView = TypeVar("WidgetView", bound=_ViewWithCode)


class PanelWidget(Generic[WidgetView]):
    """What Jupyter shows as a panel. The end of a ``with`` block closes it.

    Any thread may call its methods.

    - ``controls``: controls above the view
    """

    def __init__(self, controls: Sequence[Any]) -> None:
        self.view: WidgetView | None = None
        self._lock = threading.RLock()
        self._state, self._shown, self._code = ipw.HTML(), ipw.HTML(), ipw.HTML()
        row = ipw.HBox(
            [*controls, ipw.HTML(_STYLE)],
            layout=ipw.Layout(flex_flow="row wrap", grid_gap="4px 16px"),
        )
        row.add_class("tk-controls")
        self.widget = ipw.VBox([row, self._state, self._shown, self._code])
        self.widget.add_class("tk-panel")

    @property
    def code(self) -> str:
        """The code of the view, without a widget."""
        return "" if self.view is None else self.view.code

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
        """Return the widget, and its view as self-contained HTML where widgets cannot run."""
        bundle: dict[str, Any] = self.widget._repr_mimebundle_(**options)
        with self._lock:
            parts = (self._state.value, self._shown.value, self._code.value)
        html = f"<style>{view_html.STYLE}</style>{''.join(parts)}"
        return {**bundle, "text/plain": repr(self), "text/html": html}

    def _show_status(self, words: str, failure: str = "") -> None:
        """Show the status, and an error message."""
        with self._lock:
            self._state.value = view_html.view(view_html.problem(failure), view_html.note(words))

    def _show(self, view: WidgetView, html: str) -> None:
        """Show a view and its code."""
        self._shown.value = view_html.view(html)
        self._code.value = view_html.view(view_html.folded_code(view.code))


class Explorer(PanelWidget[WidgetView], Generic[WidgetRequest, WidgetView]):
    """A panel that shows the view of its last request, computed on a thread.

    - ``controls``: controls above the view
    - ``compute``: returns the view of a request and its HTML; it runs on a background thread
    """

    def __init__(
        self, controls: Sequence[Any], compute: Callable[[WidgetRequest], tuple[WidgetView, str]]
    ) -> None:
        super().__init__(controls)
        self.error: Exception | None = None
        self._compute, self._quiet_thread = compute, 0
        self._requests: NewestRequestWorker[WidgetRequest] = NewestRequestWorker(self._answer)

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until the last request is answered, and return whether it is."""
        return self._requests.settle(seconds)

    def close(self) -> None:
        """Remove it from the notebook."""
        self._requests.drop()
        super().close()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Change controls without a new request: their callbacks come on this thread."""
        with self._lock:
            self._quiet_thread = threading.get_ident()
            try:
                yield
            finally:
                self._quiet_thread = 0

    @property
    def _is_quiet(self) -> bool:
        return self._quiet_thread == threading.get_ident()

    def _ask(self, request: WidgetRequest) -> None:
        with self._lock:
            self._show_status("loading ...")
            self._requests.ask(request)

    def _answer(self, request: WidgetRequest, is_newest: Callable[[], bool]) -> None:
        try:
            view, html = self._compute(request)
        except Exception as error:  # show every error: the traceback of a thread is not visible
            with self._lock:
                if is_newest():
                    self.error = error
                    note = "The view below is of an earlier request."
                    self._show_status(note if self.view else "", error_text(error))
            return
        with self._lock:
            if is_newest():
                self.view, self.error = view, None
                # The controls come first: what a user picks after seeing the view is then kept.
                self._update_controls(view)
                self._show(view, html)
                self._show_status("")

    def _update_controls(self, view: WidgetView) -> None:
        """Update controls whose options depend on the view; by default none."""


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
