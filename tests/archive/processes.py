"""Processes of our own, run in the checkout."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: object) -> subprocess.Popen[str]:
    """Start a module of the tests."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for its end, and give what it said."""
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said
