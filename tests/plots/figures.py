"""Draws plots by name, and reads the texts in them."""

import io

import toolkit as tk
from toolkit.plots.figures import root_figure

HOSTILE_NAME = r"$\frac$<b>&"


def draw_figure(name, result, **options):
    """Return the figure that a function of `toolkit.plots` drew on."""
    return root_figure(getattr(tk.plots, name)(result, **options))


def render_png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def list_texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
