"""The pages of all reports, and the reports on markets, builders and market quality."""

import base64
import re

import pytest

import toolkit as tk
from tests.reports.page_content import PageContent
from tests.reports.pages import PARAMETERS, report_page
from toolkit.reports import builder_report, market_positions, market_report, quality_report
from toolkit.reports.market_positions import MarketPositions
from toolkit.rules.directions import CONVERSIONS

FIGURES = {"wallet": 8, "market": 7, "builder": 4, "market_quality": 1, "comparison": 2}
ADDRESS = re.compile(r"(?:https?:)?//\w")


@pytest.fixture(scope="module")
def market(session):
    return market_report.fetch_report(session, "BTC")


@pytest.fixture(scope="module")
def builder(session):
    return builder_report.fetch_report(session, session.world["examples"]["BUILDER"])


@pytest.fixture(scope="module")
def quality(session):
    return quality_report.fetch_report(session, coins=["BTC", "FARTCOIN"])


@pytest.mark.parametrize("name", PARAMETERS)
def test_page_is_self_contained(name):
    made = report_page(name)
    page = PageContent(made.html)
    assert len(page.images) == FIGURES[name] == page.tags.count("source")
    for image in page.images:
        assert len(image["alt"]) > 40
        assert "Simulated data: yes." in image["alt"]
    assert all(entry.startswith("data:image/svg+xml;base64,") for entry in page.loaded)
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert not {"script", "link", "iframe", "object", "base"} & set(page.tags)
    assert not ADDRESS.search(made.html)
    assert not re.search(r"url\(|@import", made.html)
    assert len(set(page.ids)) == len(page.ids)
    assert {link[0] for link in page.links} == {"#"}
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "Warning" not in made.html
    assert all(source["digest"] in made.html for source in made.facts["sources"])
    assert made.html.endswith("</html>\n")
    for uri in page.loaded:
        svg = base64.b64decode(uri.partition(",")[2]).decode()
        assert "<script" not in svg
        assert not re.search(r"(?:href|src)=\"(?!#|data:image/png)", svg)
        assert not re.search(r"url\((?!#)", svg)
        assert not re.search(r"20\d\d-\d\d-\d\dT", svg)


def test_parameters_name_example_account(user):
    assert PARAMETERS["wallet"] == {"user": user}


def test_market_costs_match_fit(market):
    cost = tk.slippage.cost(tk.slippage.fit(market.samples), 1e5, side="buy").iloc[0]
    assert market.headlines()[0].value == f"{cost['cost_bps']:.2f} bps"
    assert f"costs {cost['cost_bps']:.2f} bps" in market.summary()
    assert len(market.costs().rows) == 18  # nine sizes, two sides
    size = market.samples[market.samples["amount_usd"] == 1e5]
    assert cost["cost_bps"] == pytest.approx(size["buy_slippage_bps"].mean())


def test_market_counts_running_twaps(session):
    running = tk.perp_twap_snapshots(session.world["perp_coins"], session=session)
    coin, count = next(iter(running["market"].value_counts().items()))
    result = market_report.fetch_report(session, coin)
    assert len(result.orders().rows) == min(10, count)


def test_reports_without_data_are_refused(session):
    market, quality = market_report.fetch_report, quality_report.fetch_report
    for call, named in (
        (lambda: market(session, "BTX"), "no perp BTX on dex hyperliquid; .* BTC"),
        (lambda: quality(session, coins=["BTX"]), "BTX"),
        (lambda: market(session, "BTC", "2020-01-01", "2020-01-02"), "samples"),
        (lambda: builder_report.fetch_report(session, "0x" + "ab" * 20), "0xabab"),
    ):
        with pytest.raises(tk.ReportFailed, match=named):
            call()
    with pytest.warns(tk.HistoryWarning, match="nope"), pytest.raises(tk.ReportFailed):
        quality(session, "nope")


def test_report_states_limits_of_builder_dex(session):
    result = market_report.fetch_report(session, "eqx:TSLA")
    limits = tk.perp_dex_limits("eqx", session=session)
    cap = limits.coins.set_index("coin")["oi_cap"]["eqx:TSLA"]
    assert f"{cap:,.0f} USD" in result.describe_limits()
    assert set(result.depth["coin"]) == {"TSLA"}


def test_empty_margin_tables_need_no_remark(session):
    tables = tk.margin_tables(dex="pre", session=session)
    assert tables.empty
    positions = MarketPositions(market_report.fetch_report(session, "pre:OPENAI"))
    said = [sentence.name for sentence in market_positions.list_sentences(positions)]
    assert "shown" in said
    assert "single_tiers" not in said


def test_builder_revenue_sums_fees(builder):
    own = builder.fills[builder.fills["builder"] == builder.address]
    assert builder.total["revenue"] == pytest.approx(own["builder_fee"].sum())
    assert builder.total["volume"] == pytest.approx((own["px"] * own["sz"]).sum())
    weeks = builder.weeks()
    # Conversions of outcome tokens are no volume (docs/live_service.md, section 7).
    traded = builder.fills[~builder.fills["dir"].isin(CONVERSIONS)]
    assert len(traded) < len(builder.fills)
    assert weeks["volume"].sum() == pytest.approx((traded["px"] * traded["sz"]).sum())


def test_quality_ranks_by_cost(quality):
    assert quality.ranking["coin"].tolist() == ["BTC", "FARTCOIN"]
    assert quality.ranking["cost_bps"].is_monotonic_increasing
    assert "in BTC and" in quality.summary()
    assert "2 chosen" in quality.headlines()[0].label
    assert set(quality.books["coin"]) == {"BTC", "FARTCOIN"}
    known = quality.comparison["consistent"].dropna()
    assert len(known) > 0
    assert known.all()
