"""Shares of vaults and what depositors gained, by hand and on the simulated exchange."""

import numpy as np
import pandas as pd
import pytest

import toolkit as tk

VAULT, LEADER, ANN, BOB = (f"0x{letter * 40}" for letter in "abcd")
DAYS = pd.to_datetime(["2025-09-01", "2025-09-11", "2025-09-21"], utc=True)
VALUES = [0.0, 100.0, 110.0, 210.0, 189.0, 139.0, 0.0, 50.0, 55.0]
GAINS = [0.0, 0.0, 10.0, 10.0, -11.0, -11.0, -11.0, -11.0, -6.0]


def portfolio(**columns):
    times = pd.date_range("2025-09-01", periods=len(VALUES), tz="UTC")
    made = {"period": "allTime", "time": times, "account_value": VALUES, "pnl": GAINS}
    return pd.DataFrame(made | columns)


def details(**equity):
    vault = pd.DataFrame({"vault_address": [VAULT], "leader": [LEADER]})
    followers = pd.DataFrame({"user": [*equity], "vault_equity": [*equity.values()]})
    return {"vault": vault, "followers": followers}


def ledger(*rows):
    """Return ledger rows of account, time, type and amount; a withdrawal pays its net amount."""
    made = pd.DataFrame(rows, columns=["account", "time", "type", "usdc"])
    paid_out = made["type"] == "vaultWithdraw"
    return made.assign(
        vault=VAULT.upper().replace("X", "x"),
        net_withdrawn_usd=made["usdc"].where(paid_out),
        usdc=made["usdc"].mask(paid_out),
    )


def test_share_by_hand():
    """+10 on 100; 100 more; -21 on 210; 50 less; all out; 50 in; +5 on 50."""
    made = tk.performance.vault_shares(portfolio())
    wanted = [np.nan, 1, 1.1, 1.1, 0.99, 0.99, 0.99, 0.99, 1.089]
    np.testing.assert_allclose(made["growth"], wanted)
    high = [np.nan, 1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1, 1.1]
    np.testing.assert_allclose(made["drawdown"], np.array(wanted) / high - 1, atol=1e-12)
    assert made["flows"].tolist() == [0, 100, 100, 200, 200, 150, 11, 61, 61]
    shuffled = tk.performance.vault_shares(portfolio().sample(frac=1, random_state=3))
    pd.testing.assert_frame_equal(made, shuffled)
    with pytest.raises(ValueError, match=r"'week'.*'allTime'"):
        tk.performance.vault_shares(portfolio(), "week")
    assert len(tk.plots.growth_curve(made).axes) == 2


def test_deposits_change_no_share():
    """The same returns with other flows give the same share."""
    rates = np.array([0.02, -0.01, 0.03, -0.2, 0.05])
    shares = []
    for paid in ([100, 0, 0, 0, 0], [100, 900, 0, 40, 7]):
        value, gained, values, gains = 0.0, 0.0, [0.0], [0.0]
        for flow, rate in zip(paid, rates, strict=True):
            gained += (value + flow) * rate
            value = (value + flow) * (1 + rate)
            values, gains = [*values, value], [*gains, gained]
        rows = portfolio().iloc[: len(values)].assign(account_value=values, pnl=gains)
        shares.append(tk.performance.vault_shares(rows)["growth"])
    np.testing.assert_allclose(shares[0].iloc[1:], np.cumprod(1 + rates))
    np.testing.assert_allclose(shares[0], shares[1])


def test_money_weighted_return_by_hand():
    """Over 20 days 21 % is 10 % in each half: 100 * 1.21 + 100 * 1.1 = 231; - 60 * 1.1 = 55.

    Bob took all out after ten days: 100 became 105. The leader's fee for the vault is no deposit.
    """
    rows = ledger(
        (ANN, DAYS[0], "vaultDeposit", 100.0),
        (ANN, DAYS[1], "vaultDeposit", 100.0),
        (BOB, DAYS[0], "vaultDeposit", 100.0),
        (BOB, DAYS[1], "vaultWithdraw", 105.0),
        (LEADER, DAYS[0], "vaultCreate", 100.0),
        (LEADER, DAYS[1], "vaultDistribution", 60.0),
        (LEADER, DAYS[1], "deposit", 7.0),
    )
    found = details(**{ANN: 231.0, "leader": 55.0})
    made = tk.performance.vault_depositors(rows, **found, at=DAYS[2]).set_index("user")
    np.testing.assert_allclose(made.loc[[ANN, BOB, LEADER], "return_"], [0.21, 0.05, 0.21])
    assert made.loc[[ANN, BOB, LEADER], "gain"].tolist() == [31, 5, 15]
    assert made.loc[[ANN, BOB, LEADER], "days"].tolist() == [20, 10, 20]
    alone = rows[rows["account"] == ANN].drop(columns="account")
    with pytest.raises(ValueError, match="account="):
        tk.performance.vault_depositors(alone, **found, at=DAYS[2])
    own = tk.performance.vault_depositors(alone, **found, account=ANN, at=DAYS[2])
    assert own["return_"].item() == pytest.approx(0.21)


def test_unlisted_depositor_is_unknown():
    """An answer lists 100 followers: whoever is not among them may still have a share."""
    found = details(**{f"0x{number:040x}": 1.0 for number in range(100)})
    rows = ledger((ANN, DAYS[0], "vaultDeposit", 100.0))
    with pytest.warns(tk.HistoryWarning, match="1 of 1"):
        made = tk.performance.vault_depositors(rows, **found, at=DAYS[2])
    assert made[["equity", "gain", "return_"]].isna().all(axis=None)
    asked = found["vault"].assign(follower_user=ANN, follower_vault_equity=150.0)
    made = tk.performance.vault_depositors(rows, found["followers"], asked, at=DAYS[2])
    assert made["return_"].item() == pytest.approx(0.5)


def test_gains_equal_those_of_the_exchange():
    session = tk.local(seed=7, size="tiny", default=False)
    vault = tk.vault_details(session.world["examples"]["VAULT"], session=session)
    leader = vault.vault["leader"].item()
    told = vault.followers.assign(user=vault.followers["user"].replace("leader", leader))
    rows = tk.many(tk.user_non_funding_ledger_updates, told["user"].tolist(), session=session)
    made = tk.performance.vault_depositors(rows, vault.followers, vault.vault).set_index("user")
    gains = told.set_index("user")["all_time_pnl"]
    np.testing.assert_allclose(made["gain"], gains[made.index], atol=1e-6)
    shares = tk.performance.vault_shares(vault.portfolio)
    sheet = tk.performance.sheet(tk.performance.returns(shares)).set_index("figure")["value"]
    assert sheet["max_drawdown"] == pytest.approx(shares["drawdown"].min())
