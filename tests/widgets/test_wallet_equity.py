"""Equity carried back from what the service states: the same at both ends and in between."""

from functools import cache

import pandas as pd
import pytest

import toolkit as tk
from toolkit.widgets.wallet_html import wallet_html
from toolkit.widgets.wallet_view import WalletFigures, WalletRequest, fetch_account, wallet_view


def nearly(amount):
    """Equal up to a millionth of a USD, the last digit of the service."""
    return pytest.approx(float(amount), rel=0, abs=1e-6)


@cache
def fetched(exchange, who, period="30d"):
    stories = tk.example.stories(exchange).set_index("name")
    return WalletFigures(fetch_account(stories.loc[who, "address"], period, exchange))


def test_equity_matches_state_and_reconciliation(exchange):
    for who, is_explained in (("WHALE", False), ("ISOLATED", True)):
        figures = fetched(exchange, who)
        curve, account, state = figures.equity, figures.account, figures.account.states
        told = tk.pnl.reconcile(
            None, state, account.fills, account.funding, account.ledger, account=account.address
        ).iloc[0]
        assert curve["equity"].iloc[-1] == nearly(figures.value)
        unrealised = state.positions["unrealized_pnl"].sum()
        assert curve["unrealised"].iloc[-1] == nearly(unrealised)
        # 30 days ago nobody had an account.
        assert curve["equity"].iloc[0] == nearly(told["residual"])
        assert curve["flows"].iloc[-1] == nearly(told["ledger"])
        net = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]
        assert curve["realised"].iloc[-1] == nearly(told[net].sum())
        assert not is_explained or curve["equity"].iloc[0] == nearly(0)


def test_html_shows_equity_of_account(exchange):
    figures = fetched(exchange, "WHALE")
    asked = {"user": figures.account.address, "period": "30d"}
    whole = wallet_view(WalletRequest(**asked), None, figures)
    drawn = wallet_html(whole)
    assert 'aria-label="Equity in USD from ' in drawn
    assert "ositions at the price of its last fill, at the end at the mark price" in drawn
    assert tk.provenance(whole.equity)["simulated"]
    coin = WalletRequest(**asked, coin=figures.account.fills["coin"].iloc[0])
    assert "Equity in USD" not in wallet_html(wallet_view(coin, None, figures))


def test_equity_of_unified_account_is_unknown(exchange):
    figures = fetched(exchange, "UNIFIED")
    assert figures.equity is None
    request = WalletRequest(figures.account.address, period="30d")
    drawn = wallet_html(wallet_view(request, None, figures))
    assert "Equity is not known" in drawn
    assert "Equity in USD" not in drawn


def test_equity_of_day_changes_by_net(exchange):
    """So its change is what the day brought; the hour before the second midnight is of it."""
    figures = fetched(exchange, "WHALE")
    fills = figures.account.fills
    day = fills["time"].iloc[len(fills) // 2].floor("D")
    request = WalletRequest(figures.account.address, period="30d", day=f"{day:%Y-%m-%d}")
    view = wallet_view(request, None, figures)
    assert list(view.equity["time"]) == list(pd.date_range(day, periods=25, freq="h"))
    realised = view.equity["realised"]
    assert realised.iloc[-1] - realised.iloc[0] == nearly(view.earned["net"].iloc[0])
    assert f'between("{day:%Y-%m-%d}", "{day + pd.Timedelta(days=1):%Y-%m-%d}")' in view.code
