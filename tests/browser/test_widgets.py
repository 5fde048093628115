"""The widgets in JupyterLab: keyboard and mouse, a busy kernel, both themes."""

import re
from typing import Any

import nbformat.v4 as nb
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import toolkit as tk

from .conftest import open_page
from .lab import BEGIN_CODE, CLOSE, SAVE, THEME, errors, run_code
from .service import CANARY

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SOON = 60_000  # ms; other tests may use the processors


@pytest.fixture(scope="module")
def user():
    with tk.local(seed=7, size="tiny", default=False) as exchange:
        return tk.reports.example_account(exchange)


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret") / "key"
    path.write_text(CANARY)
    return path


@pytest.fixture(scope="module", params=[True], ids=["subshells"])
def subshells(request):
    """Whether the kernel has subshells; some tests ask for a kernel without them, too."""
    return request.param


BOTH = pytest.mark.parametrize(
    "subshells", [True, False], ids=["subshells", "no subshells"], indirect=True
)


@pytest.fixture(scope="module")
def page(browser, lab, service, user, secret, subshells):
    """A notebook with all widgets, after its run."""
    cells = [
        "from pathlib import Path\nimport toolkit as tk\nfrom toolkit.client import open_session\n"
        f"url, now = {service.url!r}, {service.now_ms}  # the present of what is simulated\n"
        f"key = Path({str(secret)!r}).read_text()\n"
        "session = open_session(url, key, now_ms=lambda: now, default=True)\ndel key\nsession",
        'explorer = tk.widgets.slippage_explorer("BTC", period="3d")\nexplorer',
        f'wallet = tk.widgets.wallet_explorer({user!r}, period="7d")\nwallet',
        'monitor = tk.widgets.live_monitor("SOL", every="1s")\nmonitor',
    ]
    name = f"widgets_{'with' if subshells else 'without'}_subshells.ipynb"
    notebook = nb.new_notebook(cells=[nb.new_code_cell(source) for source in cells])
    (lab.root / name).write_text(nb.writes(notebook))
    with open_page(browser, lab) as page:
        try:
            assert errors(lab.run_all(page, name, subshells)) == []
            yield page
        finally:
            page.evaluate(CLOSE)


@pytest.fixture
def slippage(page):
    return output(page, 1)


@pytest.fixture
def wallet(page):
    return output(page, 2)


@pytest.fixture
def monitor(page):
    return output(page, 3)


def output(page, cell):
    return page.locator(".jp-Notebook .jp-Cell").nth(cell).locator(".jp-OutputArea-output")


def state(page, expression):
    return run_code(page, expression).strip()


def test_explorer_works_by_keyboard(page, slippage):
    slippage.get_by_label("Coin").focus()
    page.keyboard.press("e")
    expect(slippage.get_by_text("Buying 10k USD of ETH at once")).to_be_visible(timeout=SOON)
    page.keyboard.press("Tab")
    expect(slippage.get_by_label("Size, USD")).to_be_focused()
    page.keyboard.press(
        "ArrowDown"
    )  # not a shortcut of JupyterLab, which ignores keys inside controls
    expect(slippage.get_by_text("Buying 30k USD of ETH at once")).to_be_visible(timeout=SOON)
    page.keyboard.press("Tab")
    page.keyboard.press("s")
    expect(slippage.get_by_text("Buying")).to_have_count(0, timeout=SOON)
    expect(slippage.get_by_role("img", name="ETH, sell: median slippage")).to_be_visible()
    expect(slippage.get_by_label("Side")).to_be_focused()
    asked = "tk.widgets.slippage_explorer('ETH', 30_000, side='sell', period='3d')"
    assert state(page, "explorer") == asked


def test_code_opens_by_keyboard(page, slippage):
    slippage.get_by_text("Code of this view").focus()
    page.keyboard.press("Enter")
    code = slippage.locator("pre")
    expect(code).to_be_visible()
    assert code.inner_text() == state(page, "print(explorer.code)")
    assert state(page, f"exec({code.inner_text()!r}); curve.equals(explorer.view.curve)") == "True"


def test_wallet_works_by_mouse(page, wallet):
    assert state(page, "explorer.settle(20) and wallet.settle(20)") == "True"
    coins, days = wallet.get_by_label("Coin", exact=True), wallet.get_by_label("Day", exact=True)
    expect(wallet.get_by_role("img", name="Waterfall of PnL")).to_be_visible()
    coins.get_by_role("option").nth(1).click()
    coin = coins.get_by_role("option").nth(1).inner_text().rpartition(":")[0]
    expect(wallet.get_by_text(f", {coin}, in 7d: net")).to_be_visible(timeout=SOON)
    marked = wallet.locator("tr[aria-current]")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text(coin)
    option = days.get_by_role("option").nth(1)
    day = option.inner_text().partition(":")[0]
    option.click()
    expect(wallet.get_by_text(f", {coin}, on {day}: net")).to_be_visible(timeout=SOON)
    assert state(page, "wallet.view.earned['day'].dt.strftime('%F').tolist()") == f"['{day}']"


def test_numbers_are_aligned_right(wallet):
    """Text is on the left and numbers are on the right, against JupyterLab's own style."""
    coins = wallet.get_by_role("table", name="By coin")
    aligned = "cell => getComputedStyle(cell).textAlign"
    assert coins.locator("tbody th").first.evaluate(aligned) == "left"
    assert coins.locator("tbody td").first.evaluate(aligned) == "right"


def test_wallet_works_by_keyboard(page, wallet):
    wallet.get_by_label("Day", exact=True).focus()
    page.keyboard.press("Home")
    expect(wallet.get_by_text(", in 7d: net")).to_be_visible(timeout=SOON)
    wallet.get_by_label("Coin", exact=True).focus()
    page.keyboard.press("Home")
    expect(wallet.locator("tr[aria-current]")).to_have_count(0, timeout=SOON)
    expect(wallet.get_by_label("Coin", exact=True)).to_be_focused()
    assert state(page, "wallet.request.coin, wallet.request.day") == "(None, None)"


def test_typed_address_is_checked(page, wallet, user):
    address = wallet.get_by_label("Address")
    address.fill("0xnot-an-address")
    page.keyboard.press("Enter")
    failure = wallet.get_by_role("alert")
    expect(failure).to_contain_text("0xnot-an-address", timeout=SOON)
    address.fill(user)
    page.keyboard.press("Enter")
    expect(failure).to_have_count(0, timeout=SOON)
    expect(wallet.get_by_text("By coin")).to_be_visible()


@BOTH
def test_monitor_works_beside_busy_cell(page, monitor, lab, subshells):
    done = lab.root / "done"
    done.unlink(missing_ok=True)
    switch = monitor.get_by_role("button")
    expect(switch).to_have_text("Start")
    expect(monitor.get_by_text("Stopped; last good answer: never.")).to_be_visible()
    wait = f"for _ in range(3_000):\n  if Path({str(done)!r}).exists(): break\n"
    busy = f"import time\n{wait}  time.sleep(0.02)"
    if subshells:  # start, while the kernel is busy
        for shown in ("Stop", "Start"):  # JupyterLab requests a subshell with its first message
            switch.click()
            expect(switch).to_have_text(shown, timeout=SOON)
        page.evaluate(BEGIN_CODE, busy)
        switch.click()
    else:  # without subshells, messages wait for the kernel
        switch.click()
        expect(switch).to_have_text("Stop", timeout=SOON)
        page.evaluate(BEGIN_CODE, busy)
    expect(monitor.get_by_text("Updates every 1s; last good answer:")).to_be_visible(timeout=SOON)
    caption = monitor.get_by_text(re.compile("Depth of SOL, "))
    before = caption.inner_text()
    expect(caption).not_to_have_text(before, timeout=SOON)
    if not subshells:
        done.touch()
    switch.focus()
    page.keyboard.press("Enter")
    expect(switch).to_have_text("Start", timeout=SOON)
    expect(switch).to_be_focused()
    assert done.exists() != subshells  # with subshells, the kernel is still busy
    done.touch()
    assert state(page, "monitor.running") == "False"


@BOTH
def test_service_interruption_is_shown(page, monitor, service, slippage):
    switch, failure = monitor.get_by_role("button"), monitor.get_by_role("alert")
    switch.click()
    expect(monitor.get_by_text("Updates every 1s")).to_be_visible(timeout=SOON)
    expect(failure).to_have_count(0, timeout=SOON)
    service.stop()
    try:
        expect(failure).to_contain_text("No depth since", timeout=SOON)
        expect(failure).to_contain_text("no answer from")
        expect(monitor.get_by_text("Depth of SOL")).to_be_visible()  # the last values remain
    finally:
        service.start()
    expect(failure).to_have_count(0, timeout=SOON)
    switch.click()
    expect(switch).to_have_text("Start", timeout=SOON)


def violations(page):
    """Return the serious violations of the accessibility rules in our output."""
    drawn = {"include": [[".tk-view"], [".jp-OutputArea-output .jupyter-widgets"]]}
    found: list[dict[str, Any]] = Axe().run(page, context=drawn).response["violations"]
    return [
        f"{item['id']}: {node['html'][:160]} {node['failureSummary']}"
        for item in found
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"]
    ]


def test_widgets_are_accessible(page):
    for theme, is_light in (("JupyterLab Light", "true"), ("JupyterLab Dark", "false")):
        page.evaluate(THEME, theme)
        body = page.locator("body")
        expect(body).to_have_attribute("data-jp-theme-light", is_light, timeout=SOON)
        assert violations(page) == []


def test_key_is_never_shown(page, lab, secret):
    said = [
        run_code(page, "session, repr(session), vars(session)"),
        run_code(page, "session._repr_html_() if hasattr(session, '_repr_html_') else ''"),
        run_code(page, "tk.user_fills('0xnot-an-address')"),
        run_code(page, "tk.provenance(tk.meta())"),
        run_code(page, "tk.connect(session.base_url, 'wrong', default=False).ask"),
        run_code(page, "explorer._repr_mimebundle_(), wallet.code, monitor.code"),
    ]
    page.evaluate(SAVE)
    saved = [path.read_text() for path in lab.root.glob("*.ipynb")]
    shown = [page.content(), page.locator("body").inner_text()]
    assert "0xnot-an-address" in said[2]
    for text in (*said, *saved, *shown, *lab.log):
        assert CANARY not in text
