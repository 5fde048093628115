"""A report of an archive names missing data, and does not show it as 0."""

import pytest

import toolkit as tk
from toolkit import archive
from toolkit.contract.requests import AMOUNTS
from toolkit.reports import (
    builder_report,
    market_positions,
    market_report,
    quality_report,
    wallet_report,
    wallet_text,
)
from toolkit.reports.market_positions import MarketPositions
from toolkit.reports.quality_report import AMOUNTS as FOUR


@pytest.fixture(scope="module")
def kept(tmp_path_factory, session):
    """Archive an account's fills, ledger and perps, and nothing else."""
    kept, user = archive.open(tmp_path_factory.mktemp("kept")), session.world["users"][0]
    kept.refresh(tk.user_fills_by_time, user, 0, session=session)
    kept.refresh(tk.user_non_funding_ledger_updates, user, 0, session=session)
    for dex in ("", *session.world["dexes"]):
        kept.refresh(tk.meta, dex=dex, session=session)
    return kept


def offline(kept):
    return tk.local(archive=kept.tables.location, default=False)


def test_wallet_report_names_missing_data(kept, session):
    user = session.world["users"][0]
    results = wallet_report.fetch_results(offline(kept), user)
    account = results.account
    assert (account.states, account.funding, account.samples) == (None, None, None)
    assert set(account.missing) >= {"states", "funding"}
    said = " ".join(wallet_text.list_summaries(results))
    for missing in ("funding (", f"batchClearinghouseStates ALL_DEXES {user}", "samples of "):
        assert missing in said
    assert said.count("refresh the archive with this operation") >= 3
    assert "not known" in wallet_text.describe_value(results)
    assert "the source does not have it" in wallet_text.describe_coverage(results)
    whole = wallet_report.fetch_results(session, user)
    assert "leaves them out" not in " ".join(wallet_text.list_summaries(whole))
    assert tk.reports.example_account(session=offline(kept)) in session.world["users"]


def test_report_without_frames_names_commands(kept, session):
    source, (user, *_) = offline(kept), session.world["users"][1:]
    for call, named in (
        (lambda: wallet_report.fetch_results(source, user), "userFillsByTime 0x"),
        (lambda: builder_report.BuilderReport(source, user), "builderApprovedFillsByTime 0x"),
    ):
        with pytest.raises(tk.Incomplete, match=named):
            call()
    with pytest.raises(tk.Incomplete, match="metaAndAssetCtxs") as market:
        market_report.MarketReport(source, "BTC")
    with pytest.raises(tk.Incomplete) as quality:
        quality_report.QualityReport(source, "eqx", coins=["eqx:TSLA", "eqx:NVDA"])
    assert str(market.value).count("  toolkit archive refresh ") == 1 + len(AMOUNTS)
    assert " slippageHistory --amount 1000000 --coin BTC" in str(market.value)
    lines = str(quality.value).splitlines()
    assert lines[-5].endswith(" metaAndAssetCtxs --dex eqx")
    assert lines[-1].endswith(" --amount 1000000 --coin eqx:TSLA --coin eqx:NVDA")


def test_market_reports_name_missing_data(tmp_path, session):
    kept = archive.open(tmp_path)
    kept.refresh(tk.meta_and_asset_ctxs, session=session)
    for amount in AMOUNTS:
        kept.refresh(tk.slippage_history, "BTC", amount, 0, session=session)
    for amount in FOUR:
        kept.refresh(tk.slippage_history, "ETH", amount, 0, session=session)
    source = offline(kept)
    market = market_report.MarketReport(source, "BTC", "2d")
    assert (market.depth, market.running) == (None, None)
    assert "and the report leaves them out: its book (" in market.summary()
    assert "TWAP orders (the archive has no answer to perpTwapSnapshots" in market.summary()
    quality = quality_report.QualityReport(source, start="2d", coins=["BTC", "ETH"])
    assert quality.depth is None
    assert "leaves them out: books (the archive has no answer to currentDepth" in quality.summary()
    with pytest.raises(tk.Incomplete, match="slippageHistory ETH 5000"):
        market_report.MarketReport(source, "ETH", "2d")


def test_market_report_shows_archived_positions(tmp_path, session):
    kept, users = archive.open(tmp_path), session.world["users"]
    for dex in ("", "eqx"):
        kept.refresh(tk.meta_and_asset_ctxs, dex=dex, session=session)
    for amount in AMOUNTS:
        for coin in ("BTC", "eqx:TSLA"):
            kept.refresh(tk.slippage_history, coin, amount, 0, session=session)
    without = MarketPositions(market_report.MarketReport(offline(kept), "BTC", "2d"))
    assert "the source names no accounts" in market_positions.describe_accounts(without)
    kept.refresh(tk.batch_clearinghouse_states, users[:9], session=session)
    kept.refresh(tk.user_fills_by_time, users[9], 0, session=session)
    held = MarketPositions(market_report.MarketReport(offline(kept), "BTC", "2d"))
    assert set(held.own["user"]) <= set(users[:9])
    assert "known position in BTC" in market_positions.describe_accounts(held)
    assert market_positions.list_liquidations(held).rows
    reason = held.market.missing_reasons["positions of all accounts"]
    assert f"toolkit archive refresh {tmp_path} batchClearinghouseStates --user 0x" in reason
    tesla = MarketPositions(market_report.MarketReport(offline(kept), "eqx:TSLA", "2d"))
    assert "batchClearinghouseStates --dex eqx --user" in tesla.frames.reason
    assert market_positions.describe_cascade(tesla) == ""
    assert market_positions.list_classes(tesla).rows == []
    named = market_report.MarketReport(offline(kept), "BTC", "2d", accounts=users[:2])
    assert set(named.accounts.states.accounts["user"]) == set(users[:2])
