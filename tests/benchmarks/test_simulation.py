"""What a simulated exchange costs: to draw, to keep, to open again, and in memory by the tile.

Seconds of processor time, of one run each, on whatever machine this is: figures to read.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolkit.local_service import simulated_store
from toolkit.simulation import simulate

FIRST_FRAME = """
import json, time
import toolkit as tk
imported = time.process_time()
session = tk.local(size="demo")
frame = tk.user_fills(tk.example.MARKET_MAKER)
assert len(frame) == 2_000
print(json.dumps([imported, time.process_time() - imported]))
"""
TILES = """
import json, re, sys
from pathlib import Path
from toolkit.local_service import tiled_store
store = tiled_store(7, Path(sys.argv[1]), int(sys.argv[2]), "tiny")
# Not `resource`: its peak begins with that of the process that started this one.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
fills = store.select_value("SELECT count(*) FROM fill")  # pages of the file count as memory, too
print(json.dumps([fills, int(peak[1]) / 1024]))
"""


def run(program, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def seconds(work):
    began = time.process_time()
    work()
    return time.process_time() - began


def test_time_of_tiny_exchange(report, tmp_path):
    drawn = seconds(lambda: simulate(7, "tiny"))
    kept = seconds(lambda: simulated_store(7, "tiny", tmp_path).close())
    report(f"tiny exchange: drawn in {drawn:.2f} s; drawn and kept on disk in {kept:.2f} s")
    assert drawn < kept


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    """Give the environment of a user's cache that holds the demo exchange."""
    folder = str(tmp_path_factory.mktemp("cache"))
    names = ("XDG_CACHE_HOME", "HOME")
    build = "import toolkit as tk; tk.local(size='demo', default=False).close(); print(0)"
    run(build, **dict.fromkeys(names, folder))
    return dict.fromkeys(names, folder)


def test_time_of_demo_exchange(report, tmp_path):
    drawn = seconds(lambda: simulate(7, "demo"))
    kept = seconds(lambda: simulated_store(7, "demo", tmp_path).close())
    (file,) = tmp_path.iterdir()
    report(
        f"demo exchange: drawn in {drawn:.1f} s; drawn and kept on disk in {kept:.1f} s, "
        f"{file.stat().st_size / 1e6:.0f} MB"
    )
    assert drawn < kept


def test_time_of_first_frame(report, cached):
    imported, first = min((run(FIRST_FRAME, **cached) for _ in range(3)), key=sum)
    report(
        f"first frame of a kept demo exchange: {first:.2f} s from tk.local() on, "
        f"after {imported:.2f} s for `import toolkit`"
    )
    assert first > 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read on Linux")
def test_memory_does_not_grow_with_tiles(report, tmp_path):
    few_fills, few = run(TILES, tmp_path / "few.db", 2)
    many_fills, many = run(TILES, tmp_path / "many.db", 8)
    report(
        f"tiles of tiny: {few_fills:,} fills of 2 tiles at a peak of {few:.0f} MB, "
        f"{many_fills:,} of 8 at {many:.0f} MB"
    )
    assert many_fills > 3 * few_fills
    assert many < 1.3 * few
