"""The figures and tables of reports: their captions, rows, and what is left out without data."""

from dataclasses import replace

import pandas as pd
import pytest

from tests.reports.test_sentences import comparison_of, longer
from toolkit.errors import ReportFailed
from toolkit.plots import formats
from toolkit.plots.formats import short_address
from toolkit.reports import (
    builder_report,
    comparison_report,
    market_positions,
    market_report,
    quality_report,
    wallet_performance,
    wallet_report,
)
from toolkit.reports.comparison_report import Comparison
from toolkit.reports.market_positions import MarketPositions
from toolkit.reports.position_frames import PositionFrames
from toolkit.reports.wallet_performance import WalletPerformance
from toolkit.reports.wallet_report import WalletResults


@pytest.fixture(scope="module")
def performance(session, user):
    return WalletPerformance(wallet_report.fetch_results(session, user, builders=[]))


@pytest.fixture(scope="module")
def comparison(session):
    return comparison_report.fetch_comparison(session, session.world["users"][5:7])


@pytest.fixture(scope="module")
def market(session):
    return market_report.fetch_report(session, "BTC")


@pytest.fixture(scope="module")
def builder(session):
    return builder_report.fetch_report(session, session.world["builders"][0])


@pytest.fixture(scope="module")
def quality(session):
    return quality_report.fetch_report(session, coins=["BTC", "FARTCOIN"])


def captions(figures):
    return [block.caption for block in figures.blocks]


def test_comparison_lists_accounts_by_net(comparison):
    made = comparison_report.make_account_table(comparison)
    addresses = comparison_report.list_addresses(comparison)
    nets = comparison.rows["net"].tolist()
    assert nets == sorted(nets, reverse=True)
    users = [row[1] for row in addresses.rows]
    assert users == comparison.rows["user"].tolist()
    assert [row[0] for row in addresses.rows] == ["1", "2"]
    assert [row[0] for row in made.rows] == [short_address(user) for user in users]
    title = comparison_report.make_title(comparison)
    assert (title.subject, title.simulated) == ("2 accounts", True)
    assert set(comparison_report.source_frames(comparison)) == {
        f"{name} {number}" for name in ("fills", "ledger") for number in range(1, 3)
    }


def test_comparison_draws_known_returns(comparison):
    (growth,) = captions(comparison_report.draw_growth(comparison))
    drawn = comparison.returns["user"].nunique()
    assert growth.startswith(f"Time-weighted return of the {drawn} accounts")
    unknown = Comparison(
        [
            WalletPerformance(WalletResults(replace(wallet.results.frames, start_ms=1)))
            for wallet in comparison.wallets[:2]
        ]
    )
    assert captions(comparison_report.draw_growth(unknown)) == []
    assert captions(comparison_report.draw_ranks(unknown)) == []


def test_comparison_draws_ranks_of_month(comparison):
    """A month has enough days for a ranking and for skill; three days have not."""
    assert comparison.skill is None
    month = comparison_of([longer(wallet.results.frames) for wallet in comparison.wallets])
    ranks, skill = captions(comparison_report.draw_ranks(month))
    assert ranks.startswith("Sharpe ratio per year with an interval of 95 %.")
    assert skill.startswith("The same ratios after shrinkage")


def test_comparison_needs_two_accounts(session, user):
    with pytest.raises(ReportFailed, match="a comparison needs 2 to 50 accounts; 1 was passed"):
        comparison_report.fetch_comparison(session, [user, user.upper().replace("X", "x")])


def test_performance_draws_known_returns(performance):
    growth, calendar = captions(wallet_performance.draw_returns(performance))
    assert growth.startswith("Time-weighted return, from realised PnL and flows;")
    assert calendar == "Return of each day, UTC."
    unknown = WalletPerformance(WalletResults(replace(performance.results.frames, start_ms=1)))
    assert captions(wallet_performance.draw_returns(unknown)) == []


def test_performance_table_writes_units(performance):
    rows = {row[0]: row[1] for row in wallet_performance.make_figure_table(performance).rows}
    values = performance.figures.set_index("figure")["value"]
    assert rows["return, time-weighted"] == formats.true_minus(
        f"{100 * values['total_return']:.2f} %"
    )
    assert rows["volume / capital, per year"] == formats.true_minus(f"{values['turnover']:,.2f}")
    trips = wallet_performance.make_trip_table(performance)
    shown = len(trips.rows)
    assert 0 < shown <= len(performance.trips)
    assert trips.caption.startswith(f"The {shown} of {len(performance.trips)} complete round trips")


def test_trip_table_says_no_trips(performance):
    quiet = WalletPerformance(performance.results)
    quiet.trips = performance.trips.iloc[:0]
    made = wallet_performance.make_trip_table(quiet)
    assert (made.caption, len(made.rows)) == ("There is no complete round trip in this period.", 0)


def test_positions_of_accounts_are_drawn(market):
    made = MarketPositions(market)
    assert len(captions(market_positions.draw_positioning(made))) == 1
    assert any(
        "liquidation price" in text for text in captions(market_positions.draw_liquidations(made))
    )
    assert len(market_positions.list_liquidations(made).rows) == len(made.changes)
    classes = market_positions.list_classes(made)
    assert len(classes.rows) == len(made.classes) - 1
    assert classes.total[0] == "all"
    assert "over all dexes and tokens" in classes.caption


def test_unknown_positions_leave_no_figures(market):
    unread = PositionFrames(None, reason="the key may not read them")
    made = MarketPositions(replace(market, accounts=unread))
    assert captions(market_positions.draw_positioning(made)) == []
    assert captions(market_positions.draw_liquidations(made)) == []
    assert not market_positions.list_liquidations(made).rows
    assert not market_positions.list_classes(made).rows


def test_market_shows_its_sources(market):
    title = market.title()
    assert (title.kind, title.subject, title.simulated) == ("Market report", "BTC", True)
    assert market.frames()["slippage"] is market.samples
    assert len(market.heat) > 0
    assert set(market.book["coin"]) == {"BTC"}
    assert replace(market, depth=None).book.empty


def test_builder_lists_largest_users(builder):
    users, coins = builder.top("user"), builder.top("coin")
    routed = builder.fills[builder.fills["builder"] == builder.address]
    assert f"of {routed['user'].nunique()}." in users.caption
    assert f"of {routed['coin'].nunique()}." in coins.caption
    assert len(users.rows) <= 10
    assert len(builder.retention().rows) == int(builder.cohorts["complete"].sum())
    assert len(builder.ends().rows) > 0
    assert replace(builder, orders=builder.orders.iloc[:0]).ends().rows == []
    assert builder.activity["new"].sum() == routed["user"].nunique()
    assert len(builder.periods().rows) > 0
    assert builder.title().subject == builder.address
    assert builder.frames() == {"fills": builder.fills, "orders": builder.orders}


def test_quality_draws_cheapest_to_dearest(quality):
    assert set(quality.drawn_curves()["coin"]) == {"BTC", "FARTCOIN"}
    assert quality.title().subject == "native perps"
    assert quality.frames()["slippage"] is quality.samples
    without_depth = replace(quality, depth=None)
    assert without_depth.books.empty
    assert without_depth.comparison.empty
    assert pd.Series(quality.books["bid"]).is_monotonic_decreasing
