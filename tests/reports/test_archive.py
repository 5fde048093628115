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


@pytest.fixture(scope="module", name="live")
def _live():
    return tk.local(seed=7, size="tiny", default=False)


@pytest.fixture(scope="module", name="kept")
def _kept(tmp_path_factory, live):
    """Archive an account's fills, ledger and perps, and nothing else."""
    kept, user = archive.open(tmp_path_factory.mktemp("kept")), live.world["users"][0]
    kept.refresh(tk.user_fills_by_time, user, 0, session=live)
    kept.refresh(tk.user_non_funding_ledger_updates, user, 0, session=live)
    for dex in ("", *live.world["dexes"]):
        kept.refresh(tk.meta, dex=dex, session=live)
    return kept


def offline(kept):
    return tk.local(archive=kept.tables.location, default=False)


def test_wallet_report_names_missing_data(kept, live):
    user, builder = live.world["users"][0], live.world["builders"][0]
    results = wallet_report.fetch_results(offline(kept), user, builders=[builder])
    result = results.frames
    assert (result.states, result.funding, len(result.slippage)) == (None, None, 0)
    assert set(result.missing_reasons) >= {"account value", f"funding by {builder}"}
    said = wallet_text.summarize_wallet(results)
    assert (
        "The source does not have these data, and the report leaves them out: funding by 0x" in said
    )
    assert f"the archive has no answer to batchClearinghouseStates ALL_DEXES {user}" in said
    assert "slippage of " in said
    assert said.count("refresh the archive with this operation") >= 3
    assert wallet_text.describe_value(results).startswith(
        "The value of the account is not known. The source"
    )
    assert "the source does not have it" in wallet_text.describe_coverage(results)
    whole = wallet_report.fetch_results(live, user, builders=[builder])
    assert "leaves them out" not in wallet_text.summarize_wallet(whole)


def test_report_without_frames_is_refused(kept, live):
    with pytest.raises(tk.Incomplete, match=r"userFillsByTime 0x.* the archive has no rows of it"):
        wallet_report.fetch_results(offline(kept), live.world["users"][1])
    with pytest.raises(tk.Incomplete, match="metaAndAssetCtxs hyperliquid: refresh the archive"):
        market_report.fetch_report(offline(kept), "BTC")
    with pytest.raises(tk.Incomplete, match=r"builderApprovedFillsByTime 0x.* no rows of it"):
        builder_report.fetch_report(offline(kept), live.world["builders"][0])


def test_market_reports_name_all_commands(kept):
    with pytest.raises(tk.Incomplete) as market:
        market_report.fetch_report(offline(kept), "BTC")
    with pytest.raises(tk.Incomplete) as quality:
        quality_report.fetch_report(offline(kept), "eqx", coins=["eqx:TSLA", "eqx:NVDA"])
    assert str(market.value).count("  toolkit archive refresh ") == 1 + len(AMOUNTS)
    assert " slippageHistory --amount 1000000 --coin BTC" in str(market.value)
    lines = str(quality.value).splitlines()
    assert lines[-5].endswith(" metaAndAssetCtxs --dex eqx")
    assert lines[-1].endswith(" --amount 1000000 --coin eqx:TSLA --coin eqx:NVDA")


def test_market_reports_name_missing_data(tmp_path, live):
    kept = archive.open(tmp_path)
    kept.refresh(tk.meta_and_asset_ctxs, session=live)
    for amount in AMOUNTS:
        kept.refresh(tk.slippage_history, "BTC", amount, 0, session=live)
    for amount in FOUR:
        kept.refresh(tk.slippage_history, "ETH", amount, 0, session=live)
    session = offline(kept)
    market = market_report.fetch_report(session, "BTC", "2d")
    assert (market.depth, market.running) == (None, None)
    assert "and the report leaves them out: its book (" in market.summary()
    assert "TWAP orders (perpTwapSnapshots is not served from an archive" in market.summary()
    quality = quality_report.fetch_report(session, start="2d", coins=["BTC", "ETH"])
    assert quality.depth is None
    assert "leaves them out: books (the archive has no answer to currentDepth" in quality.summary()
    with pytest.raises(tk.Incomplete, match="slippageHistory ETH 5000"):
        market_report.fetch_report(session, "ETH", "2d")


def test_market_report_shows_archived_positions(tmp_path, live):
    kept, users = archive.open(tmp_path), live.world["users"]
    for dex in ("", "eqx"):
        kept.refresh(tk.meta_and_asset_ctxs, dex=dex, session=live)
    for amount in AMOUNTS:
        for coin in ("BTC", "eqx:TSLA"):
            kept.refresh(tk.slippage_history, coin, amount, 0, session=live)
    without = MarketPositions(market_report.fetch_report(offline(kept), "BTC", "2d"))
    assert "the source names no accounts" in market_positions.describe_accounts(without)
    kept.refresh(tk.batch_clearinghouse_states, users[:9], session=live)
    kept.refresh(tk.user_fills_by_time, users[9], 0, session=live)
    held = MarketPositions(market_report.fetch_report(offline(kept), "BTC", "2d"))
    assert set(held.own["user"]) <= set(users[:9])
    assert "known position in BTC" in market_positions.describe_accounts(held)
    assert market_positions.list_liquidations(held).rows
    reason = held.market.missing_reasons["positions of all accounts"]
    assert f"toolkit archive refresh {tmp_path} batchClearinghouseStates --user 0x" in reason
    tesla = MarketPositions(market_report.fetch_report(offline(kept), "eqx:TSLA", "2d"))
    assert "batchClearinghouseStates --dex eqx --user" in tesla.frames.reason
    assert market_positions.describe_cascade(tesla) == ""
    assert market_positions.list_classes(tesla).rows == []
    named = market_report.fetch_report(offline(kept), "BTC", "2d", accounts=users[:2])
    assert set(named.accounts.states.accounts["user"]) == set(users[:2])


def test_example_account_is_found_in_archive(kept, live):
    assert tk.reports.example_account(session=offline(kept)) in live.world["users"]
