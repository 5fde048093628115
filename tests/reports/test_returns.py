"""One return everywhere: in the wallet report, the comparison, the widget, and from the helpers.

Its sign is that of the change of the account's value, as the exchange states it, without deposits.
"""

import numpy as np
import pytest

import toolkit as tk
from toolkit.reports import comparison_report
from toolkit.reports.report_frames import fetch_account
from toolkit.widgets.wallet_view import WalletFigures


@pytest.fixture(scope="module")
def accounts(session):
    """Return accounts that traded."""
    users = session.world["users"][4:36]
    every = [fetch_account(session, user, 0, None, with_all=False) for user in users]
    return [each for each in every if len(each.fills)]


def test_return_has_the_sign_of_the_change_of_value(accounts):
    """States of unified accounts lack the spot wallet, so only the others are compared with them.

    Without a price of what is open at the end there is no return, and a reason.
    """
    wrong, stated = [], 0
    for wallet in comparison_report.compare(accounts).wallets:
        value, user = wallet.value, wallet.account.address
        if wallet.returns.empty:
            assert wallet.reason.startswith("no price within an hour")
            continue
        gain, total = wallet.returns["gain"].sum(), wallet.figure("total_return")["value"]
        earned = gain
        if value["part"].iloc[0] == "perp account":
            stated += 1
            state = wallet.account.states.accounts["account_value"].astype("float64").sum()
            earned = state + value["kept"].iloc[-1] - value["flows"].sum()
        if abs(gain - earned) > 1e-6 or np.sign(total) != np.sign(earned):
            wrong.append((user, earned, gain, total))
    assert wrong == []
    assert stated >= 20


def test_report_widget_and_helpers_agree(accounts):
    wallets = comparison_report.compare(accounts[:3]).wallets
    rows = comparison_report.compare(accounts[:3]).rows.set_index("user")
    for wallet in wallets:
        own, funding = wallet.account, wallet.funding
        shown = WalletFigures(own).gain_and_return
        value = tk.pnl.value(
            own.fills, funding, own.ledger, accounts=own.states, account=own.address
        )
        sheet = tk.performance.sheet(tk.performance.returns(value)).set_index("figure")["value"]
        assert shown == pytest.approx(
            (rows.loc[own.address, "gain"], sheet["total_return"]), rel=1e-9
        )
        # The comparison has more prices, of the fills of the other accounts.
        total = rows.loc[own.address, "total_return"]
        assert total == pytest.approx(sheet["total_return"], abs=5e-3)
