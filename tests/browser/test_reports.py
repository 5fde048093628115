"""Reports in Chromium without network: complete, without errors, and accessible."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.reports.pages import PARAMETERS, report_page
from toolkit.reports.build import print_pdf, write_page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of each kind of the tiny exchange."""
    folder = tmp_path_factory.mktemp("reports")
    return {
        kind: write_page(report_page(kind).html, folder / f"{kind}.html") for kind in PARAMETERS
    }


@pytest.fixture
def opened(browser):
    """A page that loads only files, and the errors that it reported."""
    complaints: list[str] = []

    def block_remote(route):
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            complaints.append(f"asked for {route.request.url}")
            route.abort()

    context = browser.new_context(viewport={"width": 1100, "height": 900})
    context.route("**/*", block_remote)
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page, complaints
    context.close()


@pytest.mark.parametrize("kind", PARAMETERS)
def test_report_opens_without_errors(kind, reports, opened):
    page, complaints = opened
    page.goto(reports[kind].as_uri())
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        images = page.locator("img").all()
        assert images
        for image in images:
            image.scroll_into_view_if_needed()
            assert image.evaluate("image => image.complete && image.naturalWidth > 100")
    for link in page.locator("nav a").all():
        link.click()
        assert page.locator(f"section{link.get_attribute('href')} h2").is_visible()
    assert complaints == []
    # A report blocks all scripts. axe is a script, so this test removes the rule.
    html = reports[kind].read_text(encoding="utf-8")
    rule = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    assert rule in html
    page.set_content(html.replace(rule, '<meta name="none" content="'))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = Axe().run(page).response["violations"]
        assert [item["id"] for item in found if item["impact"] in SERIOUS] == []


def test_narrow_page_keeps_words_whole(reports, browser):
    with browser.new_context(viewport={"width": 400, "height": 800}) as context:
        page = context.new_page()
        for path in reports.values():
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            assert min(image["width"] for image in _boxes(page, "figure img")) >= 570
            assert all(cell["width"] >= 100 for cell in _boxes(page, ".checks tbody th"))
            assert all(cell["height"] < 60 for cell in _boxes(page, ".pair th"))


def _boxes(page, selector):
    return [element.bounding_box() for element in page.locator(selector).all()]


def test_report_prints_pdf_pages(reports, browser, tmp_path):
    del browser  # requested, so that the test is skipped without Chromium
    path = print_pdf(reports["wallet"], tmp_path / "wallet.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.count(b"/Type /Page\n") > 3
