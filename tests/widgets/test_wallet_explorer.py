"""The wallet explorer: parts that add up, coins and days of it, the cell that reproduces it."""

import pandas as pd
import pytest

import toolkit as tk
from toolkit.errors import NotPermitted
from toolkit.widgets.asking import through
from toolkit.widgets.wallet_explorer import WalletExplorer, wallet_explorer
from toolkit.widgets.wallet_page import coin_options, day_options, page
from toolkit.widgets.wallet_view import WalletRequest, WalletView, wallet_view

from .asking import Canned, on_another_thread

CAUSES = ["closed_pnl", "trading_fee", "builder_fee", "deployer_fee", "rebate", "funding"]


@pytest.fixture(scope="module")
def user(exchange: tk.Session) -> str:
    return tk.reports.example_account(exchange)


@pytest.fixture(scope="module")
def builders(exchange: tk.Session) -> tuple[str, ...]:
    return tuple(exchange.world["builders"])


@pytest.fixture(scope="module")
def whole(exchange: tk.Session, user: str, builders: tuple[str, ...]) -> WalletView:
    request = WalletRequest(user, builders=builders)
    return wallet_view(request, through(exchange), exchange.now_ms())


@pytest.fixture
def explorer(exchange: tk.Session, user: str) -> WalletExplorer:
    with wallet_explorer(user, session=exchange) as made:
        yield made


def of(whole: WalletView, **chosen: str) -> WalletView:
    """Choose a coin or day of an account that was fetched; nothing is asked."""
    request = WalletRequest(whole.request.user, builders=whole.request.builders, **chosen)
    return wallet_view(request, Canned({}), whole.account.end_ms, whole.account)


def test_coins_and_days_add_up_to_the_whole_exactly(whole: WalletView):
    (net,) = whole.earned["net"]
    assert whole.coins["net"].sum() == net
    assert whole.days["net"].sum() == net
    assert whole.hours["net"].sum() == net
    assert sum(whole.earned[cause].iloc[0] for cause in CAUSES) == net


def test_days_of_a_coin_and_coins_of_a_day_add_up(whole: WalletView):
    for coin in whole.coins["coin"]:
        view = of(whole, coin=coin)
        assert view.days["net"].sum() == view.earned["net"].iloc[0]
        assert set(view.fills["coin"]) <= {coin}
    for day in whole.days["day"].dt.strftime("%Y-%m-%d"):
        view = of(whole, day=day)
        assert view.coins["net"].sum() == view.earned["net"].iloc[0]
        assert view.hours["net"].sum() == view.earned["net"].iloc[0]


def test_one_coin_on_one_day(whole: WalletView):
    fills = whole.account.fills
    coin, time = fills["coin"].iloc[0], fills["time"].iloc[0]
    view = of(whole, coin=coin, day=f"{time:%Y-%m-%d}")
    own = fills[(fills["coin"] == coin) & (fills["time"].dt.date == time.date())]
    pd.testing.assert_frame_equal(view.fills, own)
    assert view.earned["fills"].tolist() == [len(own)]
    assert view.earned["closed_pnl"].iloc[0] == own["closed_pnl"].sum()


def test_nothing_known_is_said_and_not_0(whole: WalletView):
    view = of(whole, coin="NOPE", day="2025-09-28")
    assert len(view.earned) == 0
    assert "Nothing is known of" in page(view)


def test_choices_say_what_each_brought(whole: WalletView):
    coins = coin_options(whole)
    assert coins[0] == ("all coins", None)
    sizes = [abs(float(whole.coins.set_index("coin")["net"][coin])) for _, coin in coins[1:]]
    assert sizes == sorted(sizes, reverse=True)
    days = [day for _, day in day_options(whole)[1:]]
    assert days == sorted(days, reverse=True)


def test_without_builders_funding_is_not_covered(exchange: tk.Session, user: str):
    view = wallet_view(WalletRequest(user, builders=()), through(exchange), exchange.now_ms())
    assert pd.isna(view.earned["funding"].iloc[0])
    assert "net, without funding" in page(view)


def test_builders_are_those_of_the_latest_fills_where_none_is_given(exchange: tk.Session):
    client = next(
        one
        for one in exchange.world["users"]
        if tk.user_fills(one, session=exchange)["builder"].notna().any()
    )
    view = wallet_view(WalletRequest(client), through(exchange), exchange.now_ms())
    routed = tk.user_fills(client, session=exchange)["builder"].dropna().unique()
    assert view.account.builders == tuple(sorted(routed))


def test_positions_that_cannot_be_had_leave_the_rest(exchange: tk.Session, user: str):
    asks = through(exchange)

    def fetch(function, *arguments, **named):
        if function is tk.batch_clearinghouse_states:
            raise NotPermitted("not this <key>")
        return asks(function, *arguments, **named)

    view = wallet_view(WalletRequest(user), fetch, exchange.now_ms())
    assert view.positions is None
    assert "Positions cannot be had: not this &lt;key&gt; (status 403)" in page(view)
    assert len(view.earned) == 1


@pytest.mark.parametrize("chosen", [[], ["day"], ["coin", "day"]], ids=", ".join)
def test_code_reproduces_the_view(default: tk.Session, user: str, chosen: list[str]):
    explorer = wallet_explorer(user, period="7d")
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


def test_drilling_down_asks_nothing_anew(exchange: tk.Session, explorer: WalletExplorer):
    before = exchange.counts.requests
    coin = explorer.view.coins["coin"].iloc[0]
    explorer._coin.value = coin
    assert explorer.settle(20)
    assert explorer.view.earned["coin"].tolist() == [coin]
    explorer.set(day="2025-09-29")
    assert explorer.view.request.day == "2025-09-29"
    assert exchange.counts.requests == before


def test_refresh_asks_anew(exchange: tk.Session, explorer: WalletExplorer):
    before = exchange.counts.requests
    explorer._refresh.click()
    assert explorer.settle(20)
    assert exchange.counts.requests > before


def test_another_account_begins_with_all_of_it(exchange: tk.Session, explorer: WalletExplorer):
    explorer.set(coin=explorer.view.coins["coin"].iloc[0], day="2025-09-29")
    other = next(u for u in exchange.world["users"] if u != explorer.request.user)
    explorer._user.value = f"  {other} "
    assert explorer.settle(20)
    assert explorer.view.request == WalletRequest(other, builders=explorer._builders)
    assert explorer._coin.options[0] == ("all coins", None)
    assert (explorer._coin.value, explorer._day.value) == (None, None)


def test_choices_from_another_thread_are_shown(explorer: WalletExplorer):
    coin = explorer.view.coins["coin"].iloc[-1]

    def choose():
        explorer._coin.value = coin
        return explorer.settle(20)

    assert on_another_thread(choose)
    assert explorer.view.request.coin == coin
    assert explorer._coin.value == coin


def test_a_malformed_address_is_said_in_words(explorer: WalletExplorer):
    user = explorer.request.user
    explorer.set(user="0x<b>")
    assert "0x&lt;b&gt;" in explorer._panel._state.value
    assert explorer.view.request.user == user
    explorer.set(user=user)
    assert explorer.error is None


def test_without_an_address_it_is_the_first_of_a_local_source(exchange: tk.Session):
    with wallet_explorer(session=exchange) as explorer:
        assert explorer.request.user == exchange.world["users"][0]
    elsewhere = tk.connect("http://127.0.0.1:9", "a-secret", default=False)
    with elsewhere, pytest.raises(ValueError, match="give an address"):
        wallet_explorer(session=elsewhere)


def test_repr_opens_it_again(exchange: tk.Session, user: str):
    with wallet_explorer(user, coin="SOL", day="2025-09-29", session=exchange) as explorer:
        opened = f"{user!r}, period='30d', coin='SOL', day='2025-09-29'"
        assert repr(explorer) == f"tk.widgets.wallet_explorer({opened})"
        assert explorer.view.request.coin == "SOL"
