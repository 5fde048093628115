"""The results that the plots draw, and the same results without rows."""

import pandas as pd
import pytest

import toolkit as tk
from tests.plots import results as computed
from tests.plots.results import Frames, Results
from toolkit.client import Session


@pytest.fixture(scope="session")
def session() -> Session:
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="session")
def results(profit: Results, accounts: Results, market: Results, trading: Results) -> Results:
    """Return the result that each plot draws, by the name of the plot."""
    return {**profit, **accounts, **market, **trading}


@pytest.fixture(scope="session")
def empty_results(
    results: Results, market_frames: Frames, trading_frames: Frames, builder: str
) -> Results:
    """Return results without rows: rows are cut off, or the helper got frames without rows."""
    empty = {
        name: rows.iloc[:0] for name, rows in results.items() if isinstance(rows, pd.DataFrame)
    }
    empty["skill"] = tk.performance.skill(empty["growth_curve"].assign(user="0xa"))
    empty["cascade"] = computed.compute_cascade(empty["growth_curve"])
    empty |= computed.compute_market_results(computed.without_rows(market_frames))
    return empty | computed.compute_trading_results(computed.without_rows(trading_frames), builder)


@pytest.fixture(scope="session")
def fills(session: Session) -> pd.DataFrame:
    return computed.fetch_example_fills(session)


@pytest.fixture(scope="session")
def profit(session: Session, fills: pd.DataFrame) -> Results:
    return computed.compute_profit_results(session, fills)


@pytest.fixture(scope="session")
def accounts(session: Session) -> Results:
    return computed.compute_account_results(session)


@pytest.fixture(scope="session")
def market_frames(session: Session) -> Frames:
    return computed.fetch_market_frames(session)


@pytest.fixture(scope="session")
def market(market_frames: Frames) -> Results:
    return computed.compute_market_results(market_frames)


@pytest.fixture(scope="session")
def builder(session: Session) -> str:
    return computed.second_builder(session)


@pytest.fixture(scope="session")
def trading_frames(session: Session, builder: str) -> Frames:
    return computed.fetch_trading_frames(session, builder)


@pytest.fixture(scope="session")
def trading(trading_frames: Frames, builder: str) -> Results:
    return computed.compute_trading_results(trading_frames, builder)
