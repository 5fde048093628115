"""Reports of answers with missing fields: docs/live_service.md, section 1."""

import json
import warnings

import httpx
import pytest

from tests.fetch.wire import session_over
from toolkit import plots
from toolkit.contract.field_deviations import forget_deviations
from toolkit.plots.pnl import STEP_NAMES
from toolkit.reports import builder_report, wallet_report, wallet_text
from toolkit.reports.wallet_tables import make_tables


def altered(session, operation, field):
    """Return a session whose answers to an operation have null for a field in every 7th row."""

    def answer(request):
        given = session.client.post("/info", content=request.read())
        content = given.json()
        if json.loads(request.content)["type"] == operation:
            content = [
                row | ({field: None} if number % 7 == 0 else {})
                for number, row in enumerate(content)
            ]
        headers = {name: value for name, value in given.headers.items() if name.startswith("x-")}
        return httpx.Response(given.status_code, headers=headers, json=content)

    now = session.now_ms()
    return session_over(answer, "key", now_ms=lambda: now)


def missing_reasons(session, user, field):
    """Return the results of a wallet report whose fills lack a field here and there."""
    forget_deviations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = altered(session, "userFillsByTime", field)
        return wallet_report.fetch_results(source, user)


UNKNOWN = {
    "fee": {"net PnL", "fees", "Recomputed closed PnL, and breaks in the chain of positions"},
    "closedPnl": {
        "net PnL",
        "closed PnL",
        "Recomputed closed PnL, and breaks in the chain of positions",
    },
    "startPosition": {"Recomputed closed PnL, and breaks in the chain of positions"},
}


@pytest.mark.parametrize("field", UNKNOWN)
def test_amounts_without_fields_are_unknown(session, user, field):
    results = missing_reasons(session, user, field)
    fills = results.account.fills
    missing, rows = -(-len(fills) // 7), len(fills)
    said = [*wallet_text.list_headlines(results), *wallet_text.list_checks(results)]
    unknown = {headline.label: headline.note for headline in said if headline.value == "not known"}
    assert set(unknown) == UNKNOWN[field]
    assert all(str(missing) in note and str(rows) in note for note in unknown.values())
    summary = " ".join(wallet_text.list_summaries(results))
    funding = wallet_text.describe_coverage(results)
    remark = funding if field == "startPosition" else summary
    assert f"{missing} " in remark
    assert "not state" in remark
    assert ("Net PnL is" in summary) == (field == "startPosition")
    check_tables(results, field)


FEE_PARTS = {STEP_NAMES[name] for name in ("trading_fee", "builder_fee", "deployer_fee", "rebate")}


def check_tables(results, field):
    tables = make_tables(results)
    headings = [column.heading for column in tables["coins"].columns]
    total = dict(zip(headings, tables["coins"].total, strict=True))
    dashes = {
        "fee": {"trading fees", "net"},
        "closedPnl": {"closed PnL", "net"},
        "startPosition": set(),
    }
    assert {name for name, text in total.items() if text == "\N{EM DASH}"} >= dashes[field]
    assert (total["net"] == "\N{EM DASH}") == (field != "startPosition")
    assert bool(tables["parts"].total) == (field == "startPosition")
    if field == "fee":  # no part of an unknown fee is known
        assert not {row[0] for row in tables["parts"].rows} & FEE_PARTS
    for draw, by in ((plots.waterfall, None), (plots.cumulative_pnl, "hour")):
        rows = results.plot_rows(by)
        assert rows.empty == (field != "startPosition")
        draw(rows)


def test_fills_without_users_are_counted(session):
    forget_deviations()
    builder = session.world["builders"][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = altered(session, "builderApprovedFillsByTime", "user")
        result = builder_report.BuilderReport(source, builder)
    missing = int(result.fills["user"].isna().sum())
    assert missing > 0
    assert f"{missing:,} of {len(result.fills):,} do not name their user" in result.summary()
    assert result.values().rows
