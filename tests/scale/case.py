"""Promises of helpers: the tests check them, and the documents show them.

A case is one way to call one helper. ``tests/scale/cases/<topic>.py`` lists the cases of a topic
as ``CASES``; every public function of every topic must have one. What follows from a case:

- the same result on each of its `engines`, for each of its kinds of `numbers`;
- an empty frame, and one row, give the columns and dtypes of many rows;
- without a `needed` column: `MissingColumns`, which names it; without any other column it works,
  or names it likewise;
- the order of rows means nothing, nor does the case of addresses; rows given twice do what
  `doubled` says;
- the result of many rows is what the closed form of `at_scale` says: of 100,000 rows in
  `make test`, of a million in `make bench`.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import toolkit
from tests.engines import ENGINES

Frames = Mapping[str, pd.DataFrame]

STREAMS = frozenset(
    {
        "builders.revenue",
        "builders.routing",
        "depth.imbalance",
        "depth.profile",
        "funding.implied_oracle",
        "funding.sums",
        "ledger.flows",
        "ledger.sums",
        "ledger.unknown",
        "liquidations.fills",
        "orders.fill_ratio",
        "orders.mix",
        "orders.transitions",
        "pnl.attribution",
        "slippage.curve",
        "slippage.heatmap",
        "twaps.adherence",
        "twaps.linked",
        "twaps.pressure",
    }
)
"""Helpers that leave all rows to the engine: they collect a few totals."""

BY_ACCOUNT = frozenset(
    {
        "pnl.audit",
        "pnl.equity",
        "pnl.lots",
        "pnl.positions",
        "pnl.reconcile",
        "pnl.round_trips",
        "pnl.unrealised",
    }
)
"""Helpers that collect the rows of a few accounts at a time. All others collect their columns."""
Doubled = Callable[[pd.DataFrame, pd.DataFrame], None]


ON_EXECUTORS = (
    "builders.revenue by builder, week and user",  # calendar groups
    "funding.accrual",  # a window
    "ledger.sums",
    "orders.time_to_fill",  # an estimate, in pandas
    "pnl.attribution",
    "pnl.equity",  # account by account
    "pnl.positions",
    "slippage.curve",
)
"""Cases that run on two executors: one for each way in which helpers compute."""


def twice(*names):
    """State that these columns double if every row is repeated, and all others do not change."""

    def hold(plain, doubled):
        wanted = plain.copy()
        for name in names:
            wanted[name] = 2 * plain[name]
        pd.testing.assert_frame_equal(doubled, wanted, check_dtype=False, rtol=1e-9)

    return hold


same: Doubled = twice()
"""Repeated rows count once, or change no figure."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One call of a helper, and the promises that tests check.

    Parameters
    ----------
    helper : str
        As users write it behind ``tk.``: ``"funding.sums"``.
    frames : function of n
        The frames it takes, by the names of its parameters: n rows each (or as many as make
        sense), the same for the same n, floats with few digits, so that they have exact twins.
        Vectorised: a million rows should take a second.
    at_scale : function of (frames, result)
        Asserts the closed form of the result of many rows (pandas, floats).
    needed : mapping
        Name of a frame -> columns it cannot do without.
    doubled : function of (plain, doubled)
        Asserts what becomes of the result when every row is given twice: `twice`, `same`, or
        its own. None: says nothing; the docstring of the helper must say why.
    arguments : mapping
        Further arguments.
    note : str
        Tells several cases of one helper apart.
    engines : tuple of str
        Engines it takes frames of.
    gives : str
        ``"same"``: the result has the engine of the first frame; ``"pandas"``: estimates, which
        always give pandas.
    numbers : tuple of str
        ``"float"``, ``"exact"``: kinds of numbers it takes.
    keys : tuple of str
        What to sort the result by before it is compared, for helpers that keep the order of
        their rows. Empty: the result comes sorted.
    table : function of the result
        Gives the frame of a result object; results that are frames need none.
    has_identity : bool
        Whether a frame's rows have an identity, so that a row that stands twice is one, with a
        warning (`toolkit.analysis.common.repeated_rows`).
    rows : int
        Rows for the tests that compare.
    most : int
        The most rows; fewer than a million only where the docstring says why.
    """

    helper: str
    frames: Callable[[int], Frames]
    at_scale: Callable[[Frames, Any], None]
    needed: Mapping[str, tuple[str, ...]]
    doubled: Doubled | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    engines: tuple[str, ...] = ENGINES
    gives: str = "same"
    numbers: tuple[str, ...] = ("float", "exact")
    keys: tuple[str, ...] = ()
    table: Callable[[Any], Any] | None = None
    has_identity: bool = True
    rows: int = 60
    most: int = 1_000_000

    @property
    def topic(self):
        return self.helper.split(".")[0]

    @property
    def function(self):
        found: Callable[..., Any] = getattr(getattr(toolkit, self.topic), self.helper.split(".")[1])
        return found

    @property
    def memory(self):
        """Return what the helper has in memory, apart from its result."""
        if self.helper in STREAMS:
            return "streams"
        return "account by account" if self.helper in BY_ACCOUNT else "in memory"

    def __str__(self):
        return f"{self.helper} {self.note}".rstrip()

    def run(self, frames):
        """Return the frame of the helper's result."""
        result = self.function(**frames, **self.arguments)
        return self.table(result) if self.table else result


def topics():
    """Return the topics of the analysis library."""
    return sorted(path.stem for path in (Path(__file__).parent / "cases").glob("[!_]*.py"))


def cases():
    """Return the cases of all topics."""
    files = sorted((Path(__file__).parent / "cases").glob("*.py"))
    modules = [importlib.import_module(f"tests.scale.cases.{path.stem}") for path in files]
    return [case for module in modules for case in module.CASES]
