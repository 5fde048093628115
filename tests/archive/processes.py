"""Start modules of the tests in processes of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: object) -> subprocess.Popen[str]:
    """Start a module of the tests with arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait until a process ends, and return its output."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output
