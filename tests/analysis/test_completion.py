"""Completion in notebooks: results of helpers offer the names of a DataFrame."""

import jedi
import pandas as pd
import pytest

import toolkit as tk


@pytest.mark.parametrize(
    "call",
    ["tk.pnl.attribution(fills)"],
)
def test_completion_of_result_offers_groupby(call):
    names = {"fills": pd.DataFrame(), "tk": tk}
    interpreter = jedi.Interpreter(f"{call}.group", [names])
    assert "groupby" in [completion.name for completion in interpreter.complete()]
