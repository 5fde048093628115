"""Promises of helpers: the tests check them, and the documents show them.

A case is one way to call one helper. ``tests/scale/cases/<topic>.py`` lists the cases of a topic
as ``CASES``; every public function of every topic must have one. What follows from a case:

- an empty frame, and one row, give the columns and dtypes of many rows;
- without a `needed` column: `MissingColumns`, which names it; without any other column it works,
  or names it likewise;
- the order of rows means nothing, nor does the index, the zone of times, or the case of addresses;
- rows that stand twice count once, with a warning;
- the result of many rows is what the closed form of `at_scale` says: of 20,000 rows in
  `make test`, of a million in `make bench`.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import toolkit
from tests.analysis.examples import times
from toolkit.analysis.common.estimate import Estimate

STREAMS = """
    builders.revenue builders.routing depth.imbalance depth.profile funding.implied_oracle
    funding.sums ledger.flows ledger.sums ledger.unknown liquidations.fills orders.fill_ratio
    orders.mix orders.transitions pnl.attribution slippage.curve slippage.heatmap twaps.adherence
    twaps.linked twaps.pressure
"""
"""Helpers that leave all rows to the engine: they collect a few totals."""

BY_ACCOUNT = """
    pnl.audit pnl.equity pnl.lots pnl.positions pnl.reconcile pnl.round_trips pnl.unrealised
"""
"""Helpers that collect the rows of a few accounts at a time. All others collect their columns."""

ESTIMATES = """
    auctions.decay builders.activity builders.approval_spans builders.attach_rate
    builders.cohorts builders.lifetime_value depth.consistency depth.resilience
    execution.copy_trading execution.counterparties execution.fill_quality execution.impact
    execution.markout execution.quotes execution.shortfall execution.spreads execution.toxicity
    funding.annualised funding.basis funding.carry funding.oracle_check liquidations.cascade
    orders.time_to_fill orders.trigger_delay performance.skill slippage.asymmetry
    slippage.capacity slippage.cost slippage.fit staking.apy staking.implied_fee
    staking.rank_stability twaps.quality
"""
"""Helpers that always give pandas. All others give the engine of their first frame."""

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
"""Calls that the documents count as run on executors (`docs/generate.py`)."""


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
    at_scale : function of (frames, result)
        Asserts the closed form of the result of many rows.
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
        warning (`toolkit.analysis.common.repeated_rows`).
    rows : int
        Rows for the tests that compare.
    many : int
        Rows for the closed form in `make test`.
    most : int
        The most rows; fewer than a million only where the docstring says why.
    """

    helper: str
    frames: Callable[[int], Mapping[str, pd.DataFrame]]
    at_scale: Callable[[Mapping[str, pd.DataFrame], Any], None]
    needed: Mapping[str, str]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""
    keys: tuple[str, ...] = ()
    table: Callable[[Any], Any] = frame_of
    has_identity: bool = True
    rows: int = 60
    many: int = 20_000
    most: int = 1_000_000
    numbers: ClassVar = ("float", "exact")  # the documents say so of all helpers

    @property
    def topic(self):
        return self.helper.split(".")[0]

    @property
    def function(self):
        return getattr(getattr(toolkit, self.topic), self.helper.split(".")[1])

    @property
    def gives(self):
        return "pandas" if self.helper in ESTIMATES.split() else "same"

    @property
    def memory(self):
        """Return what the helper has in memory, apart from its result."""
        if self.helper in STREAMS.split():
            return "streams"
        return "account by account" if self.helper in BY_ACCOUNT.split() else "in memory"

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
