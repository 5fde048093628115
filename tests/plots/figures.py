"""Draws figures by their names, and reads what stands in them."""

import io
from typing import Any

from matplotlib.figure import Figure

import toolkit as tk

HOSTILE = r"$\frac$<b>&"


def drawn(name: str, result: Any, **how: object) -> Figure:
    figure: Figure = getattr(tk.plots, name)(result, **how)
    return figure


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]
