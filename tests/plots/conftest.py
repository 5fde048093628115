"""The results that the plots draw, and the same results without rows."""

from typing import Any, NamedTuple

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis import interval_coverage
from tests.made_once import made_once
from tests.plots import results as computed


class Computed(NamedTuple):
    fills: pd.DataFrame
    market_frames: dict[str, pd.DataFrame]
    trading_frames: dict[str, pd.DataFrame]
    results: dict[str, Any]
    empty_results: dict[str, Any]


def compute():
    session = tk.local(seed=7, size="tiny", default=False)
    builder = computed.second_builder(session)
    market_frames = computed.fetch_market_frames(session)
    trading_frames = computed.fetch_trading_frames(session, builder)
    results = computed.compute_results(session)
    empty = {
        name: rows.iloc[:0] for name, rows in results.items() if isinstance(rows, pd.DataFrame)
    }
    empty["skill"] = tk.performance.skill(empty["growth_curve"].assign(user="0xa"))
    empty["cascade"] = computed.compute_cascade(empty["growth_curve"])
    empty |= computed.compute_market_results(computed.without_rows(market_frames))
    empty |= computed.compute_trading_results(computed.without_rows(trading_frames), builder)
    fills = computed.fetch_example_fills(session)
    return tuple(Computed(fills, market_frames, trading_frames, results, empty))


@pytest.fixture(scope="session")
def made():
    made_by = (__file__, computed.__file__, interval_coverage.__file__)
    return Computed(*made_once("plots", compute, *made_by))


@pytest.fixture(scope="session")
def results(made):
    """Return the result that each plot draws, by the name of the plot."""
    return made.results


@pytest.fixture(scope="session")
def empty_results(made):
    """Return results without rows: rows are cut off, or the helper got frames without rows."""
    return made.empty_results


@pytest.fixture(scope="session")
def fills(made):
    return made.fills


@pytest.fixture(scope="session")
def market_frames(made):
    return made.market_frames


@pytest.fixture(scope="session")
def trading_frames(made):
    return made.trading_frames
