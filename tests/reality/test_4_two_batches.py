"""Two batches of states in one frame: docs/live_service.md, section 4.

The newer batch is valid. The first row must not hide it.
"""

import pandas as pd
import pytest

import toolkit as tk
from tests.analysis.examples import DAY, HOUR, ME, MONDAY, OTHER, times
from toolkit.errors import RepeatedRows


def states(ms, value, szi, unrealised):
    accounts = pd.DataFrame({"user": [ME], "account_value": [value], "time": times([ms])})
    accounts["account_mode"] = pd.array([0], dtype="Int64")
    positions = pd.DataFrame(
        {"user": [ME], "coin": ["BTC"], "szi": [szi], "unrealized_pnl": [unrealised]}
    )
    return accounts, positions.assign(time=times([ms]), position_value=100.0 * szi)


def two_batches(*, is_newer_first, is_timed):
    """Return the account at 1,054.5 USD, and a day later at 900, 3 instead of 1 BTC long."""
    batches = [states(MONDAY + HOUR, 1054.5, 1.0, 5.0), states(MONDAY + DAY, 900.0, 3.0, -70.0)]
    if is_newer_first:
        batches.reverse()
    accounts, positions = (pd.concat(part) for part in zip(*batches, strict=True))
    if not is_timed:
        accounts, positions = accounts.drop(columns="time"), positions.drop(columns="time")
    return accounts, positions


def fills():
    row = {"user": ME, "coin": "BTC", "px": 100.0, "sz": 1.0, "side": "B", "start_position": 0.0}
    row |= {"closed_pnl": 0.0, "fee": 0.5, "fee_token": "USDC", "tid": 7}
    return pd.DataFrame([row]).assign(time=times([MONDAY]))


HELPERS = {
    "values": lambda accounts, _: tk.accounts.values(accounts),
    "concentration": lambda accounts, _: tk.accounts.concentration(accounts),
    "lorenz": lambda accounts, _: tk.accounts.lorenz(accounts),
    "migration": lambda accounts, _: tk.accounts.migration(accounts.head(1), accounts),
    "reconcile": lambda *state: tk.pnl.reconcile(None, state, fills(), None, None, end_time=1),
    "reconcile positions": lambda accounts, positions: tk.pnl.reconcile(
        None, (accounts.head(1), positions), fills(), None, None, end_time=1
    ),
    "carried_back": lambda *state: tk.pnl.carried_back(*state, fills(), None, None),
    "attribution": lambda _, positions: tk.pnl.attribution(
        fills(), positions=(positions.head(1), positions)
    ),
}


@pytest.mark.parametrize("name", HELPERS)
def test_two_batches_are_refused(name):
    for is_timed, named in ((True, "2 (different )?times"), (False, "which one is newer")):
        for is_newer_first in (True, False):
            given = two_batches(is_newer_first=is_newer_first, is_timed=is_timed)
            with pytest.raises(ValueError, match=named):
                HELPERS[name](*given)


def test_repeated_states_count_once():
    accounts, positions = states(MONDAY + HOUR, 1054.5, 1.0, 5.0)
    once = tk.pnl.reconcile(None, (accounts, positions), fills(), None, None)
    again = pd.concat([accounts, accounts]), pd.concat([positions, positions])
    with pytest.warns(RepeatedRows) as caught:
        twice = tk.pnl.reconcile(None, again, fills(), None, None)
    pd.testing.assert_frame_equal(twice, once)
    assert [str(warning.message).split(":")[0] for warning in caught] == ["end", "end[1]"]


def test_accounts_may_have_different_times():
    """Each account has one state with its own time, so nothing is hidden."""
    mine, _ = states(MONDAY, 70.0, 1.0, 5.0)
    other, _ = states(MONDAY + DAY, 30.0, 2.0, 6.0)
    found = tk.accounts.values(pd.concat([mine, other.assign(user=OTHER)]))
    assert found["value"].tolist() == [70.0, 30.0]
