"""Margin tiers of positions and repeated states, by hand."""

import numpy as np
import pandas as pd
import pytest

from toolkit.errors import MissingColumns, RepeatedRows
from toolkit.liquidations._margin_buffers import read_tiers
from toolkit.prepare.states import account_states, open_positions

from .examples import MONDAY, times


def states(*rows):
    return pd.DataFrame(rows, columns=["user", "coin", "szi", "position_value"])


def meta(*rows):
    return pd.DataFrame(rows, columns=["name", "max_leverage", "margin_table_id"])


def tables(*rows):
    return pd.DataFrame(rows, columns=["margin_table_id", "lower_bound", "max_leverage"])


def test_positions_of_both_signs_by_hand():
    """A closed position is none, a repeated one is one, and a short's value has no sign."""
    rows = states(
        ("0xb", "pre:X", -4.0, 10.0), ("0xa", "X", 2.0, 30.0), ("0xa", "Y", 0.0, 0.0),
        ("0xa", "X", 2.0, 30.0),
    )  # fmt: skip
    with pytest.warns(RepeatedRows):
        held = open_positions(rows)
    assert held["user"].tolist() == ["0xb", "0xa"]
    assert held["side"].tolist() == ["short", "long"]
    assert held["size"].tolist() == [4, 2]
    assert held["notional"].tolist() == [10, 30]
    assert held["mark"].tolist() == [2.5, 15]
    assert held.index.tolist() == [0, 1]


def test_states_that_differ_are_named():
    rows = states(("0xa", "Y", 1.0, 5.0), ("0xb", "X", 1.0, 5.0), ("0xb", "X", 2.0, 5.0))
    with pytest.raises(ValueError, match=r"^positions: 0xb X .*szi"):
        open_positions(rows)
    accounts = pd.DataFrame(
        {"user": ["0xa", "0xb", "0xb"], "dex": ["", "", "pre"], "cross_account_value": 1.0}
    )
    assert len(account_states(accounts)) == 3
    same = accounts.assign(dex=["", "pre", "pre"], cross_account_value=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"^accounts: 0xb pre .*cross_account_value"):
        account_states(same)


def test_states_of_two_moments_are_named():
    rows = states(("0xa", "X", 1.0, 5.0), ("0xb", "Y", 1.0, 5.0), ("0xb", "X", 2.0, 5.0))
    rows["time"] = times([MONDAY, MONDAY, MONDAY + 1])
    with pytest.raises(ValueError, match=r"^positions: .*0xb .*positions.time.max"):
        open_positions(rows)
    two_dexes = rows.assign(coin=["X", "Y", "pre:X"])  # each dex is asked for itself
    assert len(open_positions(two_dexes)) == 3
    with pytest.raises(ValueError, match=r"^accounts: .*0xb"):
        account_states(rows.assign(cross_account_value=1.0))


def test_tiers_of_several_dexes_by_hand():
    """X has table 51 of the native dex, pre:X table 51 of its own, and Y an id below 50."""
    held = states(("a", "pre:X", 1.0, 1.0), ("a", "X", 1.0, 1.0), ("a", "Y", 1.0, 1.0))
    assets = meta(("X", 40.0, 51), ("pre:X", 10.0, 51), ("Y", 20.0, 7))
    native = tables((51, 3e6, 20.0), (51, 0.0, 40.0)).assign(dex="native")
    own = tables((51, 0.0, 10.0), (51, 1e5, 5.0), (51, 1e6, 3.0)).assign(dex="pre")
    most, low, source = read_tiers(held, assets, pd.concat([native, own, own]))
    assert source == "margin tables"
    assert most[0].tolist() == [10, 5, 3]
    assert low[0].tolist() == [0, 1e5, 1e6]
    assert most[1, :2].tolist() == [40, 20]
    assert low[1, :2].tolist() == [0, 3e6]
    assert most[2, 0] == 7
    fetched = own.drop(columns="dex")
    fetched.attrs["toolkit"] = {"parameters": {"dex": "pre"}}
    with pytest.warns(UserWarning, match="positions in X:"):
        most, _, source = read_tiers(held, assets, fetched)
    assert source == "one tier for each coin"
    assert most[0].tolist() == [10, 5, 3]
    assert most[1, 0] == 40


def test_leverage_falls_back_to_state():
    """A named coin has the passed leverage, another one that of its state, a third one none."""
    held = states(("a", "X", 1.0, 1.0), ("a", "Y", 1.0, 1.0), ("a", "Z", 1.0, 1.0))
    held["max_leverage"] = [50.0, 3.0, np.nan]
    most, _, _ = read_tiers(held, {"X": 25}, None)
    assert most[:2, 0].tolist() == [25, 3]
    assert np.isnan(most[2, 0])
    assert read_tiers(held, None, None)[0][0, 0] == 50
    with pytest.raises(ValueError, match=r"^positions: .*max_leverage"):
        read_tiers(held.drop(columns="max_leverage"), None, None)
    with pytest.raises(ValueError, match=r"^margin_tables: "):
        read_tiers(held, {"X": 25}, tables((51, 0.0, 3.0)))


def test_coins_without_tables_are_named():
    """A tier without a number makes its table unknown; five coins are named."""
    for coins, named in (("FEDCB", "B, C, D, E, F"), ("FEDCBA", "A, B, C, D, E and others")):
        held = states(*((f"u{coin}", coin, 1.0, 1.0) for coin in coins))
        assets = meta(*((coin, 9.0, 51 + place) for place, coin in enumerate(coins)))
        given = tables((51, None, 3.0), (51, 0.0, 9.0))
        with pytest.warns(UserWarning, match=f"^positions in {named}:"):
            most, _, _ = read_tiers(held, assets, given)
        assert most[:, 0].tolist() == [9.0] * len(coins)


def test_missing_user_is_empty_text_and_missing_dex_is_native():
    rows = states(("0xa", "X", 1.0, 5.0), ("0xb", "Y", 1.0, 5.0)).assign(dex=[None, "pre"])
    rows["user"] = pd.Series(["0xa", None], dtype="str")
    held = open_positions(rows.assign(max_leverage=[7.0, 3.0]))
    assert held["user"].tolist() == ["0xa", ""]
    assert held["dex"].tolist() == ["hyperliquid", "pre"]
    assert held["max_leverage"].tolist() == [7, 3]
    assert "index" not in held
    accounts = pd.DataFrame({"user": ["0xa"] * 2, "dex": [None] * 2, "cross_account_value": 1.0})
    with pytest.raises(ValueError, match=r"^accounts: .*0xa"):
        account_states(accounts.assign(time=times([MONDAY, MONDAY + 1])))
    with pytest.raises(MissingColumns, match=r"^accounts: .*cross_account_value"):
        account_states(accounts.astype({"cross_account_value": "str"}))
    own = tables((51, 0.0, 40.0)).assign(dex=pd.Series([None], dtype="str"))
    most, _, source = read_tiers(held[:1], meta(("X", 10.0, 51)), own)
    assert (source, most[0, 0]) == ("margin tables", 40)
    most, low, _ = read_tiers(held[:0], None, None)
    assert most.shape == low.shape == (0, 1)
    with pytest.raises(MissingColumns, match=r"^max_leverage: "):
        read_tiers(held, pd.DataFrame({"name": ["X"]}), None)
