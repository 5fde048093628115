"""Each report says what its frames say: sentences, headlines, tables and figures.

The classes of ``recomputed.py`` compute the numbers of the headlines again, and a headline without
such a number fails here. So does a sentence that no report below has.
"""

import ast
import inspect
import re
from copy import copy
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.reports import recomputed
from toolkit import performance
from toolkit.plots import formats
from toolkit.plots.formats import short_address
from toolkit.reports import (
    builder_report,
    comparison_report,
    market_positions,
    market_report,
    quality_report,
    wallet_performance,
    wallet_reasons,
    wallet_report,
    wallet_text,
)
from toolkit.reports.market_positions import MarketPositions
from toolkit.reports.report_frames import PositionFrames
from toolkit.reports.sentences import Headline
from toolkit.reports.wallet_report import WalletResults
from toolkit.rules.directions import CONVERSIONS

REPORTS = {
    "builder": (recomputed.BuilderNumbers, builder_report, "summary", "headlines"),
    "comparison": (
        recomputed.ComparisonNumbers, comparison_report, "summarize_comparison", "list_headlines",
        "describe_ranks",
    ),
    "market": (
        recomputed.MarketNumbers, market_report, "headlines", "summary", "describe_twaps",
        "describe_limits",
    ),
    "performance": (recomputed.PerformanceNumbers, wallet_performance, "describe_performance"),
    "positions": (
        recomputed.PositionNumbers, market_positions, "describe_accounts", "describe_cascade",
        "describe_positioning",
    ),
    "quality": (
        recomputed.QualityNumbers, quality_report, "headlines", "summary", "describe_checks"
    ),
    "reasons": (recomputed.ReasonNumbers, wallet_reasons, "explain_result", "list_summaries"),
    "wallet": (
        recomputed.WalletNumbers, wallet_text, "list_headlines", "list_summaries",
        "describe_coverage", "describe_value", "list_checks",
    ),
}  # fmt: skip
LACKING = {"depth": "it was not archived", "TWAP orders": "the key may not"}


@pytest.fixture(scope="module")
def variants(session, user):
    """Make reports that together say every sentence there is."""
    of_wallets, of_markets = wallets(session, user), list(markets(session))
    curves = ("whole", "no capital", "unknown flow", "no fees", "sold")
    closed_by_force = ("LIQUIDATED", "ISOLATED", "TRIMMED", "sold", "late")
    reasons = (
        "whole",
        "no fees",
        "routed",
        "some routed",
        "spot",
        "MARKET_MAKER",
        *closed_by_force,
    )
    return {
        "builder": builders(session),
        "comparison": list(comparisons(session)),
        "market": of_markets,
        "performance": [of_wallets[name] for name in curves],
        "positions": list(map(MarketPositions, [*of_markets[:2], *held(of_markets)])),
        "quality": list(qualities(session)),
        "reasons": [of_wallets[name] for name in reasons],
        "wallet": of_wallets.values(),
    }


def changed(report, **parts):
    """Return a report with other frames, and without the results of the first ones."""
    cached = {
        name for name, each in vars(type(report)).items() if isinstance(each, cached_property)
    }
    made = copy(report)
    made.__dict__ = {
        name: each for name, each in vars(report).items() if name not in cached
    } | parts
    return made


def builders(session):
    first, second = (
        builder_report.BuilderReport(session, builder) for builder in session.world["builders"][:2]
    )
    return [first, second, changed(first, fills=without(first.fills, "user"))]


def without(fills, column):
    """Return fills of which every seventh lacks a column."""
    kept = pd.Series(range(len(fills)), index=fills.index) % 7 != 0
    return fills.assign(**{column: fills[column].where(kept)})


def comparisons(session):
    users = session.world["users"]
    first = comparison_report.fetch_comparison(session, [users[9], users[5]])
    frames = [wallet.account for wallet in first.wallets]
    yield first
    up = np.array([0.01, 0.01, 0.01, -0.002] * 10)
    yield ranked(frames, up, up)
    yield comparison_of([frames[0].assign(fills=without(frames[0].fills, "fee")), frames[1]])
    unknown = {"ledger": frames[0].ledger.iloc[:0], "states": None}
    unknown["missing"] = {"states": "it was not archived"}
    yield comparison_of([each.assign(**unknown) for each in frames])
    yield ranked(frames, up, -up)
    yield ranked(frames, [0.02, 0.018], -up, -up)
    yield comparison_of([frames[0].assign(fills=frames[0].fills.iloc[:0]), frames[1]])


def comparison_of(frames):
    return comparison_report.compare(frames)


def ranked(frames, *returns):
    """Return a comparison of accounts with given returns by day."""
    made = comparison_of(frames)
    parts = [
        pd.DataFrame({"user": user, "time": pd.date_range("2025-09-01", periods=len(each)),
                      "return_": each})
        for user, each in zip(("0xa", "0xb", "0xc"), returns, strict=False)
    ]  # fmt: skip
    made.__dict__["returns"] = pd.concat(parts, ignore_index=True)
    figures = performance.sheet(made.returns)
    made.__dict__["leaderboard"] = performance.leaderboard(figures)
    return made


def markets(session):
    gather = partial(market_report.MarketReport, session)
    every = tk.perp_twap_snapshots("ALL:ALL_DEXES", session=session)
    running = every[~every["waiting"].astype(bool)]
    yield gather("BTC")
    yield gather(running["market"].iloc[0])
    thin, tesla = gather("FARTCOIN"), gather("eqx:TSLA")
    yield changed(thin, missing_reasons=LACKING, running=None)
    yield changed(tesla, running=running.iloc[:0])
    yield changed(tesla, limits=None)
    yield gather("pre:OPENAI")


def held(of_markets):
    """Return markets whose positions or margins are not all known."""
    btc, *_, openai = of_markets
    frames = openai.accounts
    yield changed(btc, accounts=PositionFrames(None, reason="the key may not read them"))
    few = frames.states.positions["coin"] != "pre:OPENAI"
    apart = frames.states._replace(positions=frames.states.positions[few])
    yield changed(openai, accounts=replace(frames, states=apart))
    yield changed(openai, accounts=replace(frames, values=None, markets=None, tiers=None))
    yield changed(openai, samples=openai.samples[openai.samples["amount_usd"] == 1e5])
    costs = {name: 50 * openai.samples[name] for name in ("buy_slippage_bps", "sell_slippage_bps")}
    yield changed(openai, samples=openai.samples.assign(**costs))


def qualities(session):
    two = quality_report.QualityReport(session, coins=["BTC", "FARTCOIN"])
    yield two
    yield changed(two, missing_reasons=LACKING, depth=None)
    yield quality_report.QualityReport(session, "eqx")


def wallets(session, user):
    whole = wallet_report.fetch_results(session, user)
    account = whole.account
    fills, funding = account.fills, account.funding
    half = fills["time"].iloc[len(fills) // 2]
    late, paid_late = fills[fills["time"] > half], funding[funding["time"] > half]
    no_answer = "it was not archived"
    changed = {
        "no funding": {"funding": None, "missing": {"funding": no_answer}},
        "funding begins later": {"funding": funding.iloc[5:]},
        "begins later": {"funding": funding.iloc[:-5], "start_ms": 1},
        "no capital": {"ledger": account.ledger.iloc[:0], "states": None},
        "late": {
            "fills": late,
            "funding": paid_late,
            "states": None,
            "missing": {"states": no_answer, "fills": no_answer},
        },
        "unpaid": {"funding": funding.iloc[:0]},
        "unpaid, no positions": {
            "fills": without(fills, "start_position"),
            "funding": funding.iloc[:0],
        },
        "no fills": {"fills": fills.iloc[:0], "states": None},
        "nothing": {"fills": fills.iloc[:0], "funding": funding.iloc[:0], "states": None},
        "USDH": {"fills": fills.assign(coin="flx:" + fills["coin"], fee_token="USDH")},
        "unknown flow": {"ledger": with_unknown_amount(account.ledger, half)},
        "no fees": {"fills": without(fills, "fee")},
        "no closed PnL": {"fills": without(fills, "closed_pnl")},
        "no positions": {"fills": without(fills, "start_position")},
        "spot": {"fills": fills.head(1).assign(coin="@107", side="B", fee_token="HYPE")},
    }
    made = {name: account.assign(**parts) for name, parts in changed.items()}
    routed = builder_report.BuilderReport(session, session.world["builders"][1]).fills
    payer = routed.loc[routed["builder_fee"] > 0, "user"].iloc[0]
    made["routed"] = wallet_report.fetch_results(session, payer).account
    latest = made["routed"].latest
    some = latest["builder"].where(pd.Series(range(len(latest))) % 5 != 0)
    made["some routed"] = made["routed"].assign(latest=latest.assign(builder=some))
    for name in ("LIQUIDATED", "ISOLATED", "TRIMMED", "MARKET_MAKER", "SOLD", "UNIFIED"):
        user = session.world["examples"][name]
        made[name] = wallet_report.fetch_results(session, user).account
    sold = made["SOLD"].fills
    method = sold["liquidation_method"].copy()
    method[method.last_valid_index()] = "backstop"
    made["sold"] = made.pop("SOLD").assign(fills=sold.assign(liquidation_method=method))
    return {"whole": whole} | {name: WalletResults(each) for name, each in made.items()}


def with_unknown_amount(ledger, time):
    """Return a ledger with one more row, a withdrawal from a vault without an amount."""
    row = ledger.iloc[[-1]].assign(time=time, type="vaultWithdraw", usdc=None)
    longer = pd.concat([ledger, row.astype(ledger.dtypes.to_dict())], ignore_index=True)
    longer.attrs = ledger.attrs
    return longer


def said_by(report, made):
    """Yield the templates and the values of each headline and each sentence of a report."""
    _, module, *names = REPORTS[report]
    for name in names:
        places = (module, type(made), wallet_text)
        told = getattr(next(place for place in places if hasattr(place, name)), name)(made)
        for each in told if isinstance(told, list) else [told]:
            if isinstance(each, Headline):
                yield each.templates, each.values
            else:
                yield from (((template,), values) for template, values in each.parts)


PLACE = re.compile(r"{(\w+)(?::[^}]*)?}")


def written_in(module):
    """Return the texts in the code that are sentences, or have a place for a value."""
    tree, found = ast.parse(inspect.getsource(module)), set()
    for node in ast.walk(tree):
        is_text = isinstance(node, (ast.Assign, ast.AugAssign)) and "text" in ast.unparse(node)[:5]
        is_said = isinstance(node, ast.Call) and ast.unparse(node.func) in ("say", "tell")
        texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
        texts = [
            text
            for text in texts
            if isinstance(text, str) and " " in text.replace("%Y-%m-%d %H", "")
        ]
        found |= {text for text in texts if PLACE.search(text) or is_text or is_said}
    return found


@pytest.mark.parametrize("report", REPORTS)
def test_sentences_match_frames(report, variants):
    numbers_of, module, *_ = REPORTS[report]
    said, wrong = set(), []
    for made in variants[report]:
        numbers = numbers_of(made)
        for templates, values in said_by(report, made):
            said |= {*templates}
            wrong += [
                (start, "is not true")
                for start, is_true in getattr(numbers, "conditions", {}).items()
                if any(template.startswith(start) for template in templates) and not is_true()
            ]
            for place in {place for template in templates for place in PLACE.findall(template)}:
                is_known = hasattr(type(numbers), place) or place in vars(numbers)
                # Every number of a headline is computed again.
                number = (
                    getattr(numbers, place) if is_known or len(templates) > 1 else values[place]
                )
                if not is_same(values[place], number):
                    wrong.append((templates, place, values[place], number))
    unsaid = [text for text in written_in(module) if not any(text in template for template in said)]
    assert (wrong, unsaid) == ([], [])


def is_same(value, number):
    if isinstance(number, dict):
        return value.keys() == number.keys() and all(
            is_same(value[name], number[name]) for name in number
        )
    if isinstance(number, str):
        return value == number
    if number is None or pd.isna(number):
        return pd.isna(value)
    return float(value) == pytest.approx(float(number), rel=1e-9, abs=1e-6)


def count_figures(drawn):
    return drawn.html.count("<figure>")


def test_unknown_data_leave_no_figures(variants):
    """A month has enough days for a ranking and for skill; three days have not."""
    three_days, month, _, unknown, *_ = variants["comparison"]
    whole, no_capital, *_ = variants["performance"]
    market, _, unread, *_ = variants["positions"]
    calls = [
        (comparison_report.draw_growth, three_days, 1),
        (comparison_report.draw_ranks, month, 2),
        (comparison_report.draw_growth, unknown, 0),
        (comparison_report.draw_ranks, unknown, 0),
        (wallet_performance.draw_returns, whole, 2),
        (wallet_performance.draw_returns, no_capital, 0),
        (market_positions.draw_positioning, market, 1),
        (market_positions.draw_positioning, unread, 0),
        (market_positions.draw_liquidations, unread, 0),
    ]
    drawn = [(draw.__name__, count_figures(draw(made))) for draw, made, _ in calls]
    assert drawn == [(draw.__name__, count) for draw, _, count in calls]
    assert three_days.skill is None
    assert count_figures(market_positions.draw_liquidations(market))
    assert not market_positions.list_liquidations(unread).rows
    assert not market_positions.list_classes(unread).rows


def test_comparison_lists_accounts_by_gain(variants):
    comparison = variants["comparison"][0]
    gains, users = comparison.rows["gain"].tolist(), comparison.rows["user"].tolist()
    assert gains == sorted(gains, reverse=True)
    addresses = comparison_report.list_addresses(comparison)
    assert [row[:2] for row in addresses.rows] == [["1", users[0]], ["2", users[1]]]
    made = comparison_report.make_account_table(comparison)
    assert [row[0] for row in made.rows] == [short_address(user) for user in users]
    assert set(comparison_report.source_frames(comparison)) == {
        f"{name} {number}" for name in ("fills", "ledger", "funding") for number in range(1, 3)
    }


def test_performance_tables_write_units(variants):
    wallet = variants["performance"][0]
    rows = {row[0]: row[1] for row in wallet_performance.make_figure_table(wallet).rows}
    values = wallet.figures.set_index("figure")["value"]
    assert rows["return, time-weighted"] == formats.true_minus(
        f"{100 * values['total_return']:.2f} %"
    )
    assert rows["volume / capital, per year"] == formats.true_minus(f"{values['turnover']:,.2f}")
    trips = wallet_performance.make_trip_table(wallet)
    assert 0 < len(trips.rows) <= len(wallet.trips)
    assert trips.caption.startswith(f"The {len(trips.rows)} of {len(wallet.trips)} complete")
    quiet = WalletResults(wallet.account)
    quiet.trips = wallet.trips.iloc[:0]
    assert wallet_performance.make_trip_table(quiet).rows == []


def test_market_tables_match_headlines(variants):
    market, positions = variants["market"][0], variants["positions"][0]
    buying, *_ = market.headlines()
    (row,) = [row for row in market.costs().rows if row[:2] == ["100,000", "buy"]]
    assert f"{row[3]} bps" == buying.value
    assert len(market.costs().rows) == 18  # nine sizes, two sides
    assert market.frames()["slippage"] is market.samples
    assert len(market.heat) > 0
    assert set(market.book["coin"]) == {"BTC"}
    assert changed(market, depth=None).book.empty
    assert len(market_positions.list_liquidations(positions).rows) == len(positions.changes)
    classes = market_positions.list_classes(positions)
    assert len(classes.rows) == len(positions.classes) - 1
    assert classes.total[0] == "all"
    # The dex of OpenAI has no margin tables, so none is missing.
    said = market_positions.describe_accounts(MarketPositions(variants["market"][-1]))
    assert "a known position in pre:OPENAI" in said
    assert "margin tables" not in said


def test_market_counts_running_twaps_and_limits(session):
    running = tk.perp_twap_snapshots(session.world["perp_coins"], session=session)
    coin, count = next(iter(running["market"].value_counts().items()))
    result = market_report.MarketReport(session, coin)
    assert len(result.orders().rows) == min(10, count)
    result = market_report.MarketReport(session, "eqx:TSLA")
    limits = tk.perp_dex_limits("eqx", session=session)
    cap = limits.coins.set_index("coin")["oi_cap"]["eqx:TSLA"]
    assert f"{cap:,.0f} USD" in result.describe_limits()
    assert set(result.depth["coin"]) == {"TSLA"}


def test_builder_tables_sum_to_totals(variants):
    builder = variants["builder"][0]
    routed = builder.fills[builder.fills["builder"] == builder.address]
    users = builder.top("user")
    assert f"of {routed['user'].nunique()}." in users.caption
    assert len(users.rows) <= 10
    assert len(builder.retention().rows) == int(builder.cohorts["complete"].sum())
    assert len(builder.ends().rows) > 0
    assert changed(builder, orders=builder.orders.iloc[:0]).ends().rows == []
    assert builder.activity["new"].sum() == routed["user"].nunique()
    assert len(builder.periods().rows) > 0
    # Conversions of outcome tokens are no volume (docs/live_service.md, section 7).
    traded = builder.fills[~builder.fills["dir"].isin(CONVERSIONS)]
    assert len(traded) < len(builder.fills)
    volume = (traded["px"] * traded["sz"]).sum()
    assert builder.weeks()["volume"].sum() == pytest.approx(volume)


def test_quality_ranks_by_cost(variants):
    quality = variants["quality"][0]
    assert quality.ranking["coin"].tolist() == ["BTC", "FARTCOIN"]
    assert quality.ranking["cost_bps"].is_monotonic_increasing
    cheapest, dearest, _ = quality.headlines()
    rows, headings = quality.table().rows, [each.heading for each in quality.table().columns]
    assert rows[0][0] == cheapest.value
    assert f"costs {rows[0][3]} bps" in cheapest.note
    assert f"costs {rows[-1][3]} bps" in dearest.note
    capacity = rows[0][headings.index("largest order to buy for 10 bps or less")]
    assert capacity.startswith("> 1,000,000 USD (largest sampled)")
    assert set(quality.books["coin"]) == set(quality.drawn_curves()["coin"]) == {"BTC", "FARTCOIN"}
    assert quality.books["bid"].is_monotonic_decreasing
    assert quality.comparison["consistent"].dropna().all()
    without_depth = changed(quality, depth=None)
    assert without_depth.books.empty
    assert without_depth.comparison.empty


def test_reports_without_data_are_refused(session):
    market, quality = market_report.MarketReport, quality_report.QualityReport
    user = session.world["users"][5]
    same = [user, f"0x{user[2:].upper()}"]
    for call, named in (
        (lambda: market(session, "BTX"), "no perp BTX on dex hyperliquid; .* BTC"),
        (lambda: quality(session, coins=["BTX"]), "BTX"),
        (lambda: market(session, "BTC", "2020-01-01", "2020-01-02"), "samples"),
        (lambda: builder_report.BuilderReport(session, "0x" + "ab" * 20), "0xabab"),
        (lambda: comparison_report.fetch_comparison(session, same), "1 was passed"),
        (lambda: wallet_report.fetch_results(session, "0x" + "00" * 20), "0x00"),
    ):
        with pytest.raises(tk.ReportFailed, match=named):
            call()
    with pytest.warns(tk.HistoryWarning, match="nope"), pytest.raises(tk.ReportFailed):
        quality(session, "nope")
