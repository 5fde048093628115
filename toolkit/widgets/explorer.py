"""What the explorers share: each shows the view of its last request, computed on a thread."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from toolkit.widgets.fetcher import error_text
from toolkit.widgets.panel import PanelWidget
from toolkit.widgets.threads import NewestRequestWorker, WidgetRequest


class _ViewWithCode(Protocol):
    @property
    def code(self) -> str: ...


WidgetView = TypeVar("WidgetView", bound=_ViewWithCode)


class Explorer(PanelWidget, Generic[WidgetRequest, WidgetView]):
    """A panel that shows the view of its last request.

    - ``controls``: controls above the view
    - ``compute``: returns the view of a request and its HTML; it runs on a background thread
    """

    def __init__(
        self, controls: Sequence[Any], compute: Callable[[WidgetRequest], tuple[WidgetView, str]]
    ) -> None:
        super().__init__(controls)
        self.view: WidgetView | None = None
        self.error: Exception | None = None
        self._compute = compute
        self._requests: NewestRequestWorker[WidgetRequest] = NewestRequestWorker(self._show_view)

    @property
    def code(self) -> str:
        """The code of the view, without a widget."""
        return "" if self.view is None else self.view.code

    def settle(self, seconds: float | None = None) -> bool:
        """Wait until the last request is answered, and return whether it is."""
        return self._requests.settle(seconds)

    def close(self) -> None:
        """Remove it from the notebook."""
        self._requests.drop()
        super().close()

    def _ask(self, request: WidgetRequest) -> None:
        with self._panel.lock:
            self._panel.show_status("loading ...")
            self._requests.ask(request)

    def _show_view(self, request: WidgetRequest, is_newest: Callable[[], bool]) -> None:
        try:
            view, html = self._compute(request)
        except Exception as error:  # show every error: the traceback of a thread is not visible
            with self._panel.lock:
                if is_newest():
                    self.error = error
                    note = "The view below is of an earlier request."
                    self._panel.show_status(note if self.view else "", error_text(error))
            return
        with self._panel.lock:
            if is_newest():
                self.view, self.error = view, None
                # The controls come first: what a user picks after seeing the view is then kept.
                self._update_controls(view)
                self._panel.show(html, view.code)
                self._panel.show_status("")

    def _update_controls(self, view: WidgetView) -> None:
        """Update controls whose options depend on the view; by default none."""
