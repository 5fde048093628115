"""Our trades beside the service's own: on the simulated exchange, and row by row by hand."""

import pandas as pd
import pytest

import toolkit as tk

CAUSES = ["cause", "difference", "ours", "theirs"]


def at(*minutes):
    return pd.to_datetime([60_000 * minute for minute in minutes], unit="ms", utc=True)


def fills(**columns):
    """A long of 2 BTC in minutes 0 to 5, a short of 4 ETH in 10 to 70, and a buy of a token."""
    plain = {
        "coin": ["BTC", "BTC", "ETH", "ETH", "@1", "@1"],
        "px": [100.0, 110.0, 10.0, 11.0, 5.0, 7.0],
        "sz": [2.0, 2.0, 4.0, 4.0, 3.0, 3.0],
        "side": ["B", "A", "A", "B", "B", "A"],
        "start_position": [0.0, 2.0, 0.0, -4.0, 0.0, 3.0],
        "closed_pnl": [0.0, 20.0, 0.0, -4.0, 0.0, 6.0],
        "fee": [0.25, 0.5, 0.125, -0.5, 0.0, 0.0],
        "fee_token": "USDC",
        "dir": ["Open Long", "Close Long", "Open Short", "Close Short", "Buy", "Sell"],
        "time": at(0, 5, 10, 70, 80, 81),
        "tid": range(1, 7),
    }
    return pd.DataFrame(plain | columns)


def trades(**columns):
    plain = {
        "coin": ["BTC", "ETH"],
        "position_type": ["Long", "Short"],
        "gross_pnl": [20.0, -4.0],
        "fees": [0.75, -0.375],
        "funding_pnl": [0.0, 0.5],
        "net_pnl": [19.25, -3.125],
        "entry_px": [100.0, 10.0],
        "position_closed_size": [2.0, 4.0],
        "open_time": at(0, 10),
        "close_time": at(5, 70),
    }
    return pd.DataFrame(plain | columns)


FUNDING = pd.DataFrame({"coin": ["ETH"], "time": at(60), "usdc": [0.5]})


def causes(*frames, **options):
    made = tk.pnl.compare_with_service(*frames, **options)
    return {(row.coin, row.figure): row.cause for row in made.itertuples()}


def test_every_difference_of_simulated_accounts_has_its_cause():
    """Truncated entry prices, and markets that the service leaves out, are all that differs."""
    seen = set()
    with tk.local(seed=7, size="tiny", default=False) as session:
        for user in session.world["users"]:
            mine = tk.user_fills_by_time(user, 0, session=session)
            theirs = tk.user_completed_trades_by_time(user, 0, page_size=500, session=session)
            summary = tk.user_pnl_summary(user, session=session)
            paid = tk.user_funding(user, session=session)
            made = tk.pnl.compare_with_service(mine, paid, theirs, summary)
            assert len(made) >= 4 * len(theirs) + 5
            seen |= set(zip(made["figure"], made["cause"], strict=True))
            close = made["cause"] == "equal"
            assert made["difference"][close].abs().max() <= 0.01
            assert made["difference"].abs().max() < 1
    assert {cause for _, cause in seen} == {"equal", "rounding", "not_a_perp", "trades"}
    assert {figure for figure, cause in seen if cause == "rounding"} == {"gross", "net"}
    assert {figure for figure, cause in seen if cause == "trades"} == {"total_pnl"}


def test_equal_trades_are_equal():
    summary = pd.DataFrame({"total_pnl": [16.125], "total_fees": [0.375], "total_funding": [0.5],
                            "total_trades": [2], "win_rate": [0.5]})  # fmt: skip
    made = tk.pnl.compare_with_service(fills(), FUNDING, trades(), summary)
    assert made["cause"].tolist() == ["equal"] * 8 + ["not_a_perp"] * 4 + ["equal"] * 5
    eth = made[made["coin"] == "ETH"].set_index("figure")
    assert eth["ours"].to_dict() == {"gross": -4.0, "fees": 0.375, "funding": 0.5, "net": -3.125}
    assert eth["theirs"].tolist() == eth["ours"].tolist()
    assert eth["opened"].tolist() == [at(10)[0]] * 4
    assert made["ours"].tail(5).tolist() == [16.125, -0.375, 0.5, 2.0, 0.5]
    assert made.attrs["toolkit"]["helper"] == "pnl.compare_with_service"


@pytest.mark.parametrize(
    ("frames", "key", "cause"),
    [
        ((fills(), None, trades()), ("ETH", "funding"), "funding_not_given"),
        ((fills(), None, trades()), ("ETH", "net"), "funding_not_given"),
        ((fills(), None, trades()), ("BTC", "net"), "equal"),
        ((fills()[1:], FUNDING, trades()), ("BTC", "net"), "opened_before"),
        ((fills()[2:], FUNDING, trades()), ("BTC", "net"), "outside_fills"),
        ((fills().drop([2, 3]), FUNDING, trades()), ("ETH", "gross"), "only_theirs"),
        ((fills(), FUNDING, trades()[:1]), ("ETH", "fees"), "only_ours"),
        ((fills(), FUNDING, trades(gross_pnl=[20.0, -3.0])), ("ETH", "gross"), "unexplained"),
        ((fills(), FUNDING, trades(gross_pnl=[19.985, -4.0])), ("BTC", "gross"), "rounding"),
        ((fills(), FUNDING, trades(fees=[0.735, -0.375])), ("BTC", "fees"), "unexplained"),
        ((fills(), FUNDING, trades(net_pnl=[19.25, -2.125], fees=[0.75, -1.375])), ("ETH", "net"),
         "unexplained"),
        ((fills(dir=["Open Long", "Auto-Deleveraging", *["Open Short", "Close Short"] * 2]),
          FUNDING, trades(fees=[9.0, -0.375])), ("BTC", "fees"), "forced"),
    ],
)  # fmt: skip
def test_differences_have_causes(frames, key, cause):
    assert causes(*frames, account="0x" + "0" * 40)[key] == cause


def test_summary_follows_trades():
    """Their summary is the sum of their trades: the rows of the trades explain it, or nothing."""
    theirs = trades(fees=[9.0, -0.375], net_pnl=[11.0, -3.125])
    figures = {"total_funding": [0.5], "total_trades": [2], "win_rate": [0.5]}
    agrees = pd.DataFrame({"total_pnl": [7.875], "total_fees": [8.625], **figures})
    found = causes(fills(), FUNDING, theirs, agrees)
    assert found["", "total_pnl"] == found["", "total_fees"] == "trades"
    assert found["", "win_rate"] == found["", "total_trades"] == "equal"
    alone = causes(fills(), FUNDING, theirs, agrees.assign(total_pnl=99.0, win_rate=0.75))
    assert alone["", "total_pnl"] == alone["", "win_rate"] == "unexplained"


def test_accounts_are_compared_one_by_one():
    two = fills(user=["0x" + "1" * 40] * 3 + ["0x" + "2" * 40] * 3)
    with pytest.raises(ValueError, match="fills"):
        tk.pnl.compare_with_service(two, None, trades())
