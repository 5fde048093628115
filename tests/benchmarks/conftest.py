"""Benchmarks print their figures at the end of the run."""

from collections.abc import Callable

import pytest

_LINES: list[str] = []


@pytest.fixture
def report() -> Callable[[object], None]:
    """Print a line at the end of the run."""
    return lambda line: _LINES.append(str(line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _LINES:
        terminalreporter.section("side by side")
        for line in _LINES:
            terminalreporter.write_line(line)
