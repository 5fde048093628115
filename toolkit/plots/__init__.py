"""Plots of results: one function for each, drawn with matplotlib, without pyplot.

Every function takes a result of an analysis helper. A function that draws one panel takes ``ax=``
and returns the matplotlib Axes. A function that draws several panels returns a Figure; with ``ax=``
it draws the first panel alone and returns the Axes.

Plots have a light and a dark theme, mark simulated data, and have an alternative text (`alt`). A
notebook shows the plot if a cell ends in it. In a script, ``ax.figure.savefig(...)`` writes it.
"""

import lazy_loader

from toolkit.installation import explain_missing

with explain_missing("plots"):
    import matplotlib  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
