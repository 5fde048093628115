"""Every number in the sentences of a report follows from its frames.

A report has its sentences in tables (`SENTENCES`, `HEADLINES`, `CHECKS`). For each sentence a
function in ``recomputed_<report>.py``, such as `sentence_cost`, recomputes its values. A sentence
without such a function fails here, and so does a sentence that no report below has.
"""

import re
from dataclasses import replace
from functools import partial
from importlib.resources import files
from string import Formatter
from types import ModuleType
from typing import NamedTuple

import pandas as pd
import pytest

import toolkit as tk
from tests.reports import (
    recomputed_builder,
    recomputed_comparison,
    recomputed_market,
    recomputed_performance,
    recomputed_positions,
    recomputed_quality,
    recomputed_reasons,
    recomputed_wallet,
)
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
from toolkit.reports.sentences import Headline, Paragraph, Sentence, fill_text
from toolkit.reports.wallet_frames import STATES
from toolkit.reports.wallet_performance import WalletPerformance
from toolkit.reports.wallet_report import WalletResults

pytestmark = pytest.mark.xdist_group("sentences")


class Report(NamedTuple):
    said: ModuleType
    recomputed: ModuleType

    def tables(self):
        """Yield each table's name, its texts, and the functions that recompute their values."""
        for name in ("SENTENCES", "HEADLINES", "CHECKS"):
            prefix = f"{name.lower().removesuffix('s')}_"
            again = {
                key.removeprefix(prefix): function
                for key, function in vars(self.recomputed).items()
                if key.startswith(prefix)
            }
            yield name, getattr(self.said, name, {}), again

    def table_of(self, one):
        """Return the table, the text and the recomputation of what is said."""
        for name, table, again in self.tables():
            if one.name in table and isinstance(one, Sentence) == (name == "SENTENCES"):
                return name, table[one.name], again[one.name]
        raise AssertionError(f"{one} is in no table")


REPORTS = {
    "builder": Report(builder_report, recomputed_builder),
    "comparison": Report(comparison_report, recomputed_comparison),
    "market": Report(market_report, recomputed_market),
    "performance": Report(wallet_performance, recomputed_performance),
    "positions": Report(market_positions, recomputed_positions),
    "quality": Report(quality_report, recomputed_quality),
    "reasons": Report(wallet_reasons, recomputed_reasons),
    "wallet": Report(wallet_text, recomputed_wallet),
}
MODULES = {
    "comparison": comparison_report,
    "performance": wallet_performance,
    "positions": market_positions,
    "reasons": wallet_reasons,
    "wallet": wallet_text,
}
"""Reports whose sentences are functions of a module, and not methods of the report."""
EVERY = pytest.mark.parametrize("report", REPORTS)
LACKING = {"depth": "it was not archived", "TWAP orders": "the key may not"}


@pytest.fixture(scope="module")
def variants(session, user):
    """Make reports that together say every sentence there is."""
    of_wallets = list(wallets(session, user))
    of_markets = list(markets(session))
    return {
        "builder": list(builders(session)),
        "comparison": list(comparisons(session)),
        "market": of_markets,
        "performance": [WalletPerformance(results) for results in of_wallets],
        "positions": [MarketPositions(market) for market in [*of_markets, *held(session)]],
        "quality": list(qualities(session)),
        "reasons": of_wallets,
        "wallet": of_wallets,
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


def held(session):
    """Return markets whose positions or margins are not all known."""
    gather = partial(market_report.fetch_report, session)
    btc, openai = gather("BTC"), gather("pre:OPENAI")
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
    results = wallet_report.fetch_results(session, user)
    result = results.frames
    half = result.fills["time"].iloc[len(result.fills) // 2]
    late = result.fills[result.fills["time"] > half]
    paid_late = result.funding[result.funding["time"] > half]
    yield results
    for changed in (
        {"funding": None, "missing_reasons": {"funding by 0xb": "it was not archived"}},
        {"funding": None, "states": None},
        {"funding": result.funding.iloc[5:]},
        {"funding": result.funding.iloc[:-5], "start_ms": 1},
        {"fills": late},
        {"fills": late, "funding": paid_late, "missing_reasons": {STATES: "it was not archived"}},
        {"fills": result.fills.iloc[:0], "states": None},
        {"fills": result.fills.iloc[:0], "funding": result.funding.iloc[:0], "states": None},
        {"states": None, "end_ms": result.end_ms - 1},
        {"fills": result.fills.assign(coin="flx:" + result.fills["coin"], fee_token="USDH")},
        {"ledger": with_unknown_amount(result.ledger, half)},
        {"fills": without(result.fills, "fee")},
        {"fills": without(result.fills, "closed_pnl")},
        {"fills": without(result.fills, "start_position")},
        {"fills": result.fills.head(1).assign(coin="@107", side="B", fee_token="HYPE")},
    ):
        yield WalletResults(replace(result, **changed))
    routed = builder_report.fetch_report(session, session.world["builders"][1])
    paid = routed.fills[routed.fills["builder_fee"] > 0]
    found = wallet_report.fetch_results(session, paid["user"].iloc[0])
    yield found
    latest = found.frames.latest
    some = latest["builder"].where(pd.Series(range(len(latest))) % 5 != 0)
    for builder in (some, some.replace(latest["builder"].dropna().iloc[0], None)):
        yield WalletResults(replace(found.frames, latest=latest.assign(builder=builder)))
    examples = session.world["examples"]
    for name in ("LIQUIDATED", "ISOLATED", "TRIMMED", "DELEVERAGED", "MARKET_MAKER"):
        yield wallet_report.fetch_results(session, examples[name], builders=[])
    sold = wallet_report.fetch_results(session, examples["SOLD"], builders=[]).frames
    method = sold.fills["liquidation_method"].copy()
    method[method.last_valid_index()] = "backstop"
    yield WalletResults(replace(sold, fills=sold.fills.assign(liquidation_method=method)))


def with_unknown_amount(ledger, time):
    """Return a ledger with one more row, a withdrawal from a vault without an amount."""
    row = ledger.iloc[[-1]].assign(time=time, type="vaultWithdraw", usdc=None)
    longer = pd.concat([ledger, row.astype(ledger.dtypes.to_dict())], ignore_index=True)
    longer.attrs = ledger.attrs
    return longer


def said_by(name, made):
    found = MODULES[name].list_sentences(made) if name in MODULES else made.sentences()
    return list(found)


@EVERY
def test_each_sentence_has_recomputation(report):
    for _, table, again in REPORTS[report].tables():
        assert set(table) == set(again)


@EVERY
def test_sentence_templates_have_no_numbers(report):
    """The level of intervals is the one number that a sentence writes itself."""
    for _, table, _ in REPORTS[report].tables():
        for text in table.values():
            for part in [text] if isinstance(text, str) else text:
                plain = re.sub(r"\{[^}]*\}", "", part.replace("95 %", ""))
                counts_as_0 = "counts it as 0" in part or "counts funding as 0" in part
                assert re.findall(r"\d", plain) == (["0"] if counts_as_0 else []), part


@EVERY
def test_notebooks_show_known_sentences(report, variants):
    """Whatever a report's notebook shows as words, tiles or checks is among its sentences."""
    result = variants[report][0]
    name = {
        "quality": "market_quality",
        "performance": "wallet",
        "reasons": "wallet",
        "positions": "market",
    }.get(report, report)
    source = (files("toolkit.reports") / "notebooks" / f"{name}.py").read_text("utf-8")
    calls = re.findall(r"blocks\.(?:words|tiles|checks)\((\w+)\.(\w+)\(", source)
    assert len(calls) == len(re.findall(r"blocks\.(?:words|tiles|checks)\(", source)) > 1
    modules = {key: module.__name__.split(".")[-1] for key, module in MODULES.items()}
    own = modules.get(report)
    shown = [
        function
        for module, function in calls
        if (module == own if own else module not in modules.values())
    ]
    assert shown
    known = [sentence.text for sentence in said_by(report, result)]
    for function in shown:
        module = MODULES.get(report)
        found = getattr(module, function)(result) if module else getattr(result, function)()
        parts = [found] if isinstance(found, Paragraph) else found
        for part in parts:
            said = part.sentences if isinstance(part, Paragraph) else [part]
            assert {each.text for each in said} <= set(known)


@EVERY
def test_sentences_match_frames(report, variants):
    unsaid = {(name, item) for name, table, _ in REPORTS[report].tables() for item in table}
    for result in variants[report]:
        for said in said_by(report, result):
            table, text, again = REPORTS[report].table_of(said)
            unsaid.discard((table, said.name))
            values = again(result)
            if isinstance(values, list):  # a sentence that a report says several times
                values = next(each for each in values if says(said, text, each))
            parts = (text,) if isinstance(text, str) else text
            places = {place for part in parts for _, place, _, _ in Formatter().parse(part)}
            assert set(values) == places - {None}, said
            read = (said.text,) if isinstance(said, Sentence) else tuple(said)
            assert tuple(fill_text(part, values) for part in parts) == read
            for place, value in values.items():
                assert_same(said.values[place], value, f"{said.name}: {place}")
    assert unsaid == set()


def says(said, text, values):
    return said.text == fill_text(text, values)


def assert_same(said, value, where):
    if isinstance(value, dict):
        assert said.keys() == value.keys(), where
        for name, item in value.items():
            assert_same(said[name], item, f"{where}, {name}")
    elif isinstance(value, str):
        assert said == value, where
    elif value is None or pd.isna(value):
        assert pd.isna(said), where
    else:
        assert float(said) == pytest.approx(float(value), rel=1e-12, abs=1e-12), where


def test_headlines_match_sentences(variants):
    """One share of a builder's users, one cost of a size: under one name, one number."""
    for result in variants["builder"]:
        shares = [sentence for sentence in said_by("builder", result) if sentence.name == "share"]
        line, tile = sorted(shares, key=lambda one: isinstance(one, Headline))
        assert tile.values["rate"] == line.values["rate"]
        assert tile.value in line.text
    for result in variants["market"]:
        said = {sentence.name: sentence.values for sentence in said_by("market", result)}
        assert said["buying"]["cost"] == said["cost"]["buy"]


def test_tables_match_sentences(variants):
    market = variants["market"][0]
    said = {sentence.name: sentence for sentence in said_by("market", market)}
    (row,) = [row for row in market.costs().rows if row[:2] == ["100,000", "buy"]]
    assert f"{row[3]} bps" == said["buying"].value
    quality = variants["quality"][0]
    rows = quality.table().rows
    ends = {sentence.name: sentence for sentence in said_by("quality", quality)}
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


def test_word_within_means_distance_from_mid(variants):
    """ "Within" is a distance from mid; a cost is so many bps or less."""
    words = [
        sentence.text for result in variants["market"] for sentence in said_by("market", result)
    ]
    words += [
        sentence.text for result in variants["quality"] for sentence in said_by("quality", result)
    ]
    assert not [word for word in words if "within 10 bps" in word]
    quality = variants["quality"][0]
    headings = [c.heading for t in (quality.table(), quality.book_table()) for c in t.columns]
    assert all("of mid" in heading for heading in headings if "within" in heading)
