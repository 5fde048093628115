"""The results that the plots draw, and the same results without rows."""

import pandas as pd
import pytest

import toolkit as tk
from tests.plots import results as computed


@pytest.fixture(scope="session")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="session")
def results(profit, accounts, market, trading):
    """Return the result that each plot draws, by the name of the plot."""
    return {**profit, **accounts, **market, **trading}


@pytest.fixture(scope="session")
def empty_results(results, market_frames, trading_frames, builder):
    """Return results without rows: rows are cut off, or the helper got frames without rows."""
    empty = {
        name: rows.iloc[:0] for name, rows in results.items() if isinstance(rows, pd.DataFrame)
    }
    empty["skill"] = tk.performance.skill(empty["growth_curve"].assign(user="0xa"))
    empty["cascade"] = computed.compute_cascade(empty["growth_curve"])
    empty |= computed.compute_market_results(computed.without_rows(market_frames))
    return empty | computed.compute_trading_results(computed.without_rows(trading_frames), builder)


@pytest.fixture(scope="session")
def fills(session):
    return computed.fetch_example_fills(session)


@pytest.fixture(scope="session")
def profit(session, fills):
    return computed.compute_profit_results(session, fills)


@pytest.fixture(scope="session")
def accounts(session):
    return computed.compute_account_results(session)


@pytest.fixture(scope="session")
def market_frames(session):
    return computed.fetch_market_frames(session)


@pytest.fixture(scope="session")
def market(market_frames):
    return computed.compute_market_results(market_frames)


@pytest.fixture(scope="session")
def builder(session):
    return computed.second_builder(session)


@pytest.fixture(scope="session")
def trading_frames(session, builder):
    return computed.fetch_trading_frames(session, builder)


@pytest.fixture(scope="session")
def trading(trading_frames, builder):
    return computed.compute_trading_results(trading_frames, builder)
