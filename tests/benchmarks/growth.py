"""How time and memory grow with the number of rows."""

import ctypes
import gc
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True)
class Figure:
    """One measured number, which docs/scale.md may use."""

    what: str
    value: float

    def __str__(self):
        return f"{self.what}: {self.value:.3g}"


@dataclass(frozen=True)
class Growth:
    """Processor time and memory of one work at several sizes.

    Parameters
    ----------
    what : str
        The work.
    points : sequence of (rows, seconds, megabytes)
        Megabytes are the peak above what the process had before.
    """

    what: str
    points: Sequence[tuple[int, float, float]]

    def __str__(self):
        points = "; ".join(
            f"{rows:,}: {seconds:.3f} s, {size:.0f} MB" for rows, seconds, size in self.points
        )
        return f"{self.what}: {points}"


def measure_growth(what, prepare, work, sizes, *, rounds=2):
    """Measure a work at several sizes; the best of some rounds counts.

    Parameters
    ----------
    prepare : callable
        Returns the argument of `work` for a number of rows. It is not measured.
    work : callable
        The work. It is run once before it is measured.
    """
    points = []
    work(prepare(sizes[0]))  # its imports
    for rows in sizes:
        argument = prepare(rows)
        runs = [_measure_run(work, argument) for _ in range(rounds)]
        points.append((rows, min(run[0] for run in runs), min(run[1] for run in runs)))
        del argument
    return Growth(what, points)


def measure_growth_alone(what, find, prepare, work, sizes):
    """Measure a work once at several sizes, each time in a process of its own.

    What earlier works left in a process changes how much memory it needs.

    Parameters
    ----------
    find : callable
        Returns for a number of rows what `prepare` gets.
    prepare : callable
        Returns the argument of `work`. It runs in the process, and is not measured.
    work : callable
        The work. A module has it by its name, like `prepare`.
    """
    points = []
    for rows in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            points.append((rows, *pool.apply(_measure_prepared, (find(rows), prepare, work))))
    return Growth(what, points)


def _measure_prepared(name, prepare, work):
    return _measure_run(work, prepare(name))


def _measure_run(work, argument):
    gc.collect()
    # Freed memory that the process keeps would hide the peak.
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status_mb("VmRSS")
    begun = time.process_time()
    result = work(argument)
    seconds = time.process_time() - begun
    del result
    return seconds, max(0.0, _status_mb("VmHWM") - before)


def _status_mb(name):
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1_024 / 1e6
