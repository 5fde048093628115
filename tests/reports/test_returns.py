"""One return everywhere: in the wallet report, the comparison, the widget, and from the helpers.

Its sign is that of the change of the account's value, as the exchange states it, without deposits.
"""

import numpy as np
import pytest

import toolkit as tk
from toolkit.reports import comparison_report
from toolkit.reports.wallet_frames import fetch_wallet
from toolkit.widgets.wallet_view import AccountData, gain_and_return


@pytest.fixture(scope="module")
def frames(session):
    """Return the frames of accounts that traded, with all of their funding."""
    builders = session.world["builders"]
    every = [
        fetch_wallet(session, user, 0, None, builders, with_slippage=False)
        for user in session.world["users"][4:36]
    ]
    return [each for each in every if len(each.fills)]


def test_return_has_the_sign_of_the_change_of_value(frames):
    """States of unified accounts lack the spot wallet, so only the others are compared with them.

    Without a price of what is open at the end there is no return, and a reason.
    """
    wrong, stated = [], 0
    for wallet in comparison_report.compare(frames).wallets:
        value, user = wallet.value, wallet.results.frames.user
        if wallet.returns.empty:
            assert wallet.reason.startswith("no price within an hour")
            continue
        gain, total = wallet.returns["gain"].sum(), wallet.figure("total_return")["value"]
        earned = gain
        if value["part"].iloc[0] == "perp account":
            stated += 1
            state = wallet.results.frames.states.accounts["account_value"].astype("float64").sum()
            earned = state + value["kept"].iloc[-1] - value["flows"].sum()
        if abs(gain - earned) > 1e-6 or np.sign(total) != np.sign(earned):
            wrong.append((user, earned, gain, total))
    assert wrong == []
    assert stated >= 20


def test_report_widget_and_helpers_agree(frames):
    wallets = comparison_report.compare(frames[:3]).wallets
    rows = comparison_report.compare(frames[:3]).rows.set_index("user")
    for wallet in wallets:
        own, funding = wallet.results.frames, wallet.results.funding
        data = AccountData(
            own.user, own.start_ms, own.end_ms, own.fills, own.ledger, funding, own.builders,
            own.states.positions, own.states.accounts,
        )  # fmt: skip
        shown = gain_and_return(data.returns)
        value = tk.pnl.value(own.fills, funding, own.ledger, accounts=own.states, account=own.user)
        sheet = tk.performance.sheet(tk.performance.returns(value)).set_index("figure")["value"]
        assert shown == pytest.approx((rows.loc[own.user, "gain"], sheet["total_return"]), rel=1e-9)
        # The comparison has more prices, of the fills of the other accounts.
        total = rows.loc[own.user, "total_return"]
        assert total == pytest.approx(sheet["total_return"], abs=5e-3)
