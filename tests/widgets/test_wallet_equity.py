"""Equity carried back from what the service states: exact at both ends, the same in between."""

from functools import cache

import pandas as pd
import pytest

import toolkit as tk
from tests.widgets.fetchers import CannedFetcher
from toolkit.errors import NotPermitted
from toolkit.fetch import batch_clearinghouse_states
from toolkit.widgets.fetcher import bind_session
from toolkit.widgets.wallet_html import wallet_html
from toolkit.widgets.wallet_view import WalletRequest, fetch_account, wallet_view

WHO = ("WHALE", "UNIFIED", "PORTFOLIO_MARGIN", "TWAP_USER", "ISOLATED", "DELEVERAGED", "VAULT")
MONEY = ("realised", "unrealised", "pnl", "flows", "equity")
EXPLAINED = ("ISOLATED", "DELEVERAGED")
"""Accounts whose funding rows the service shows all."""


@cache
def fetched(exchange, who, period="30d"):
    stories = tk.example.stories(exchange).set_index("name")
    builders = tuple(exchange.world["builders"])
    request = WalletRequest(stories.loc[who, "address"], period=period, builders=builders)
    return fetch_account(request, bind_session(exchange), exchange.now_ms())


@pytest.mark.parametrize("who", WHO)
def test_equity_matches_state_and_reconciliation(exchange, who):
    account = fetched(exchange, who)
    curve = account.equity
    state = (account.accounts, account.positions)
    told = tk.pnl.reconcile(
        None, state, account.fills, account.funding, account.ledger, account=account.user
    ).iloc[0]
    assert curve["equity"].iloc[-1] == account.accounts["account_value"].sum()
    assert curve["unrealised"].iloc[-1] == account.positions["unrealized_pnl"].sum()
    assert curve["equity"].iloc[0] == told["residual"]  # 30 days ago nobody had an account
    assert curve["flows"].iloc[-1] == told["ledger"]
    net = told[["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]]
    assert curve["realised"].iloc[-1] == net.sum()
    if who in EXPLAINED:
        assert curve["equity"].iloc[0] == 0
    curve = curve.astype(dict.fromkeys(MONEY, object))
    cash = curve["equity"] - curve["unrealised"] - curve["realised"] - curve["flows"]
    assert cash.nunique() == 1
    assert (curve["pnl"] + curve["flows"] + curve["equity"].iloc[0] == curve["equity"]).all()
    assert curve["time"].is_monotonic_increasing


@pytest.mark.parametrize("who", ["WHALE", "UNIFIED"])
def test_shorter_period_has_same_equity(exchange, who):
    """But for the marks before a coin's first fill, which nothing in the period tells."""
    long, short = fetched(exchange, who).equity, fetched(exchange, who, "1d").equity
    both = short.merge(long, on="time", suffixes=("", "_long"))
    assert len(both) == len(short) > 24
    names = ("equity", "unrealised", "equity_long", "unrealised_long")
    both = both.astype(dict.fromkeys(names, object))
    kept = both["equity"] - both["unrealised"]
    assert (kept == both["equity_long"] - both["unrealised_long"]).all()


def test_realised_matches_forward_curve(exchange):
    account = fetched(exchange, "TWAP_USER")
    forward = tk.pnl.equity(account.fills, account.funding, account.ledger, account=account.user)[
        ["time", "realised", "flows"]
    ]
    both = account.equity.merge(forward, on="time", suffixes=("", "_forward"))
    assert len(both) > 24
    assert (both["realised"] == both["realised_forward"]).all()
    assert (both["flows"] == both["flows_forward"]).all()


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


def test_equity_of_day_changes_by_net(exchange):
    """So its change is what the day brought; the hour before the second midnight is of it."""
    account = fetched(exchange, "WHALE")
    asked = {"user": account.user, "period": "30d"}
    day = account.fills["time"].iloc[len(account.fills) // 2].floor("D")
    request = WalletRequest(**asked, day=f"{day:%Y-%m-%d}")
    view = wallet_view(request, CannedFetcher({}), account.end_ms, account)
    assert list(view.equity["time"]) == list(pd.date_range(day, periods=25, freq="h"))
    earned = view.earned["net"].iloc[0]
    assert view.equity["realised"].iloc[-1] - view.equity["realised"].iloc[0] == earned
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
