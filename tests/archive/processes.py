"""Start modules of the tests in processes of their own."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments, prepare=None):
    """Start a module of the tests with arguments, after a function that prepares its process."""
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=prepare,  # noqa: PLW1509
    )


def finish(process):
    """Wait until a process ends, and return its output."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def run_with_permissions(*arguments):
    """Start a module of the tests. It obeys the permissions of folders, even if root starts it."""
    return run(*arguments, prepare=_obey_permissions)


def _obey_permissions():
    if sys.platform == "linux" and os.geteuid() == 0:
        drop_from_bounding_set, override_permissions = 24, 1  # of linux/prctl.h and capability.h
        ctypes.CDLL(None).prctl(drop_from_bounding_set, override_permissions, 0, 0, 0)
