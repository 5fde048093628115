"""JupyterLab in Chromium: all tests share one lab and one browser, and each has a page."""

import os
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from tests.notebooks.runs import CHROMIUM
from toolkit.local_service import simulated_store

from .lab import run_lab
from .service import Service

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium; without it the tests are skipped, and fail in CI."""
    if CHROMIUM is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("no Chromium found: JupyterLab was NOT checked (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(browser, tmp_path_factory):
    """JupyterLab on an empty folder; it needs the browser, so it does not start without one."""
    folder = tmp_path_factory.mktemp("lab")
    root = folder / "notebooks"
    root.mkdir()
    with run_lab(root, folder / "private") as lab:
        yield lab


@contextmanager
def open_page(browser, lab, workspace=None):
    """Open the lab in a new page; a request that leaves this machine is an error."""
    outside: list[str] = []

    def block_remote(route):
        if route.request.url.startswith((lab.url, "data:", "blob:")):
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort()

    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.route("**/*", block_remote)
    try:
        page = context.new_page()
        lab.visit(page, workspace)
        yield page
    finally:
        context.close()
    assert outside == []


@pytest.fixture
def page(browser, lab):
    """A page with the open lab."""
    with open_page(browser, lab) as page:
        yield page


@pytest.fixture(scope="session")
def service():
    """A service on a port with a live clock; it can stop and restart."""
    service = Service(simulated_store(7, "tiny"))
    service.start()
    yield service
    service.close()
