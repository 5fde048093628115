"""The reports on markets, builders and market quality match the helpers."""

import pytest

import toolkit as tk
from tests.reports.page_content import PageContent
from toolkit.reports import builder_report, market_positions, market_report, quality_report
from toolkit.reports.build import build
from toolkit.reports.market_positions import MarketPositions
from toolkit.reports.source_expressions import session_source
from toolkit.rules.directions import CONVERSIONS


@pytest.fixture(scope="module")
def market(session):
    return market_report.fetch_report(session, "BTC")


@pytest.fixture(scope="module")
def builder(session):
    return builder_report.fetch_report(session, session.world["examples"]["BUILDER"])


@pytest.fixture(scope="module")
def quality(session):
    return quality_report.fetch_report(session, coins=["BTC", "FARTCOIN"])


@pytest.mark.parametrize(
    ("name", "parameters", "figures"),
    [
        ("market", {"coin": "eqx:TSLA"}, 5),
        ("market", {"coin": "pre:OPENAI"}, 7),
        ("builder", {}, 4),
        ("market_quality", {"dex": "eqx"}, 1),
        ("comparison", {}, 2),
    ],
)
def test_page_is_self_contained(name, parameters, figures, session):
    result = build(name, session_source(session), parameters)
    page = PageContent(result.html)
    assert len(page.images) == figures
    assert all("Simulated data: yes." in (image["alt"] or "") for image in page.images)
    assert all(entry.startswith("data:image/svg+xml;base64,") for entry in page.loaded)
    assert not [
        attribute
        for attribute in page.attributes
        if attribute.startswith("on") or attribute == "style"
    ]
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert "Warning" not in result.html
    assert all(source["digest"] in result.html for source in result.facts["sources"])


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


def test_unknown_market_is_refused(session):
    with pytest.raises(tk.ReportFailed, match=r"no perp BTX on dex hyperliquid; choose one of BTC"):
        market_report.fetch_report(session, "BTX")
    with pytest.raises(tk.ReportFailed, match=r"no perp BTX on dex hyperliquid"):
        quality_report.fetch_report(session, coins=["BTX"])
    with (
        pytest.warns(tk.HistoryWarning, match="there is no dex 'nope'"),
        pytest.raises(tk.ReportFailed, match=r"dex \w+ has no perps: check its name"),
    ):
        quality_report.fetch_report(session, "nope")


def test_market_without_samples_is_refused(session):
    with pytest.raises(tk.ReportFailed, match="no slippage samples"):
        market_report.fetch_report(session, "BTC", "2020-01-01", "2020-01-02")


def test_report_states_limits_of_builder_dex(session):
    result = market_report.fetch_report(session, "eqx:TSLA")
    limits = tk.perp_dex_limits("eqx", session=session)
    cap = limits.coins.set_index("coin")["oi_cap"]["eqx:TSLA"]
    assert (
        f"Open interest of this market may be at most {cap:,.0f} USD." in result.describe_limits()
    )
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


def test_builder_without_fills_is_refused(session):
    with pytest.raises(tk.ReportFailed, match="there are no fills through 0xabab"):
        builder_report.fetch_report(session, "0x" + "ab" * 20)


def test_quality_ranks_by_cost(quality):
    assert quality.ranking["coin"].tolist() == ["BTC", "FARTCOIN"]
    assert quality.ranking["cost_bps"].is_monotonic_increasing
    assert "in BTC and" in quality.summary()
    assert [tile.label for tile in quality.headlines()][:2] == [
        "cheapest of the 2 chosen",
        "most expensive of the 2 chosen",
    ]
    assert set(quality.books["coin"]) == {"BTC", "FARTCOIN"}


def test_samples_agree_with_books(quality):
    known = quality.comparison["consistent"].dropna()
    assert len(known) > 0
    assert known.all()
