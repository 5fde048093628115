"""Descriptions of operations, frames and results."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.contract.operations import FETCHED


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", default=False)


def test_describe_lists_columns_of_operations(session):
    assert tk.describe()["operation"].tolist() == list(FETCHED)
    columns = tk.describe(tk.batch_clearinghouse_states)
    assert columns["frame"].unique().tolist() == ["accounts", "positions", "failed"]
    extra = tk.describe("userFunding").set_index("column")
    assert extra.index.tolist() == tk.frame("userFunding", []).columns.tolist()
    assert extra.loc["usdc", "unit"] == "USD"


def test_describe_lists_columns_of_results(session):
    fit = tk.slippage.fit(tk.slippage_history("BTC", 1e4, "2d", session=session))
    words = tk.describe(fit).set_index("frame")
    assert words.index.unique().tolist() == ["params", "figures", "groups", "samples"]
    assert words.loc["figures", "column"].tolist() == ["half_spread", "a", "k", "sigma"]
    assert words.loc["figures", "unit"].tolist() == ["basis points", "basis points", "", ""]
    for frame in ("params", "groups", "samples"):
        described = tk.describe(getattr(fit, frame))
        assert described["column"].tolist() == list(getattr(fit, frame).columns)
        pd.testing.assert_frame_equal(described, words.loc[frame].reset_index(drop=True))


def test_describe_names_frame_of_each_column(session):
    states = tk.batch_clearinghouse_states(session.world["users"][:5], session=session)
    words = tk.describe(states)
    assert words["frame"].unique().tolist() == list(states._fields)
    assert words["column"].tolist() == [name for state in states for name in state.columns]
    assert words["meaning"].ne("").all()


def test_describe_refuses_other_things():
    cases = [
        (print, TypeError, r"help\(print\)"),
        (tk.pnl.attribution, TypeError, "attribution is not a fetch function"),
        ((pd.DataFrame(),), TypeError, "Pass one frame"),
        ("userLeverage", ValueError, "'userLeverage'"),
        ("userFil", ValueError, "Did you mean 'userFills'"),
        (pd.DataFrame({"px": [1.0]}), ValueError, "has no provenance"),
    ]
    for thing, kind, named in cases:
        with pytest.raises(kind, match=named):
            tk.describe(thing)
