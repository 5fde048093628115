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


@pytest.mark.parametrize("days", [2, 30, 365])
def test_figures_equal_empyrical(days):
    if not (FOLDER / "empyrical").is_dir():
        missing("empyrical")
    returns = np.random.default_rng(days).normal(0.001, 0.03, days)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(FOLDER), json.dumps(returns.tolist())],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    rows = pd.DataFrame(
        {"time": pd.date_range("2025-01-01", periods=days, tz="UTC"), "return_": returns}
    )
    ours = tk.performance.sheet(rows).set_index("figure")["value"]
    assert len(theirs) == 9
    for name, value in theirs.items():
        assert ours[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name
