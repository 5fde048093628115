"""Ten million fills in Parquet files: `tk.apply` beside pandas.

The recipe reads six columns and adds five sums by coin. The helper is `pnl.attribution` by coin,
which computes all its columns and finds repeated rows. Each way runs in an interpreter of its own.
Memory is the peak of the process and its workers, measured every 20 ms.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks import recipes

FILES, ROWS = 20, 500_000
ROUNDS = 3
RECIPE = """
import pandas as pd
rows = pd.read_parquet(FOLDER, columns=["coin", "px", "sz", "closed_pnl", "fee", "builder_fee"])
rows["volume"] = rows["px"] * rows["sz"]
sums = rows.groupby("coin")[["volume", "closed_pnl", "fee", "builder_fee"]].sum()
sums["net"] = sums["closed_pnl"] - sums["fee"]
"""
APPLY = """
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import time
import toolkit as tk
def call(pool=None):
    return tk.apply(tk.pnl.attribution, Path(FOLDER), by="coin", executor=pool)
if __name__ == "__main__":
"""
ALONE = APPLY + "    call()\n"
COLD = APPLY + "    with ProcessPoolExecutor(2) as pool:\n        call(pool)\n"
WARM = (
    COLD
    + """
        begun = time.time()
        call(pool)
        print(time.time() - begun)
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fills")
    for number in range(FILES):
        fills = recipes.make_fills(ROWS, accounts=250, seed=number)
        fills.to_parquet(
            folder / f"{number:02}.parquet", compression="zstd", row_group_size=100_000
        )
    return folder


def tree_megabytes(process):
    """Return the resident memory of a process and its children."""
    kilobytes = 0
    children = Path(f"/proc/{process}/task/{process}/children")
    try:
        numbers = [process, *map(int, children.read_text().split())]
        for number in numbers:
            for line in Path(f"/proc/{number}/smaps_rollup").read_text().splitlines():
                kilobytes += int(line.split()[1]) if line.startswith("Pss:") else 0
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it has ended
    return kilobytes / 1024


def run(code, folder, script):
    """Return the seconds, the megabytes, and what was printed."""
    script.write_text(f"FOLDER = {str(folder)!r}\n{code}")
    begun, most = time.time(), 0.0
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            most = max(most, tree_megabytes(process.pid))
            time.sleep(0.02)
        assert process.returncode == 0
        printed = process.stdout.read()
    return time.time() - begun, most, printed


def test_partitions_beside_pandas(folder, tmp_path, report):
    ways = {"pandas": RECIPE, "one process": ALONE, "two processes": COLD, "warm pool": WARM}
    seconds, megabytes = ({way: [] for way in ways} for _ in range(2))
    for _ in range(ROUNDS):
        for way, code in ways.items():
            taken, most, printed = run(code, folder, tmp_path / "way.py")
            seconds[way].append(float(printed) if way == "warm pool" else taken)
            megabytes[way].append(most)
    time_of = {way: statistics.median(taken) for way, taken in seconds.items()}
    memory_of = {way: statistics.median(taken) for way, taken in megabytes.items()}
    for way in list(ways)[1:]:
        report(
            f"attribution of {FILES * ROWS:,} fills by coin, {way}: "
            f"{time_of['pandas'] / time_of[way]:.2f} x as fast as pandas ({time_of[way]:.2f} s "
            f"against {time_of['pandas']:.2f} s), {memory_of[way] / memory_of['pandas']:.2f} of "
            f"its memory ({memory_of[way]:,.0f} MB against {memory_of['pandas']:,.0f} MB)"
        )
