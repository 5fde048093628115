"""Every number in the sentences of a report follows from its frames.

A report has its sentences in tables (`SENTENCES`, `HEADLINES`, `CHECKS`). The classes of
``recomputed_*.py`` compute the number of each place in them again. A place without such a number
fails here, and so does a sentence that no report below has.
"""

import re
from dataclasses import replace
from functools import partial
from importlib.resources import files
from string import Formatter

import pandas as pd
import pytest

import toolkit as tk
from tests.reports.recomputed_markets import (
    BuilderNumbers,
    MarketNumbers,
    PositionNumbers,
    QualityNumbers,
)
from tests.reports.recomputed_performance import ComparisonNumbers, PerformanceNumbers
from tests.reports.recomputed_wallet import WalletNumbers
from toolkit.errors import ReportFailed
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
from toolkit.reports.position_frames import PositionFrames
from toolkit.reports.sentences import Paragraph, Sentence, fill_text
from toolkit.reports.wallet_frames import STATES
from toolkit.reports.wallet_performance import WalletPerformance
from toolkit.reports.wallet_report import WalletResults

REPORTS = {
    "builder": (builder_report, BuilderNumbers),
    "comparison": (comparison_report, ComparisonNumbers),
    "market": (market_report, MarketNumbers),
    "performance": (wallet_performance, PerformanceNumbers),
    "positions": (market_positions, PositionNumbers),
    "quality": (quality_report, QualityNumbers),
    "reasons": (wallet_reasons, WalletNumbers),
    "wallet": (wallet_text, WalletNumbers),
}
NOTEBOOKS = {
    "quality": "market_quality",
    "performance": "wallet",
    "reasons": "wallet",
    "positions": "market",
}
TABLES = ("SENTENCES", "HEADLINES", "CHECKS")
EVERY = pytest.mark.parametrize("report", REPORTS)
LACKING = {"depth": "it was not archived", "TWAP orders": "the key may not"}


@pytest.fixture(scope="module")
def variants(session, user):
    """Make reports that together say every sentence there is."""
    of_wallets, of_markets = wallets(session, user), list(markets(session))
    curves = ("whole", "begins later", "unknown flow", "no fees", "sold")
    reasons = ("whole", "no fees", "routed", "some routed", "spot", "MARKET_MAKER")
    return {
        "builder": list(builders(session)),
        "comparison": list(comparisons(session)),
        "market": of_markets,
        "performance": [WalletPerformance(of_wallets[name]) for name in curves],
        "positions": list(map(MarketPositions, [*of_markets[:2], *held(of_markets)])),
        "quality": list(qualities(session)),
        "reasons": [of_wallets[name] for name in reasons],
        "wallet": of_wallets.values(),
    }


def builders(session):
    first, second = (
        builder_report.fetch_report(session, builder) for builder in session.world["builders"][:2]
    )
    yield first
    yield second
    yield replace(first, fills=without(first.fills, "user"))


def without(fills, column):
    """Return fills of which every seventh lacks a column."""
    kept = pd.Series(range(len(fills)), index=fills.index) % 7 != 0
    return fills.assign(**{column: fills[column].where(kept)})


def comparisons(session):
    first = comparison_report.fetch_comparison(session, session.world["users"][5:7])
    frames = [wallet.results.frames for wallet in first.wallets]
    yield first
    yield comparison_of([longer(each) for each in frames])
    yield comparison_of([replace(frames[0], fills=without(frames[0].fills, "fee")), frames[1]])
    yield comparison_of([replace(each, start_ms=1) for each in frames])
    winner, loser = (longer(each) for each in frames)
    gains = winner.fills.assign(closed_pnl=winner.fills["closed_pnl"].abs() + 1)
    losses = loser.fills.assign(closed_pnl=-loser.fills["closed_pnl"].abs() - 1)
    yield comparison_of([replace(winner, fills=gains), replace(loser, fills=losses)])
    yield comparison_of([replace(frames[0], fills=frames[0].fills.iloc[:0]), frames[1]])


def comparison_of(frames):
    return comparison_report.Comparison([WalletPerformance(WalletResults(each)) for each in frames])


def longer(frames):
    """Return the frames of a wallet as if its three days had been thirty."""
    end = pd.Timestamp(frames.end_ms, unit="ms", tz="UTC")
    stretched = {
        name: rows.assign(time=(end - (end - rows["time"]) * 10).astype(rows["time"].dtype))
        for name, rows in (("fills", frames.fills), ("ledger", frames.ledger))
    }
    return replace(frames, **stretched)


def markets(session):
    gather = partial(market_report.fetch_report, session)
    every = tk.perp_twap_snapshots("ALL:ALL_DEXES", session=session)
    running = every[~every["waiting"].astype(bool)]
    yield gather("BTC")
    yield gather(running["market"].iloc[0])
    thin, tesla = gather("FARTCOIN"), gather("eqx:TSLA")
    yield replace(thin, missing_reasons=LACKING, running=None)
    yield replace(tesla, running=running.iloc[:0])
    yield replace(tesla, limits=None)
    yield gather("pre:OPENAI")


def held(of_markets):
    """Return markets whose positions or margins are not all known."""
    btc, *_, openai = of_markets
    frames = openai.accounts
    yield replace(btc, accounts=PositionFrames(None, reason="the key may not read them"))
    few = frames.states.positions["coin"] != "pre:OPENAI"
    apart = frames.states._replace(positions=frames.states.positions[few])
    yield replace(openai, accounts=replace(frames, states=apart))
    yield replace(openai, accounts=replace(frames, values=None, markets=None, tiers=None))
    yield replace(openai, samples=openai.samples[openai.samples["amount_usd"] == 1e5])
    costs = {name: 50 * openai.samples[name] for name in ("buy_slippage_bps", "sell_slippage_bps")}
    yield replace(openai, samples=openai.samples.assign(**costs))


def qualities(session):
    two = quality_report.fetch_report(session, coins=["BTC", "FARTCOIN"])
    yield two
    yield replace(two, missing_reasons=LACKING, depth=None)
    yield quality_report.fetch_report(session, "eqx")


def wallets(session, user):
    whole = wallet_report.fetch_results(session, user)
    frames = whole.frames
    fills, funding = frames.fills, frames.funding
    half = fills["time"].iloc[len(fills) // 2]
    late, paid_late = fills[fills["time"] > half], funding[funding["time"] > half]
    no_answer = "it was not archived"
    changed = {
        "no funding": {"funding": None, "missing_reasons": {"funding by 0xb": no_answer}},
        "funding begins later": {"funding": funding.iloc[5:]},
        "begins later": {"funding": funding.iloc[:-5], "start_ms": 1},
        "late": {"fills": late, "funding": paid_late, "missing_reasons": {STATES: no_answer}},
        "no fills": {"fills": fills.iloc[:0], "states": None},
        "nothing": {"fills": fills.iloc[:0], "funding": funding.iloc[:0], "states": None},
        "USDH": {"fills": fills.assign(coin="flx:" + fills["coin"], fee_token="USDH")},
        "unknown flow": {"ledger": with_unknown_amount(frames.ledger, half)},
        "no fees": {"fills": without(fills, "fee")},
        "no closed PnL": {"fills": without(fills, "closed_pnl")},
        "no positions": {"fills": without(fills, "start_position")},
        "spot": {"fills": fills.head(1).assign(coin="@107", side="B", fee_token="HYPE")},
    }
    made = {name: replace(frames, **parts) for name, parts in changed.items()}
    routed = builder_report.fetch_report(session, session.world["builders"][1]).fills
    payer = routed.loc[routed["builder_fee"] > 0, "user"].iloc[0]
    made["routed"] = wallet_report.fetch_results(session, payer).frames
    latest = made["routed"].latest
    some = latest["builder"].where(pd.Series(range(len(latest))) % 5 != 0)
    made["some routed"] = replace(made["routed"], latest=latest.assign(builder=some))
    for name in ("LIQUIDATED", "ISOLATED", "TRIMMED", "MARKET_MAKER", "SOLD"):
        user = session.world["examples"][name]
        made[name] = wallet_report.fetch_results(session, user, builders=[]).frames
    sold = made["SOLD"].fills
    method = sold["liquidation_method"].copy()
    method[method.last_valid_index()] = "backstop"
    made["sold"] = replace(made.pop("SOLD"), fills=sold.assign(liquidation_method=method))
    return {"whole": whole} | {name: WalletResults(each) for name, each in made.items()}


def with_unknown_amount(ledger, time):
    """Return a ledger with one more row, a withdrawal from a vault without an amount."""
    row = ledger.iloc[[-1]].assign(time=time, type="vaultWithdraw", usdc=None)
    longer = pd.concat([ledger, row.astype(ledger.dtypes.to_dict())], ignore_index=True)
    longer.attrs = ledger.attrs
    return longer


def said_by(report, made):
    module, _ = REPORTS[report]
    return list(
        module.list_sentences(made) if hasattr(module, "list_sentences") else made.sentences()
    )


@EVERY
def test_notebooks_show_known_sentences(report, variants):
    """Whatever a report's notebook shows as words, tiles or checks is among its sentences."""
    made, (module, _) = next(iter(variants[report])), REPORTS[report]
    name = NOTEBOOKS.get(report, report)
    source = (files("toolkit.reports") / "notebooks" / f"{name}.py").read_text("utf-8")
    shown = re.findall(r"blocks\.(?:words|tiles|checks)\((\w+)\.(\w+)\(", source)
    assert len(shown) == len(re.findall(r"blocks\.(?:words|tiles|checks)\(", source)) > 1
    known = [said.text for said in said_by(report, made)]
    modules = [module.__name__.rpartition(".")[2] for module, _ in REPORTS.values()]
    for owner, function in shown:
        found = None
        if hasattr(module, "list_sentences") and owner == module.__name__.rpartition(".")[2]:
            found = getattr(module, function)(made)
        elif not hasattr(module, "list_sentences") and owner not in modules:
            found = getattr(made, function)()
        parts = [found] if isinstance(found, Paragraph) else found or []
        for part in parts:
            said = part.sentences if isinstance(part, Paragraph) else [part]
            assert {each.text for each in said} <= set(known)


@EVERY
def test_sentences_match_frames(report, variants):
    module, numbers_of = REPORTS[report]
    unsaid = {(name, said) for name in TABLES for said in getattr(module, name, ())}
    wrong = []
    for made in variants[report]:
        numbers = numbers_of(made)
        for said in said_by(report, made):
            names = ["SENTENCES"] if isinstance(said, Sentence) else ["HEADLINES", "CHECKS"]
            (name,) = [name for name in names if said.name in getattr(module, name, ())]
            unsaid.discard((name, said.name))
            texts = getattr(module, name)[said.name]
            texts = (texts,) if isinstance(texts, str) else texts
            assert [fill_text(text, said.values) for text in texts] == (
                [said.text] if isinstance(said, Sentence) else [*said]
            )
            is_true = getattr(numbers, "conditions", {}).get(said.name, lambda: True)
            wrong += [] if is_true() else [(said.name, "is not true")]
            places = {place for text in texts for _, place, _, _ in Formatter().parse(text)}
            wrong += list_differences(said, places - {None}, numbers)
    assert wrong == []
    assert unsaid == set()


def list_differences(said, places, numbers):
    """Return the places of a sentence whose value is not the number of the frames."""
    if said.name in getattr(numbers, "repeated", ()):
        is_known = any(is_same(said.values, each) for each in getattr(numbers, said.name))
        return [] if is_known else [(said.name, said.values)]
    found = []
    for place in places:
        own = f"{said.name}_{place}"
        number = getattr(numbers, own if hasattr(type(numbers), own) else place)
        if not is_same(said.values[place], number):
            found.append((said.name, place, said.values[place], number))
    return found


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


def test_tables_match_sentences(variants):
    market, quality = variants["market"][0], variants["quality"][0]
    said = {said.name: said for said in said_by("market", market)}
    (row,) = [row for row in market.costs().rows if row[:2] == ["100,000", "buy"]]
    assert f"{row[3]} bps" == said["buying"].value
    rows = quality.table().rows
    ends = {said.name: said for said in said_by("quality", quality)}
    assert rows[0][0] == ends["cheapest"].value
    assert f"costs {rows[0][3]} bps" in ends["cheapest"].note
    assert f"costs {rows[-1][3]} bps" in ends["dearest"].note
    headings = [column.heading for column in quality.table().columns]
    assert rows[0][headings.index("largest order to buy for 10 bps or less")].startswith(
        "> 1,000,000 USD (largest sampled)"
    )


def test_comparison_ignores_case_of_address(session):
    user = session.world["users"][5]
    with pytest.raises(ReportFailed, match="1 was passed"):
        comparison_report.fetch_comparison(session, [user, f"0x{user[2:].upper()}"])
