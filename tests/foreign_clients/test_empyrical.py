"""Performance figures against those of empyrical, where the definitions agree."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from tests.foreign_clients.conftest import INSTALLED, missing

FOLDER = INSTALLED / "ccxt"
SCRIPT = Path(__file__).with_name("empyrical_figures.py")


def test_figures_equal_empyrical():
    if not (FOLDER / "empyrical").is_dir():
        missing("empyrical")
    series = [np.random.default_rng(n).normal(0.001, 0.03, n).tolist() for n in (2, 30, 365)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(FOLDER), json.dumps(series)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for returns, theirs in zip(series, json.loads(done.stdout), strict=True):
        time = pd.date_range("2025-01-01", periods=len(returns), tz="UTC")
        rows = pd.DataFrame({"time": time, "return_": returns})
        ours = tk.performance.sheet(rows).set_index("figure")["value"]
        assert len(theirs) == 9
        assert {name: ours[name] for name in theirs} == pytest.approx(theirs, rel=1e-9, abs=1e-9)
