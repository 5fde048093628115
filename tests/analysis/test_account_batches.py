"""Histories account by account: the same result as all at once, with few rows in memory."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import toolkit as tk
from tests.engines import Engine
from toolkit.analysis.common import account_batches

LAZY = ("polars lazy", "duckdb")


@pytest.fixture(scope="module")
def frames():
    """Return the tables of eight accounts, with some addresses in mixed case."""
    session = tk.local(seed=7, size="tiny")
    users = session.world["users"][:8]
    fills = tk.many(tk.user_fills_by_time, users, 0)
    ledger = tk.many(tk.user_non_funding_ledger_updates, users, 0)
    funding = [tk.builder_approved_funding_by_time(one, 0) for one in session.world["builders"][:2]]
    paid = pd.concat(funding)
    paid = paid[paid["user"].isin(users)].drop_duplicates(["user", "coin", "time"])
    nested = ["liquidation", "twap", "delta"]
    fills.loc[fills["user"] == users[0], "user"] = users[0].upper().replace("0X", "0x")
    states = tk.batch_clearinghouse_states(users)
    return {
        "fills": fills.drop(columns=nested, errors="ignore").reset_index(drop=True),
        "funding": paid.reset_index(drop=True),
        "ledger": ledger.drop(columns=nested, errors="ignore").reset_index(drop=True),
        "accounts": states.accounts,
        "positions": states.positions,
    }


SIZES = {"BTC": 5, "ETH": 4}
CALLS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "positions": lambda t: tk.pnl.positions(t["fills"], SIZES),
    "unrealised": lambda t: tk.pnl.unrealised(t["fills"], {"BTC": 1e5, "ETH": 4e3}, SIZES),
    "lots": lambda t: tk.pnl.lots(t["fills"]),
    "audit": lambda t: tk.pnl.audit(t["fills"], SIZES),
    "round_trips": lambda t: tk.pnl.round_trips(t["fills"], t["funding"]),
    "equity": lambda t: tk.pnl.equity(t["fills"], t["funding"], t["ledger"]),
    "reconcile": lambda t: tk.pnl.reconcile(
        None, (t["accounts"], t["positions"]), t["fills"], t["funding"], t["ledger"]
    ),
}


def rows_of(engine, result):
    frame = pd.DataFrame(engine.take(result)).astype(object)
    keys = sorted(frame.columns)
    return frame[keys].sort_values(keys, key=lambda each: each.astype(str), ignore_index=True)


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("helper", CALLS)
@pytest.mark.filterwarnings("ignore::toolkit.errors.HistoryWarning")
def test_divided_run_equals_whole_run(helper, name, frames, monkeypatch):
    """A divided run gives the rows of one run over all accounts, on no more rows at once."""
    engine = Engine(name)
    whole = rows_of(Engine("pandas"), CALLS[helper](frames))
    largest = int(frames["fills"]["user"].str.lower().value_counts().max())
    monkeypatch.setattr(account_batches, "ROWS_AT_ONCE", largest)
    given = {key: engine.give(frame) for key, frame in frames.items()}
    found = rows_of(engine, CALLS[helper](given))
    assert len(found) == len(whole) > 0
    for column in whole:
        numbers = pd.to_numeric(whole[column], errors="coerce")
        if numbers.notna().any():
            other = pd.to_numeric(found[column], errors="coerce")
            assert np.allclose(numbers.astype(float), other.astype(float), equal_nan=True)
        else:
            assert found[column].astype(str).tolist() == whole[column].astype(str).tolist()


def test_divided_result_is_lazy(frames, monkeypatch):
    monkeypatch.setattr(account_batches, "ROWS_AT_ONCE", 1)
    fills = Engine("polars lazy").give(frames["fills"])
    result = tk.pnl.positions(fills, SIZES)
    assert isinstance(result, pl.LazyFrame)
    assert result.collect().equals(result.collect())  # it can be read again
