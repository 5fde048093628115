"""The panel of a widget: controls, a line of status, the view, and its code."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import ipywidgets as ipw

from toolkit.client import Session
from toolkit.fetch.market import meta
from toolkit.widgets import view_html
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


class Explorer(PanelWidget[WidgetView]):
    """A panel that shows the view of its last request, computed on a thread.

    Requests are answered one after the other. Of several requests that wait, only the last one is
    answered. Requests may come from any thread.

    - ``controls``: controls above the view
    - ``compute``: returns the view of a request and its HTML; it runs on a background thread
    """

    def __init__(
        self, controls: Sequence[Any], compute: Callable[[Any], tuple[WidgetView, str]]
    ) -> None:
        super().__init__(controls)
        self.error: Exception | None = None
        self._compute, self._quiet_thread = compute, 0
        self._working, self._newest = threading.Lock(), object()
        self._done = threading.Event()  # of the newest request
        self._done.set()

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until the last request is answered, and return whether it is."""
        # After an interrupted `join` Python 3.11 takes the thread for ended; an event still waits.
        while (done := self._done).wait(seconds):
            if done is self._done:
                return True
        return False

    def close(self) -> None:
        """Remove it from the notebook."""
        with self._lock:
            self._newest = object()
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

    def _ask(self, request: object) -> None:
        """Compute the view of a request, which is a new object, on a thread; return at once."""
        with self._lock:
            self._show_status("loading ...")
            self._newest, self._done = request, threading.Event()
            arguments = (request, self._done)
            threading.Thread(
                target=self._work, args=arguments, name="widget view", daemon=True
            ).start()

    def _work(self, request: object, done: threading.Event) -> None:
        try:
            with self._working:
                self._answer(request)
        finally:
            done.set()

    def _answer(self, request: object) -> None:
        if request is not self._newest:
            return
        failure = None
        try:
            view, html = self._compute(request)
        except Exception as error:  # show every error: the traceback of a thread is not visible
            failure = error
        with self._lock:
            if request is not self._newest:
                return
            self.error = failure
            if failure is not None:
                note = "The view below is of an earlier request."
                self._show_status(note if self.view else "", view_html.error_text(failure))
                return
            self.view = view
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


def list_choices(session: Session, coins: str | Sequence[str] | None, chosen: str) -> list[str]:
    """Return the coins to choose from, each once, with the chosen one.

    - ``coins``: one or several names; by default the perps of the session. Perps of
      builder-deployed dexes are listed only if the source names its dexes.
    """
    if coins is None:
        dexes: Sequence[str] = (session.world or {}).get("dexes") or ("",)
        perps = (meta(dex=dex, session=session)["name"] for dex in dexes)
        coins = [coin for names in perps for coin in names]
    return [*dict.fromkeys([*([coins] if isinstance(coins, str) else coins), chosen])]
