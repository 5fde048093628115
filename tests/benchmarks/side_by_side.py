"""Two ways to do the same, measured in turn in one run: only their ratio is meaningful."""

import gc
import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """How many times faster one way is than another, in processor time.

    Parameters
    ----------
    stated : float
        The ratio that the documents state, or 0. `make bench` fails below half of it.
    """

    what: str
    slow: str
    fast: str
    slow_ms: float
    fast_ms: float
    stated: float = 0.0

    @property
    def value(self):
        """How many times as fast the fast way is."""
        return self.slow_ms / self.fast_ms

    def __str__(self):
        return (
            f"{self.what}: {self.fast} {self.value:.1f} x as fast as {self.slow} "
            f"({self.fast_ms:.2f} ms against {self.slow_ms:.2f} ms)"
        )


def side_by_side(what, slow, slow_way, fast, fast_way, *, rounds, stated=0.0):
    """Run both ways in turn and compare the medians."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for way, taken in zip((slow_way, fast_way), times, strict=True):
            gc.collect()
            begun = time.process_time()
            result = way()
            taken.append(time.process_time() - begun)
            del result
    slow_ms, fast_ms = (statistics.median(taken) * 1e3 for taken in times)
    return Ratio(what, slow, fast, slow_ms, fast_ms, stated)
