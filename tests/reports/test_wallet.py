"""The wallet report: exact, honest about funding, self-contained, the same bytes again."""

import base64
import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

import toolkit as tk
from toolkit.reports.material import gather
from toolkit.reports.results import Results
from toolkit.reports.wallet_report import build, page_of
from toolkit.reports.wallet_words import headlines

CANARY = "canary-7f3a9c-never-shown"
HOSTILE = '<script>alert("x")</script>$\\frac$'
ADDRESS = re.compile(r"(?:https?:)?//\w")


@pytest.fixture(scope="module")
def session():
    return tk.local(seed=7, size="tiny", key=CANARY, default=False)


@pytest.fixture(scope="module")
def user(session):
    return tk.reports.example_account(session)


@pytest.fixture(scope="module")
def made(session, user):
    return build(user, session=session)


@pytest.fixture(scope="module")
def results(session, user):
    return Results(gather(session, user, 0, None, None))


class Page(HTMLParser):
    """What a browser would load, name or run."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.loaded += [found[name] or "" for name in ("src", "srcset", "data") if name in found]
        self.links += [found["href"] or ""] if "href" in found else []
        self.ids += [found["id"] or ""] if "id" in found else []
        self.images += [found] if tag == "img" else []
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]


def test_page_needs_nothing_else(made):
    page = Page(made.html)
    assert page.loaded
    assert all(one.startswith("data:image/svg+xml;base64,") for one in page.loaded)
    assert all(one.startswith("#") for one in page.links)
    assert not {"script", "link", "iframe", "object", "base"} & set(page.tags)
    assert not ADDRESS.search(made.html)
    assert not re.search(r"url\(|@import", made.html)


def test_figures_need_nothing_else(made):
    for uri in Page(made.html).loaded:
        svg = base64.b64decode(uri.partition(",")[2]).decode()
        assert "<script" not in svg
        assert not re.search(r"(?:href|src)=\"(?!#)", svg)
        assert not re.search(r"url\((?!#)", svg)
        assert not re.search(r"20\d\d-\d\d-\d\dT", svg)


def test_every_figure_has_words_and_a_dark_twin(made):
    page = Page(made.html)
    assert len(page.images) == 5
    assert all(len(image["alt"] or "") > 40 for image in page.images)
    assert all("Simulated data: yes." in (image["alt"] or "") for image in page.images)
    assert page.tags.count("source") == len(page.images)


def test_contents_lead_somewhere(made):
    page = Page(made.html)
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.links) == 9


def test_same_data_same_bytes(made, session, user):
    assert build(user, session=session).html == made.html


def test_same_bytes_in_another_process(made, user, tmp_path):
    out = tmp_path / "again.html"
    code = (
        "import toolkit as tk, sys\n"
        "session = tk.local(seed=7, size='tiny')\n"
        "tk.reports.wallet(sys.argv[1], out=sys.argv[2])\n"
    )
    subprocess.run([sys.executable, "-c", code, user, str(out)], check=True, timeout=120)
    assert out.read_bytes() == made.html.encode()


def test_key_is_never_shown(made, session):
    assert CANARY not in made.html
    assert CANARY not in repr(made)
    assert CANARY not in repr(session)


def test_words_of_the_server_are_escaped(session, user):
    material = gather(session, user, 0, None, None)
    evil = material.fills.copy()
    evil["coin"] = evil["coin"].where(evil["coin"] != evil["coin"].iloc[0], HOSTILE)
    evil["dir"] = HOSTILE
    evil.attrs = {"toolkit": {**material.fills.attrs["toolkit"], "complete": HOSTILE}}
    changed = replace(material, fills=evil, source=HOSTILE)
    html = page_of(Results(changed))
    assert "<script" not in html
    assert "&lt;script&gt;" in html


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


def test_without_builder_funding_is_not_covered(session, user):
    made = build(user, builders=[], session=session)
    shown = {line.label: line.value for line in made.headlines}
    assert shown["funding"] == "not covered"
    assert "net PnL, without funding" in shown
    assert "Funding is not covered." in made.html
    assert len(Page(made.html).images) == 3


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
    made = build(user, "2025-09-29", "2025-09-30", session=session)
    assert "2025-09-29 00:00 to 2025-09-30 00:00 UTC" in made.html
    assert "2025-10-01" not in made.html


def test_account_without_fills(session, user):
    first = tk.user_fills_by_time(user, 0, session=session)["time"].iloc[0]
    made = build(user, 0, first - pd.Timedelta("1ms"), session=session)
    assert "The account made no fills in this period." in made.html
    assert "There are none." in made.html


def test_an_account_of_which_nothing_is_known_has_no_report(session):
    with pytest.raises(ValueError, match="nothing is known of 0x00"):
        build("0x" + "00" * 20, session=session)


def test_market_maker_can_be_reported(session):
    account = session.world["examples"]["MARKET_MAKER"]
    assert build(account, session=session).html.endswith("</html>\n")


def test_malformed_address_is_refused(session):
    with pytest.raises(tk.BadRequest):
        build("0x123", session=session)


def test_writes_where_it_is_told(session, user, tmp_path):
    path = tk.reports.wallet(user, session=session, out=tmp_path / "new" / "w.html")
    assert isinstance(path, Path)
    assert b"\r" not in path.read_bytes()


def test_frames_are_left_alone(results):
    before = results.material.fills.copy(deep=True)
    results.largest_fills()
    results.attribution(by="coin")
    pd.testing.assert_frame_equal(results.material.fills, before)
