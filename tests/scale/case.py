"""Promises of helpers: the tests check them, and the documents show them.

A case is one way to call one helper. ``tests/scale/cases/<topic>.py`` lists the cases of a topic
as ``CASES``; every public function of every topic must have one. What follows from a case:

- an empty frame, and one row, give the columns and dtypes of many rows;
- without a `needed` column: `MissingColumns`, which names it; without any other column it works,
  or names it likewise;
- the order of rows means nothing, nor does the index, the zone of times, or the case of addresses;
- rows that stand twice count once, with a warning;
- the result of many rows is what the closed form of `at_scale` says, if there is one: of 20,000
  rows in `make test`, of a million in `make bench`.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import toolkit
from tests.analysis.examples import times
from toolkit.statistics import Estimate


def frame_of(result):
    """Return the frame of a result: the estimates of a result object."""
    return result.params if isinstance(result, Estimate) else result


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a helper, and the promises that tests check.

    Parameters
    ----------
    helper : str
        As users write it behind ``tk.``: ``"funding.sums"``.
    frames : function of n
        The frames it takes, by the names of its parameters: n rows each (or as many as make
        sense), the same for the same n. Vectorised: a million rows should take a second.
    needed : mapping
        Name of a frame -> columns it cannot do without, with a space between them.
    arguments : mapping
        Further arguments.
    note : str
        Tells several cases of one helper apart.
    keys : list of str
        What to sort the result by before it is compared, for helpers that keep the order of
        their rows. Empty: the result comes sorted.
    table : function of the result
        Gives the frame of a result object: its estimates, unless another one is named.
    has_identity : bool
        Whether a frame's rows have an identity, so that a row that stands twice is one, with a
        warning (`toolkit.prepare.repeats`).
    rows : int
        Rows for the tests that compare.
    most : int
        The most rows; fewer than a million only where the docstring says why.
    at_scale : function of (frames, result), or None
        Asserts the closed form of the result of many rows, if the helper sums or walks.
    """

    helper: str
    frames: Callable[[int], Mapping[str, pd.DataFrame]]
    needed: Mapping[str, str]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    keys: tuple[str, ...] = ()
    table: Callable[[Any], Any] = frame_of
    has_identity: bool = True
    rows: int = 60
    most: int = 1_000_000
    at_scale: Callable[[Mapping[str, pd.DataFrame], Any], None] | None = None

    @property
    def topic(self):
        return self.helper.split(".")[0]

    @property
    def function(self):
        return getattr(getattr(toolkit, self.topic), self.helper.split(".")[1])

    def __str__(self):
        return f"{self.helper} {self.note}".rstrip()

    def run(self, frames):
        """Return the frame of the helper's result."""
        return self.table(self.function(**frames, **self.arguments))


def table(n, /, **columns):
    """Return a frame of n rows: one value fills its column, and texts have a text's dtype."""
    made = {}
    for name, value in columns.items():
        values = np.full(n, value) if np.ndim(value) == 0 else value
        is_text = isinstance(values, np.ndarray) and values.dtype.kind in "UO"
        made[name] = pd.array(values, dtype="str") if is_text else values
    return pd.DataFrame(made)


def addresses(numbers):
    """Return an address for each whole number."""
    return np.char.mod("0x%040x", numbers)


def trades(n, at, **columns):
    """Return fills at these milliseconds: buys of 2 at 100, unless the columns say otherwise."""
    plain = {"coin": "XYZ", "px": 100.0, "sz": 2.0, "side": "B", "tid": 1 + np.arange(n)}
    return table(n, **(plain | columns), time=times(at))


def topics():
    """Return the topics of the analysis library."""
    return sorted(path.stem for path in (Path(__file__).parent / "cases").glob("[!_]*.py"))


def cases():
    """Return the cases of all topics."""
    modules = [importlib.import_module(f"tests.scale.cases.{topic}") for topic in topics()]
    return [case for module in modules for case in module.CASES]
