"""Common rules of all tests: no network, no environment, the same random numbers."""

import gc
import ipaddress
import os
import signal
import sys
from collections import Counter

import hypothesis
import pytest

os.environ["MPLBACKEND"] = "Agg"
for name in ("TOOLKIT_BASE_URL", "TOOLKIT_API_KEY"):
    os.environ.pop(name, None)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # if a script started it in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=50, database=None
)
hypothesis.settings.load_profile("repeatable")


def _is_here(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in {"", "localhost"}


def _refuse_network(event, args):
    """Refuse connections that leave this machine; local ports and sockets work."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not _is_here(args[1][0]):
        raise AssertionError(f"a test tried to reach {args[1][0]}: tests are offline")


sys.addaudithook(_refuse_network)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude modules and tests from garbage collection, because they exist until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


LONGEST = ("tests/browser/", "tests/scale/", "tests/notebooks/", "tests/reports/")


def pytest_collection_modifyitems(items):
    """Start the longest tests first, so that they do not remain alone at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a file in one process, where they share fixtures; keep groups."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFileOrGroup(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).partition("::")[0]

    return ByFileOrGroup(config, log) if config.getvalue("dist") == "loadgroup" else None


NEVER_TESTED = (
    "the live service, macOS and Windows; `make bench` and `.ci/wheel` are runs of their own"
)


def pytest_unconfigure(config):
    """Print as the last line what was not tested, and how to test it: skips are overlooked."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    reporter.write_line(untested_line(reporter.stats.get("skipped", [])), yellow=True)


def untested_line(skipped):
    """Return one line with the number of skipped tests by reason, and what is never tested."""
    reasons = Counter(str(report.longrepr[2]) for report in skipped if report.longrepr)
    parts = [
        f"{count} tests: {reason.removeprefix('Skipped: ')}"
        for reason, count in sorted(reasons.items())
    ]
    return f"not tested: {'; '.join([*parts, NEVER_TESTED])}"
