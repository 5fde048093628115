"""Descriptions of operations, frames and results."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.contract.operations import OPERATIONS


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module")
def users(session):
    return list(session.world["users"][:5])


def test_describe_lists_columns_of_operations_and_frames(session, users):
    assert tk.describe()["operation"].tolist() == list(OPERATIONS)
    columns = tk.describe(tk.batch_clearinghouse_states)
    assert columns["frame"].unique().tolist() == ["accounts", "positions", "failed"]
    fills = tk.user_fills(users[0], session=session)
    assert tk.describe(fills)["column"].tolist() == list(fills.columns)
    with pytest.raises(TypeError, match=r"print is not a fetch function: help\(print\)"):
        tk.describe(print)
    with pytest.raises(TypeError, match=r"attribution is not a fetch function: help"):
        tk.describe(tk.pnl.attribution)
    fit = tk.slippage.fit(tk.slippage_history("BTC", 1e4, "2d", session=session))
    words = tk.describe(fit).set_index("frame")
    assert words.index.unique().tolist() == ["params", "figures", "groups", "samples"]
    assert words.loc["figures", "column"].tolist() == ["half_spread", "a", "k", "sigma"]
    assert words.loc["figures", "unit"].tolist() == ["basis points", "basis points", "", ""]
    for frame in ("params", "groups", "samples"):
        described = tk.describe(getattr(fit, frame))
        assert described["column"].tolist() == list(getattr(fit, frame).columns)
        pd.testing.assert_frame_equal(described, words.loc[frame].reset_index(drop=True))


def test_describe_names_frame_of_each_column(session, users):
    states = tk.batch_clearinghouse_states(users, session=session)
    words = tk.describe(states)
    assert words["frame"].unique().tolist() == list(states._fields)
    columns = [name for state in states for name in state.columns]
    assert words["column"].tolist() == columns
    assert words["meaning"].ne("").all()
    with pytest.raises(TypeError, match=r"does not name its frames\. Pass one frame"):
        tk.describe(tuple(states))


def test_describe_knows_extra_operations():
    columns = tk.describe("userFunding").set_index("column")
    assert columns.index.tolist() == tk.frame("userFunding", []).columns.tolist()
    assert columns.loc["usdc", "unit"] == "USD"
    with pytest.raises(ValueError, match="'portfolioState' is not an operation"):
        tk.describe("portfolioState")
    with pytest.raises(ValueError, match=r"Did you mean 'userFills'\? tk.describe\(\) lists"):
        tk.describe("userFil")
