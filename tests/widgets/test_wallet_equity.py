"""Equity carried back from what the service states: the same at both ends and in between."""

from functools import cache

import pandas as pd
import pytest

import toolkit as tk
from tests.widgets.fetchers import CannedFetcher
from toolkit.errors import NotPermitted
from toolkit.fetch.accounts import batch_clearinghouse_states
from toolkit.widgets.fetcher import bind_session
from toolkit.widgets.wallet_html import wallet_html
from toolkit.widgets.wallet_view import WalletRequest, fetch_account, wallet_view


def nearly(amount):
    """Equal up to a millionth of a USD, the last digit of the service."""
    return pytest.approx(float(amount), rel=0, abs=1e-6)


@cache
def fetched(exchange, who, period="30d"):
    stories = tk.example.stories(exchange).set_index("name")
    builders = tuple(exchange.world["builders"])
    request = WalletRequest(stories.loc[who, "address"], period=period, builders=builders)
    return fetch_account(request, bind_session(exchange), exchange.now_ms())


def test_equity_matches_state_and_reconciliation(exchange):
    for who, is_explained in (("WHALE", False), ("ISOLATED", True)):
        account = fetched(exchange, who)
        curve, state = account.equity, (account.accounts, account.positions)
        told = tk.pnl.reconcile(
            None, state, account.fills, account.funding, account.ledger, account=account.user
        ).iloc[0]
        assert curve["equity"].iloc[-1] == nearly(account.accounts["account_value"].sum())
        unrealised = account.positions["unrealized_pnl"].sum()
        assert curve["unrealised"].iloc[-1] == nearly(unrealised)
        # 30 days ago nobody had an account.
        assert curve["equity"].iloc[0] == nearly(told["residual"])
        assert curve["flows"].iloc[-1] == nearly(told["ledger"])
        net = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]
        assert curve["realised"].iloc[-1] == nearly(told[net].sum())
        assert not is_explained or curve["equity"].iloc[0] == nearly(0)


def test_html_shows_equity_of_account(exchange):
    account = fetched(exchange, "WHALE")
    asked = {"user": account.user, "period": "30d"}
    whole = wallet_view(WalletRequest(**asked), CannedFetcher({}), account.end_ms, account)
    drawn = wallet_html(whole)
    assert 'aria-label="Equity in USD from ' in drawn
    assert "ositions at the price of its last fill, at the end at the mark price" in drawn
    assert tk.provenance(whole.equity)["simulated"]
    coin = WalletRequest(**asked, coin=account.fills["coin"].iloc[0])
    assert "Equity in USD" not in wallet_html(
        wallet_view(coin, CannedFetcher({}), account.end_ms, account)
    )


def test_equity_of_unified_account_is_unknown(exchange):
    account = fetched(exchange, "UNIFIED")
    assert account.equity is None
    request = WalletRequest(account.user, period="30d", builders=account.builders)
    drawn = wallet_html(wallet_view(request, CannedFetcher({}), account.end_ms, account))
    assert "Equity is not known" in drawn
    assert "Equity in USD" not in drawn


def test_equity_of_day_changes_by_net(exchange):
    """So its change is what the day brought; the hour before the second midnight is of it."""
    account = fetched(exchange, "WHALE")
    asked = {"user": account.user, "period": "30d"}
    day = account.fills["time"].iloc[len(account.fills) // 2].floor("D")
    request = WalletRequest(**asked, day=f"{day:%Y-%m-%d}")
    view = wallet_view(request, CannedFetcher({}), account.end_ms, account)
    assert list(view.equity["time"]) == list(pd.date_range(day, periods=25, freq="h"))
    realised = view.equity["realised"]
    assert realised.iloc[-1] - realised.iloc[0] == nearly(view.earned["net"].iloc[0])
    assert f'between("{day:%Y-%m-%d}", "{day + pd.Timedelta(days=1):%Y-%m-%d}")' in view.code


def test_equity_without_state_is_missing(exchange):
    account = fetched(exchange, "WHALE")
    refused = NotPermitted("no add-on", status=403, operation="batchClearinghouseStates")
    request = WalletRequest(account.user, period="1d", builders=())

    def fetch(function, *arguments, **options):
        if function is batch_clearinghouse_states:
            raise refused
        return bind_session(exchange)(function, *arguments, **options)

    view = wallet_view(request, fetch, exchange.now_ms())
    assert view.equity is None
    assert "Equity in USD" not in wallet_html(view)
    assert isinstance(view.fills, pd.DataFrame)
