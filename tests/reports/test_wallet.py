"""The wallet report: exact, honest about funding, self-contained, the same bytes again."""

import base64
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import pandas as pd
import pytest

import toolkit as tk
from toolkit.reports import blocks, tables, wallet_report, wallet_words
from toolkit.reports.building import build
from toolkit.reports.material import gather
from toolkit.reports.results import Results
from toolkit.reports.source import source_of
from toolkit.reports.wallet_tables import tables_of
from toolkit.reports.wallet_words import headlines

from .looking import Looked

HOSTILE = '<script>alert("x")</script>$\\frac$'
ADDRESS = re.compile(r"(?:https?:)?//\w")


pytestmark = pytest.mark.xdist_group("wallet report")


@pytest.fixture(scope="module")
def made(session, user):
    return build("wallet", source_of(session), {"user": user})


@pytest.fixture(scope="module")
def results(session, user):
    return Results(gather(session, user, 0, None, None))


def html_of(block):
    """Give a block's HTML as a notebook would take it."""
    if hasattr(block, "_repr_mimebundle_"):
        return block._repr_mimebundle_()["text/html"]
    return block._repr_html_()


def test_page_needs_nothing_else(made):
    page = Looked(made.html)
    assert page.loaded
    assert all(one.startswith("data:image/svg+xml;base64,") for one in page.loaded)
    assert all(one.startswith("#") for one in page.links)
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert not {"script", "link", "iframe", "object", "base"} & set(page.tags)
    assert not ADDRESS.search(made.html)
    assert not re.search(r"url\(|@import", made.html)


def test_figures_need_nothing_else(made):
    for uri in Looked(made.html).loaded:
        svg = base64.b64decode(uri.partition(",")[2]).decode()
        assert "<script" not in svg
        assert not re.search(r"(?:href|src)=\"(?!#)", svg)
        assert not re.search(r"url\((?!#)", svg)
        assert not re.search(r"20\d\d-\d\d-\d\dT", svg)


def test_every_figure_has_words_and_a_dark_twin(made):
    page = Looked(made.html)
    assert len(page.images) == 5
    assert all(len(image["alt"] or "") > 40 for image in page.images)
    assert all("Simulated data: yes." in (image["alt"] or "") for image in page.images)
    assert page.tags.count("source") == len(page.images)


def test_contents_lead_somewhere(made):
    page = Looked(made.html)
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.links) == 10


def test_same_data_same_bytes(made, session, user):
    assert build("wallet", source_of(session), {"user": user}).html == made.html


def test_same_bytes_in_another_process(made, user, tmp_path):
    out = tmp_path / "again.html"
    code = (
        "import toolkit as tk, sys\n"
        "session = tk.local(seed=7, size='tiny')\n"
        "tk.reports.wallet(sys.argv[1], out=sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", code, user, str(out)], check=True, timeout=120)
    assert out.read_bytes() == made.html.encode()


def test_words_of_the_server_are_escaped(session, user):
    material = gather(session, user, 0, None, None)
    evil = material.fills.copy()
    evil["coin"] = evil["coin"].where(evil["coin"] != evil["coin"].iloc[0], HOSTILE)
    evil["dir"] = HOSTILE
    evil.attrs = {"toolkit": {**material.fills.attrs["toolkit"], "complete": HOSTILE}}
    results = Results(replace(material, fills=evil, source=HOSTILE))
    frames = wallet_report.frames_of(results)
    shown = [wallet_report.title_of(results), *tables_of(results).values()]
    shown += [wallet_report.funding_figures(results)]
    shown += [blocks.provenance(frames, {"user": HOSTILE}, HOSTILE, simulated=True)]
    html = "".join(map(html_of, shown))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 5


def test_headline_money_is_exact(results, session, user):
    fills = tk.user_fills_by_time(user, 0, numbers="text", session=session)
    closed = sum(map(Decimal, fills["closed_pnl"]))
    fees = sum(map(Decimal, fills["fee"]))
    funding = sum(results.material.funding["usdc"])
    assert results.whole["closed_pnl"] == closed
    assert results.fees == -fees
    assert results.whole["net"] == closed - fees + funding
    assert results.residual == 0


def test_account_value_adds_up_to_the_ledger_and_net(results):
    whole = results.whole
    assert whole["equity_change"] == whole["net"] + whole["ledger"]


def test_example_account_is_covered(results):
    found = results.coverage
    assert found.complete
    assert found.held == found.covered == found.agreeing > 0


def test_example_account_is_looked_for_once(session, user):
    before = session.counts.requests
    assert tk.reports.example_account(session) == user
    assert session.counts.requests == before
    fresh = tk.local(seed=7, size="tiny", default=False)
    assert tk.reports.example_account(fresh) == user
    assert fresh.counts.requests > 1


def test_without_builder_funding_is_not_covered(session, user):
    results = Results(gather(session, user, 0, None, []))
    shown = {line.label: line.value for line in headlines(results)}
    assert shown["funding"] == "not covered"
    assert "net PnL, without funding" in shown
    assert wallet_words.coverage(results).startswith("Funding is not covered.")
    assert html_of(wallet_report.funding_figures(results)) == ""


def test_builder_of_others_covers_nothing(session, user):
    stranger = "0x" + "ab" * 20
    found = Results(gather(session, user, 0, None, [stranger]))
    assert {line.label: line.value for line in headlines(found)}["funding"] == "not covered"


def test_missing_hours_of_funding_are_counted(results):
    material = results.material
    fewer = Results(replace(material, funding=material.funding.iloc[5:]))
    assert fewer.coverage.held - fewer.coverage.covered == 5
    assert not fewer.coverage.complete
    shown = {line.label: line.note for line in headlines(fewer)}
    assert shown["funding"].startswith("covers 9")


@pytest.mark.parametrize("kept", [0, 1])
def test_funding_is_never_zero_where_positions_are_not_known(results, kept):
    material = results.material
    opening = material.fills[material.fills["start_position"] != 0].iloc[:kept]
    few = replace(
        material,
        fills=opening,
        funding=material.funding.iloc[:0],
        end_ms=material.start_ms if kept else material.end_ms,
    )
    found = Results(few)
    assert found.coverage.carried == kept
    assert not kept or not found.coverage.complete
    assert {line.label: line.value for line in headlines(found)}["funding"] == "not covered"


def test_missing_fills_are_noticed(results):
    material = results.material
    busiest = material.fills["coin"].mode()[0]
    second = material.fills.index[material.fills["coin"] == busiest][1]
    holed = Results(replace(material, fills=material.fills.drop(second)))
    assert holed.audit["chain_break"].sum() == 1


def test_period_can_be_cut(session, user):
    results = wallet_report.results_of(session, user, "2025-09-29", "2025-09-30")
    assert "2025-09-29 00:00 to 2025-09-30 00:00 UTC" in html_of(wallet_report.title_of(results))
    assert results.material.fills["time"].max() < pd.Timestamp("2025-09-30T00:00:01Z")


def test_account_without_fills(session, user):
    first = tk.user_fills_by_time(user, 0, session=session)["time"].iloc[0]
    parameters = {"user": user, "end": str(first - pd.Timedelta("1ms"))}
    made = build("wallet", source_of(session), parameters)
    assert "The account made no fills in this period." in made.html
    assert "There are none." in made.html


def test_liquidations_are_named(results):
    assert "liquidated" not in wallet_words.summary(results)
    fills = results.material.fills.copy()
    closing = fills.index[fills["dir"].str.startswith("Close ")][:2]
    lost = sum(fills.loc[closing, "closed_pnl"])
    coins = fills.loc[closing, "coin"].nunique()
    fills.loc[closing, "dir"] = "Liquidated Cross Long"
    forced = Results(replace(results.material, fills=fills))
    words = f"2 of its fills, in {coins} {'coin' if coins == 1 else 'coins'}, "
    assert f"{words}closed {tables.signed_usd(lost)} USD" in wallet_words.summary(forced)


def test_deleveraging_is_named_apart(session):
    """It closes by force, but is no liquidation of the account (docs/live_service.md, 2)."""
    account = session.world["examples"]["DELEVERAGED"]
    forced = wallet_report.results_of(session, account)
    rows = forced.material.fills.query("dir == 'Auto-Deleveraging'")
    said = wallet_words.summary(forced)
    assert len(rows) > 1
    assert "liquidated" not in said
    closed = tables.signed_usd(sum(rows["closed_pnl"]))
    words = f"Auto-deleveraging closed positions of the account: {len(rows)} of its fills, "
    assert f"{words}in 1 coin, closed {closed} USD of that PnL." in said


def test_example_account_closed_positions_itself(results):
    words = results.material.fills["dir"]
    assert words.str.startswith("Close ").any()


def test_days_without_funding_rows_show_a_dash(results):
    """Of rows of the first day alone the other days know nothing, and it is not 0."""
    paid = results.material.funding
    first = paid["time"].dt.floor("D").min()
    kept = paid[paid["time"].dt.floor("D") == first]
    made = tables_of(Results(replace(results.material, funding=kept)))["days"]
    place = [column.name for column in made.columns].index("funding")
    shown = [row[place] for row in made.rows]
    assert len(shown) > 1
    assert shown.count(tables.MISSING) == len(shown) - 1


def test_an_account_of_which_nothing_is_known_has_no_report(session):
    with pytest.raises(tk.ReportFailed, match="nothing is known of 0x00"):
        wallet_report.results_of(session, "0x" + "00" * 20)


def test_market_maker_can_be_reported(session):
    account = session.world["examples"]["MARKET_MAKER"]
    made = build("wallet", source_of(session), {"user": account})
    assert made.html.endswith("</html>\n")
    assert made.facts["subject"] == account


def test_malformed_address_is_refused(session):
    with pytest.raises(tk.ReportFailed, match="0x123"):
        build("wallet", source_of(session), {"user": "0x123"})


def test_frames_are_left_alone(results):
    before = results.material.fills.copy(deep=True)
    results.largest_fills()
    results.attribution(by="coin")
    pd.testing.assert_frame_equal(results.material.fills, before)


def test_tables_explain_what_the_account_is_worth(results):
    assert results.reconciled["residual"] == 0
    assert "explain the value to the last digit" in wallet_words.worth(results)
    positions = results.material.states.positions
    assert [row[0] for row in tables_of(results)["open"].rows] == sorted(
        positions["coin"], key=lambda coin: -positions.set_index("coin")["position_value"][coin]
    )


def test_what_is_missing_leaves_a_residual_with_its_cause(results):
    material = results.material
    late = Results(replace(material, funding=material.funding.iloc[5:]))
    assert late.reconciled["residual"] == sum(material.funding["usdc"].iloc[:5])
    assert "funding" in wallet_words.worth(late)
    assert "Account value, less what its tables explain" in [
        name for name, _, _ in wallet_words.checks(late)
    ]


def test_a_period_that_ends_before_now_has_no_worth(session, user):
    past = wallet_report.results_of(session, user, 0, "2025-09-30")
    assert past.reconciled is None
    assert "not known" in wallet_words.worth(past)
