"""The wallet explorer: sums of parts, choices of coin and day, and its code."""

import threading
from dataclasses import replace

import pandas as pd
import pytest

import toolkit as tk
from tests.widgets.fetchers import run_on_thread
from toolkit.contract.apis import EXCHANGE
from toolkit.widgets.wallet_explorer import wallet_explorer
from toolkit.widgets.wallet_html import (
    account_options,
    coin_options,
    comparison_html,
    day_options,
    wallet_html,
)
from toolkit.widgets.wallet_view import (
    ComparisonRequest,
    ComparisonView,
    WalletFigures,
    WalletRequest,
    comparison_view,
    fetch_account,
    wallet_view,
)

CAUSES = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]


@pytest.fixture(scope="module")
def user(exchange):
    return tk.reports.example_account(exchange)


@pytest.fixture(scope="module")
def whole(exchange, user):
    return wallet_view(WalletRequest(user), exchange)


@pytest.fixture(scope="module")
def opened(exchange, user):
    with wallet_explorer(user, period="7d", session=exchange) as result:
        yield result


@pytest.fixture
def explorer(opened, user):
    """Return the explorer of the account, with all coins and all days."""
    return opened.set(user=user, coin=None, day=None)


def nearly(amount):
    """Equal up to a millionth of a USD, the last digit of the service."""
    return pytest.approx(amount, rel=0, abs=1e-6)


def of(whole, **chosen):
    """Choose a coin or day of an account that was fetched; nothing is asked."""
    return wallet_view(WalletRequest(whole.request.user, **chosen), None, whole.figures)


def test_parts_sum_to_net(whole):
    (net,) = whole.earned["net"]
    for parts in (whole.coins, whole.days, whole.hours):
        assert parts["net"].sum() == nearly(net)
    assert sum(whole.earned[cause].iloc[0] for cause in CAUSES) == nearly(net)
    assert "There is no data of" in wallet_html(of(whole, coin="NOPE", day="2025-09-28"))
    for coin in whole.coins["coin"].head(3):
        view = of(whole, coin=coin)
        assert view.days["net"].sum() == nearly(view.earned["net"].iloc[0])
        assert set(view.fills["coin"]) <= {coin}
    for day in whole.days["day"].dt.strftime("%Y-%m-%d"):
        view = of(whole, day=day)
        assert view.coins["net"].sum() == nearly(view.earned["net"].iloc[0])
        assert view.hours["net"].sum() == nearly(view.earned["net"].iloc[0])


def test_choices_are_sorted(whole):
    coins = coin_options(whole)
    assert coins[0] == ("all coins", None)
    sizes = [abs(float(whole.coins.set_index("coin")["net"][coin])) for _, coin in coins[1:]]
    assert sizes == sorted(sizes, reverse=True)
    days = [day for _, day in day_options(whole)[1:]]
    assert days == sorted(days, reverse=True)


def lacking(account, **missing):
    """Return figures of an account whose source lacks frames, with the reasons."""
    return WalletFigures(account.assign(**dict.fromkeys(missing), missing=missing))


def test_missing_frames_are_explained(exchange, user):
    """On an API without funding and states the view has the rest, and says what it lacks."""
    figures = lacking(fetch_account(user, "30d", exchange), funding="gone", states="not this <key>")
    view = wallet_view(WalletRequest(user), None, figures)
    html = wallet_html(view)
    assert pd.isna(view.earned["funding"].iloc[0])
    assert "net, without funding" in html
    assert "funding, missing or incomplete: gone" in html
    assert view.positions is view.equity is None
    assert "Positions cannot be fetched: not this &lt;key&gt;" in html
    assert "Equity in USD" not in html


def test_exchange_api_gives_the_same_view(exchange, user, whole):
    """It has no operation for the states of many accounts, and no slippage samples."""
    view = wallet_view(WalletRequest(user), replace(exchange, api=EXCHANGE))
    assert view.account.missing == {}
    for name in ("earned", "coins", "days", "hours", "equity"):
        pd.testing.assert_frame_equal(getattr(view, name), getattr(whole, name))


@pytest.mark.parametrize("chosen", [[], ["coin", "day"]], ids=", ".join)
def test_code_reproduces_view(default, explorer, chosen):
    fills = explorer.view.fills.iloc[0]
    known = {"coin": fills["coin"], "day": f"{fills['time']:%Y-%m-%d}"}
    explorer.set(**{name: known[name] for name in chosen})
    cell: dict[str, object] = {}
    exec(explorer.code, cell)
    for name in ("earned", "coins", "days", "hours"):
        pd.testing.assert_frame_equal(cell[name], getattr(explorer.view, name))
    assert ("curve" in cell) == ("coin" not in chosen)  # one coin has no equity
    if "curve" in cell:
        pd.testing.assert_frame_equal(cell["curve"], explorer.view.equity)


def test_choices_make_no_requests(exchange, explorer):
    before = exchange.counts.requests
    coin = explorer.view.coins["coin"].iloc[0]

    def choose():  # on another thread
        explorer._coin.value = coin
        return explorer.settle(20)

    assert run_on_thread(choose)
    assert explorer._coin.value == coin
    assert explorer.view.earned["coin"].tolist() == [coin]
    explorer.set(day="2025-09-29")
    assert explorer.view.request.day == "2025-09-29"
    assert exchange.counts.requests == before


def test_unknown_choice_is_refused(explorer):
    coin = explorer.view.coins["coin"].iloc[0]
    with pytest.raises(ValueError, match=rf"no coin 'NOPE' is in .*; choose one of .*{coin}"):
        explorer.set(coin="NOPE")


def test_refresh_fetches_again(exchange, explorer):
    before = exchange.counts.requests
    explorer._refresh.click()
    assert explorer.settle(20)
    assert exchange.counts.requests > before


def test_other_account_resets_choices(exchange, explorer):
    explorer.set(coin=explorer.view.coins["coin"].iloc[0], day="2025-09-29")
    other = next(u for u in exchange.world["users"] if u != explorer.request.user)
    explorer._user.value = f"  {other} "
    assert explorer.settle(20)
    assert explorer.view.request == WalletRequest(other, "7d")
    assert explorer._coin.options[0] == ("all coins", None)
    assert (explorer._coin.value, explorer._day.value) == (None, None)


def test_choice_during_update_is_kept(explorer):
    """A day is picked while the worker sets the lists to those of its view, all days."""
    day = explorer._day.options[1][1]
    picked = threading.Event()
    explorer._day.observe(lambda _: picked.set(), "index")
    with explorer._lock:
        thread = threading.Thread(target=lambda: setattr(explorer._day, "value", day))
        thread.start()
        assert picked.wait(20)
        explorer._update_controls(explorer.view)
        assert explorer._day.value is None
    thread.join(20)
    assert explorer.settle(20)
    assert (explorer._day.value, explorer.view.request.day) == (day, day)


@pytest.fixture(scope="module")
def accounts(exchange):
    """Return four accounts: the second one has funding, the last one has no rows."""
    makers, clients = exchange.world["users"][:2], exchange.world["users"][4:]
    return [makers[0], clients[0], makers[1], "0x" + "e" * 40]


@pytest.fixture(scope="module")
def several(exchange, accounts):
    with wallet_explorer(accounts, period="7d", session=exchange) as result:
        yield result


def test_several_accounts_are_compared(several, accounts):
    view = several.set(user="all").view
    assert isinstance(view, ComparisonView)
    assert sorted(view.earned["user"]) == sorted(accounts[:3])
    assert view.earned["net"].is_monotonic_decreasing
    assert view.total["net"].tolist() == nearly([view.earned["net"].sum()])
    nets = view.earned.set_index("user")["net"]
    for user in accounts[:3]:
        (net,) = several.set(user=user).view.earned["net"]
        assert net == nearly(nets[user])
        assert view.hours.loc[view.hours["user"] == user, "net"].sum() == nearly(net)
    html = several.set(user="all")._repr_mimebundle_()["text/html"]
    assert "4 accounts in 7d" in html
    assert "1 account has no rows" in html
    assert html.count("<caption><span>By account") == 1


def test_chosen_account_makes_no_requests(exchange, several, accounts):
    several.set(user="all")
    before = exchange.counts.requests
    several.set(user=accounts[2])
    several.set(user="all")
    assert exchange.counts.requests == before


def test_compared_account_equals_single_view(exchange, several, accounts):
    several.set(user=accounts[1].upper().replace("0X", "0x"))
    with wallet_explorer(accounts[1], period="7d", session=exchange) as explorer:
        one, same = explorer.view, several.view
        for name in ("earned", "coins", "days", "hours", "fills", "positions", "equity"):
            pd.testing.assert_frame_equal(
                getattr(same, name), getattr(one, name), check_index_type=False
            )
        assert several.code == explorer.code
        assert one.earned["funding"].notna().all()
        for frame in ("fills", "ledger"):
            mine, own = (tk.provenance(getattr(view.account, frame)) for view in (same, one))
            assert (mine["parameters"], mine["rows"]) == (own["parameters"], own["rows"])


def test_failed_account_is_shown(exchange, accounts):
    request = ComparisonRequest(("0x<b>", *accounts[1:]), "7d")
    known = {
        user: lacking(fetch_account(user, "7d", exchange), states="no <positions>")
        for user in accounts[1:]
    }
    view = comparison_view(request, exchange, known)
    html = comparison_html(view)
    assert list(view.failed) == ["0x<b>"]
    assert sorted(view.earned["user"]) == sorted(accounts[1:3])
    assert "is missing: &#x27;0x&lt;b&gt;&#x27; is not an address" in html
    assert html.count("Positions and equity cannot be fetched: no &lt;positions&gt;") == 1
    labels = [label.rpartition(": ")[2] for label, _ in account_options(view)]
    assert (labels[1], labels[4]) == ("missing", "no rows")


def test_code_reproduces_comparison(default, several):
    cell: dict[str, object] = {}
    exec(several.set(user="all").code, cell)
    for name in ("earned", "total", "hours", "largest"):
        pd.testing.assert_frame_equal(cell[name], getattr(several.view, name))


def test_failed_account_is_named(exchange, accounts):
    with wallet_explorer(accounts[0], coin="BTC", day="2025-09-29", session=exchange) as explorer:
        opened = f"{accounts[0]!r}, period='30d', coin='BTC', day='2025-09-29'"
        assert repr(explorer) == f"tk.widgets.wallet_explorer({opened})"
        assert explorer.view.earned["coin"].tolist() == ["BTC"]
    users = [accounts[0], "0x<b>"]
    with wallet_explorer(users, period="7d", session=exchange) as explorer:
        assert explorer.view.earned["user"].tolist() == users[:1]
        assert "0x&lt;b&gt; is missing: " in explorer._repr_mimebundle_()["text/html"]
        with pytest.raises(ValueError, match="one of the accounts, or 'all'"):
            explorer.set(user=accounts[1])
        with pytest.raises(ValueError, match="choose one account"):
            explorer.set(user="all", coin="BTC")
        explorer.set(user="0x<b>")
        assert "0x<b>" in str(explorer.error)
    with wallet_explorer(["0x1", "0x2"], session=exchange) as explorer:
        assert explorer.view is None
        assert "0x1" in str(explorer.error)


def test_malformed_address_is_shown(explorer):
    user = explorer.request.user
    explorer.set(user="0x<b>")
    assert "0x&lt;b&gt;" in explorer._state.value
    assert explorer.view.request.user == user
    explorer.set(user=user)
    assert explorer.error is None


def test_only_local_source_has_default_account(exchange):
    with wallet_explorer(session=exchange) as explorer:
        assert explorer.request.user == exchange.world["users"][0]
    elsewhere = tk.connect("http://127.0.0.1:9", "a-secret", default=False)
    with elsewhere, pytest.raises(ValueError, match="pass an address"):
        wallet_explorer(session=elsewhere)
