"""The wallet report: exact amounts, coverage of funding, and a self-contained page."""

from decimal import Decimal
from types import SimpleNamespace

import pandas as pd
import pytest

import toolkit as tk
from toolkit.plots import formats
from toolkit.reports import blocks, wallet_reasons, wallet_report, wallet_text
from toolkit.reports.report_frames import fetch_account
from toolkit.reports.sentences import join_sentences
from toolkit.reports.wallet_report import WalletResults
from toolkit.reports.wallet_tables import make_tables
from toolkit.reports.wallet_text import list_headlines

HOSTILE = '<script>alert("x")</script>$\\frac$'


@pytest.fixture(scope="module")
def results(session, user):
    return WalletResults(fetch_account(session, user, 0, None))


def summary(results):
    return join_sentences(wallet_text.list_summaries(results))


def html_of(block):
    """Return the HTML of a block, as a notebook shows it."""
    if hasattr(block, "_repr_mimebundle_"):
        return block._repr_mimebundle_()["text/html"]
    return block._repr_html_()


def test_text_of_service_is_escaped(session, user):
    account = fetch_account(session, user, 0, None)
    evil = account.fills.copy()
    evil["coin"] = evil["coin"].where(evil["coin"] != evil["coin"].iloc[0], HOSTILE)
    evil["dir"] = HOSTILE
    evil.attrs = {"toolkit": {**account.fills.attrs["toolkit"], "complete": HOSTILE}}
    results = WalletResults(
        account.assign(fills=evil, session=SimpleNamespace(label=HOSTILE, simulated=True))
    )
    frames = results.source_frames()
    shown = [results.title(), *make_tables(results).values()]
    shown += [wallet_report.draw_funding(results)]
    shown += [blocks.provenance(frames, {"user": HOSTILE}, HOSTILE, simulated=True)]
    html = "".join(map(html_of, shown))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 5


def test_totals_equal_decimal_sums(results, session, user):
    fills = tk.user_fills_by_time(user, 0, numbers="text", session=session)
    closed = sum(map(Decimal, fills["closed_pnl"]))
    fees = sum(map(Decimal, fills["fee"]))
    funding = sum(results.account.funding["usdc"])
    found = [results.total["closed_pnl"], results.fees, results.total["net"]]
    wanted = [float(each) for each in (closed, -fees, closed - fees + funding)]
    assert found == pytest.approx(wanted, abs=1e-6)
    assert results.residual == 0
    change = results.total["net"] + results.total["ledger"]
    assert results.total["equity_change"] == pytest.approx(change)
    assert results.coverage.held == results.coverage.agreeing > 0
    assert results.reconciliation["residual"] == 0


def test_example_account_search_is_cached(session, user):
    before = session.counts.requests
    assert tk.reports.example_account(session) == user
    assert session.counts.requests == before
    fresh = tk.local(seed=7, size="tiny", default=False)
    assert tk.reports.example_account(fresh) == user
    assert fresh.counts.requests > 1


def test_unknown_funding_is_not_counted_as_0(results):
    without = results.account.assign(funding=None, missing={"funding": "it was not archived"})
    unknown = WalletResults(without)
    shown = {line.label: line.value for line in list_headlines(unknown)}
    assert shown["funding"] == "not known"
    assert "net PnL, without funding" in shown
    assert wallet_text.describe_coverage(unknown).startswith("Funding is not covered")
    assert "funding (it was not archived)" in summary(unknown)
    assert html_of(wallet_report.draw_funding(unknown)) == ""
    unpaid = WalletResults(results.account.assign(funding=results.account.funding.iloc[:0]))
    assert {line.label: line.value for line in list_headlines(unpaid)}["funding"] == "not covered"


def test_missing_rows_are_counted(results):
    account = results.account
    fewer = WalletResults(account.assign(funding=account.funding.iloc[5:]))
    assert fewer.coverage.held - fewer.coverage.covered == 5
    assert {line.label: line.note for line in list_headlines(fewer)}["funding"].startswith("covers")
    missing = float(account.funding["usdc"].iloc[:5].sum())
    assert fewer.reconciliation["residual"] == pytest.approx(missing, rel=0, abs=1e-6)
    assert "funding" in wallet_text.describe_value(fewer)
    busiest = account.fills["coin"].mode()[0]
    second = account.fills.index[account.fills["coin"] == busiest][1]
    holed = WalletResults(account.assign(fills=account.fills.drop(second)))
    assert holed.audit["chain_break"].sum() == 1


def test_report_has_only_its_period(session, user):
    results = wallet_report.fetch_results(session, user, "2025-09-29", "2025-09-30")
    assert results.reconciliation is None
    assert "not known" in wallet_text.describe_value(results)
    assert "2025-09-29 00:00 to 2025-09-30 00:00 UTC" in html_of(results.title())
    assert results.account.fills["time"].max() < pd.Timestamp("2025-09-30T00:00:01Z")


def test_report_without_fills_says_so(results):
    few = {name: getattr(results.account, name).iloc[:0] for name in ("fills", "funding")}
    none = WalletResults(results.account.assign(**few))
    assert "The account made no fills in this period." in summary(none)
    assert "There are none." in "".join(map(html_of, make_tables(none).values()))
    assert none.plot_rows(None).empty
    assert none.plot_rows("hour").empty


FORCED = {
    "forced": "The account was liquidated",
    "backstop": "The backstop took over all",
    "market": "Orders in the book closed all",
    "both": "The backstop took {",
    "largest": "The liquidations happened",
    "most": "The largest order",
    "leverage": "At entry prices",
    "margin": "At the liquidation",
    "loss": "With its fees",
    "deleveraged": "Auto-deleveraging",
}


def told_of(account):
    """Return the values of each sentence about forced closes, by a name and in their order."""
    parts = summary(WalletResults(account)).parts
    return {
        name: values
        for template, values in parts
        for name, start in FORCED.items()
        if template.startswith(start)
    }


def test_summary_explains_liquidation(session):
    """The entry was 20 times the capital, and a move of 4.5 % took 20 times 4.5 % of it."""
    user = session.world["examples"]["LIQUIDATED"]
    results = wallet_report.fetch_results(session, user)
    told = told_of(results.account)
    assert [*told] == ["forced", "backstop", "most", "leverage", "margin", "loss"]
    moved = told["leverage"]["times"] * told["most"]["distance"]
    assert told["leverage"]["times"] == pytest.approx(20, abs=0.5)
    assert told["loss"]["lost"] == pytest.approx(moved, abs=0.02)  # fees are the rest
    first, second = wallet_text.list_summaries(results)
    assert first.startswith("The account was liquidated: 1 liquidation")
    assert second.startswith("The account closed ")
    trimmed = session.world["examples"]["TRIMMED"]
    results = wallet_report.fetch_results(session, trimmed)
    assert (results.account.fills["liquidated_user"] == trimmed).sum() > 1
    assert "1 liquidation, in 1 coin" in summary(results)  # of one order


def test_summary_of_two_liquidations_by_hand(session):
    """One order in the book is the largest; the vault took more, in two orders an hour later."""
    user = session.world["examples"]["LIQUIDATED"]
    account = wallet_report.fetch_results(session, user).account
    forced = account.fills[account.fills["liquidated_user"] == user].iloc[[0, 0, 0]]
    begin = forced["time"].iloc[0]
    fills = forced.assign(
        time=[begin, begin + pd.Timedelta("1h"), begin + pd.Timedelta("1h")],
        oid=[1, 2, 3], tid=[1, 2, 3], coin=["BTC", "ETH", "SOL"], px=[Decimal(100)] * 3,
        sz=[Decimal(10), Decimal(6), Decimal(6)], closed_pnl=[Decimal(-50)] * 3,
        liquidation_method=["market", "backstop", "backstop"],
    ).astype(dict(forced.dtypes))  # fmt: skip
    told = told_of(account.assign(fills=fills))
    assert told["both"]["backstop"] == pytest.approx(1_200 / 2_200)
    assert told["largest"]["moments"] == 2
    assert told["most"]["coin"] == "ETH"
    time = f"{begin + pd.Timedelta('1h'):%Y-%m-%d %H:%M}"
    assert told["most"]["at"] == told["largest"]["time"] == time


def test_missing_column_removes_sentences(session):
    user = session.world["examples"]["SOLD"]
    account = wallet_report.fetch_results(session, user).account
    told = set(told_of(account))
    lost = {}
    for column in ("start_position", "fee", "closed_pnl", "liquidation_method"):
        fills = account.fills.assign(
            **{column: account.fills[column].where(account.fills.index < 0)}
        )
        lost[column] = told - set(told_of(account.assign(fills=fills)))
    assert lost == {
        "start_position": {"leverage", "loss"},
        "fee": {"leverage", "loss"},
        "closed_pnl": {"most", "leverage", "margin", "loss", "market"},
        "liquidation_method": {"market"},
    }


def test_missing_rows_remove_sentences(session):
    user = session.world["examples"]["LIQUIDATED"]
    account = wallet_report.fetch_results(session, user).account
    assert "leverage" not in told_of(account.assign(start_ms=1))
    assert "loss" not in told_of(account.assign(ledger=account.ledger.iloc[:0]))
    unknown = account.ledger.assign(account_value=None)
    assert "margin" not in told_of(account.assign(ledger=unknown))
    twice = pd.concat([account.ledger, account.ledger.assign(hash="0x1")])
    assert "margin" not in told_of(account.assign(ledger=twice))


def test_deleveraging_is_no_liquidation(session):
    """It closes by force, but is no liquidation of the account (docs/live_service.md, 2)."""
    user = session.world["examples"]["DELEVERAGED"]
    assert [*told_of(wallet_report.fetch_results(session, user).account)] == ["deleveraged"]


def test_spread_gain_by_hand():
    """By hand: 2 of 3 bought at 100 are sold at 101; the sell of the next hour does not count."""
    times = pd.to_datetime(["2025-09-01T00:10", "2025-09-01T00:50", "2025-09-01T01:10"], utc=True)
    px, sz = ([Decimal(value) for value in values] for values in (("100", "101", "99"), "321"))
    fills = pd.DataFrame({"coin": "BTC", "side": list("BAA"), "time": times, "px": px, "sz": sz})
    assert wallet_reasons.match_within_hours(fills) == (200, 2)
    assert wallet_reasons.match_within_hours(fills.iloc[[0, 2]]) == (0, 0)
    for side in ("A", "B"):
        assert wallet_reasons.match_within_hours(fills[fills["side"] == side]) == (0, 0)
    assert wallet_reasons.match_within_hours(fills.assign(coin="@1")) == (0, 0)


def test_builder_fees_sum_to_total(session, results):
    rows = wallet_reasons.sum_builder_fees(results)
    assert sum(rows["fee"]) == results.total["builder_fee"] < 0
    assert set(rows["builder"]) <= set(session.world["builders"])
    shown = make_tables(results)["builders"].rows
    assert [row[0] for row in shown] == rows["builder"].tolist()
    account = results.account.assign(latest=None)
    (unnamed,) = make_tables(WalletResults(account))["builders"].rows
    assert unnamed[0].startswith("not named")


def test_days_without_funding_show_dash(results):
    """Of rows of the first day alone the other days know nothing, and it is not 0."""
    paid = results.account.funding
    first = paid["time"].dt.floor("D").min()
    kept = paid[paid["time"].dt.floor("D") == first]
    result = make_tables(WalletResults(results.account.assign(funding=kept)))["days"]
    place = [column.name for column in result.columns].index("funding")
    shown = [row[place] for row in result.rows]
    assert len(shown) > 1
    assert shown.count(formats.MISSING) == len(shown) - 1
