"""The estimate of docs/scale.md: a whole exchange for a year, from measured growth.

Every figure is computed from docs/benchmarks.json, which `make bench` writes, and from `EXCHANGE`.
tests/agreement/test_benchmark_pages.py compares the page with a new computation.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

YEAR_DAYS: Final = 365
FILLS: Final = 5_000_000_000
ACCOUNTS: Final = 2_000_000
ACCOUNTS_PER_COMMIT: Final = 500
PERPS: Final = 400
PAGE: Final = 2_000
PAGE_POINTS: Final = 10
QUOTAS: Final = (1_000, 5_000, 20_000, 100_000)
"""Points a minute."""
MOVING: Final = 0.05
"""Share of the accounts that trade on one day (assumed)."""
LARGEST: Final = 0.01
"""Share of all fills that the largest account has (assumed)."""
SNAPSHOT_POINTS: Final = 2
SNAPSHOTS_A_DAY: Final = 720
"""The most snapshots of all accounts in a day: the service allows 5 in 10 minutes."""
SORTED_BYTES: Final = 400
"""Temporary bytes of a row that is compacted: docs/archive.md."""
FILE_MB: Final = 256
WANTED_SECONDS: Final = 60
"""How long a question about everything should take on the cluster."""


@dataclass(frozen=True)
class Rate:
    """What a work costs: measured (rows, seconds, megabytes), the sizes in order."""

    points: Sequence[Sequence[float]]

    @property
    def seconds(self) -> float:
        """Seconds of one row at the largest measured size."""
        rows, seconds, _ = self.points[-1]
        return seconds / rows

    @property
    def bytes(self) -> float:
        """Bytes of memory of one row at the largest measured size."""
        rows, _, megabytes = self.points[-1]
        return megabytes * 1e6 / rows

    def cost(self, rows: float) -> tuple[float, float]:
        """Return seconds and bytes for some rows; few rows cost what the next size took.

        Examples
        --------
        >>> rate = Rate([(10, 1.0, 1.0), (100, 5.0, 2.0)])
        >>> rate.cost(3), rate.cost(11), rate.cost(1_000)
        ((1.0, 1000000.0), (5.0, 2000000.0), (50.0, 20000000.0))
        """
        for size, seconds, megabytes in self.points:
            if rows <= size:
                return seconds, megabytes * 1e6
        return rows * self.seconds, rows * self.bytes


@dataclass(frozen=True)
class Question:
    """A common question: how many rows it reads, and which measured work it is like."""

    text: str
    rows: float
    work: str


A_DAY: Final = FILLS / YEAR_DAYS
AN_ACCOUNT: Final = FILLS / ACCOUNTS
QUESTIONS: Final = (
    Question("the fills of one account as a frame", AN_ACCOUNT, "frame of the account"),
    Question("PnL attribution of one account", AN_ACCOUNT, "pnl.attribution, pandas"),
    Question("equity curve of one account", AN_ACCOUNT, "pnl.equity, pandas"),
    Question("positions of the largest account", FILLS * LARGEST, "pnl.positions, pandas"),
    Question("volume of one coin on one day", A_DAY / PERPS, "scan and sum fees by coin, duckdb"),
    Question("liquidations of one day", A_DAY, "scan and sum fees by coin, duckdb"),
    Question("fees of a builder in a month", FILLS / 12, "scan and sum fees by coin, duckdb"),
    Question("fees and volume by coin", FILLS, "scan and sum fees by coin, duckdb"),
    Question("PnL attribution of all accounts", FILLS, "pnl.attribution, pandas"),
    Question("round trips of all accounts, for a ranking", FILLS, "pnl.round_trips, pandas"),
)


def growth_exponent(points: Sequence[Sequence[float]]) -> float:
    """Return the exponent of time between the last two sizes: 1 is linear.

    Examples
    --------
    >>> growth_exponent([(10, 1.0, 0), (100, 1.5, 0), (1_000, 15, 0)])
    1.0
    """
    (rows, seconds, _), (more_rows, more_seconds, _) = points[-2:]
    return math.log(more_seconds / seconds) / math.log(more_rows / rows)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def measured_rates(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Rate]:
    """Return the cost of one row by the name of the work."""
    return {growth["what"]: Rate(growth["points"]) for growth in sections["test_growth"]["growth"]}


def scale_page(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of docs/scale.md."""
    rates = measured_rates(sections)
    figures = {figure["what"]: figure["value"] for figure in sections["test_growth"]["figures"]}
    lines = [
        "# Estimate: a whole exchange for a year",
        "",
        f"This page estimates the cost of {FILLS:,} fills, {ACCOUNTS:,} accounts and {PERPS} perps "
        f"in {YEAR_DAYS} days. "
        "`python docs/benchmark_pages.py` computes this document from the growth that `make bench` "
        f"measured ([benchmarks](benchmarks.md), {sections['test_growth']['date']}). The estimate "
        "assumes that time and memory for each row are those of the largest measured size. If "
        "other programs disturbed the measurement, the estimate is too high. Two more figures are "
        f"assumptions: one account has {_percent(LARGEST)} of all fills, and {_percent(MOVING)} of "
        "the accounts trade on a given day.",
        "",
        *_storage_lines(figures["bytes of an archived fill"]),
        *_fetch_lines(rates),
        *_question_lines(rates),
        *_limit_lines(rates, figures["seconds of a refresh without new rows"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _storage_lines(bytes_a_row: float) -> list[str]:
    total = FILLS * bytes_a_row
    return [
        "## Rows, bytes, files",
        "",
        *table(
            ("what", "figure"),
            [
                ("fills a day", f"{A_DAY:,.0f}"),
                ("fills of an account, on average", f"{AN_ACCOUNT:,.0f}"),
                (
                    f"fills of the largest account, {_percent(LARGEST)} of all",
                    f"{FILLS * LARGEST:,.0f}",
                ),
                ("bytes of an archived fill, measured", f"{bytes_a_row:.0f}"),
                ("bytes of the archive", _bytes(total)),
                (f"files of {FILE_MB} MB", f"{total / FILE_MB / 1e6:,.0f}"),
                (
                    f"commits of a refresh of all accounts: two for {ACCOUNTS_PER_COMMIT} accounts",
                    f"{2 * ACCOUNTS // ACCOUNTS_PER_COMMIT:,}",
                ),
                ("size of each of 12 partitions by month", _bytes(total / 12)),
                (f"size of each of {YEAR_DAYS} partitions by day", _bytes(total / YEAR_DAYS)),
            ],
        ),
        "",
    ]


def _fetch_lines(rates: Mapping[str, Rate]) -> list[str]:
    requests = FILLS / (PAGE - 1) + ACCOUNTS
    moving = ACCOUNTS * MOVING
    loads = {
        "the year, once": requests * PAGE_POINTS,
        "each day, every account": (ACCOUNTS + A_DAY / (PAGE - 1)) * PAGE_POINTS,
        f"each day, the {_percent(MOVING)} of the accounts that changed": (
            moving + A_DAY / (PAGE - 1)
        )
        * PAGE_POINTS
        + SNAPSHOT_POINTS * SNAPSHOTS_A_DAY,
    }
    rows = [
        (what, f"{points:,.0f}", *(_quota_time(points / quota) for quota in QUOTAS))
        for what, points in loads.items()
    ]
    fetch = rates["fetch from a service in the same process, rows checked"].seconds
    append = rates["append: the first refresh, with its fetching"].seconds
    return [
        "## Points and hours",
        "",
        f"A page has {PAGE:,} rows and costs {PAGE_POINTS} points. In a long history, each page "
        f"brings {PAGE - 1:,} new rows, because the last tie of a page is requested again (counted "
        "as one row). Each account needs one additional page, its last. The year takes "
        f"{requests:,.0f} requests. An account of two pages or more needs one more request, which "
        "confirms the end of its history, unless `confirm_end=False`. The table does not "
        f"contain these requests, at most {ACCOUNTS:,}. The last row of the table contains "
        f"{SNAPSHOT_POINTS * SNAPSHOTS_A_DAY:,} points for snapshots of all accounts, which show "
        f"the accounts that changed. The service allows {SNAPSHOTS_A_DAY} snapshots a day, and "
        "this estimate requests all of them.",
        "",
        *table(("what", "points", *(f"at {quota:,} points a minute" for quota in QUOTAS)), rows),
        "",
        f"Processor time of the client: {_hours(FILLS * fetch)} to fetch and check all rows, "
        f"{_hours(FILLS * append)} to fetch and archive them.",
        "",
    ]


def _question_lines(rates: Mapping[str, Rate]) -> list[str]:
    rows = []
    most = 0.0
    for question in QUESTIONS:
        seconds, memory = rates[question.work].cost(question.rows)
        most = max(most, seconds)
        rows.append(
            (
                question.text,
                f"{question.rows:,.0f}",
                question.work,
                _duration(seconds),
                _bytes(memory),
                f"{max(1, math.ceil(seconds / WANTED_SECONDS)):,}",
            )
        )
    return [
        "## The ten most common questions",
        "",
        "We assume that the files are sorted, so that a question reads only the rows that it "
        "needs. Time and memory are computed from the measured work in the same row: a pandas "
        "helper or a scan with DuckDB. If a question has fewer rows than the largest measured "
        "size, its cost is that of the next larger measured size. The table overstates the memory "
        "of a scan, because this memory grows more slowly than the rows. The column "
        f'"cores" shows how many cores answer the question within {WANTED_SECONDS} s.',
        "",
        *table(("question", "rows", "measured work", "time on one core", "memory", "cores"), rows),
        "",
        f"The largest question determines the size of the cluster: {_cores(most)} answer it within "
        f"{WANTED_SECONDS} s, or {_cores(most / 60)} within an hour.",
        "",
    ]


def _limit_lines(rates: Mapping[str, Rate], refresh: float) -> list[str]:
    compact, verify = rates["compact"], rates["verify"]
    frame = rates["frame of the account"]
    each_day = ACCOUNTS * PAGE_POINTS
    limits = (
        f"**A refresh of every account each day** costs {each_day / 1e6:,.0f} million points. At "
        f"5,000 points a minute, it takes {each_day / 5_000 / 60:,.0f} h, which is more than a "
        "day. Solution: `archive.plan_refresh` compares snapshots of all accounts, and selects "
        "only the accounts that changed.",
        f"**One refresh for each account** takes {refresh * 1e3:.0f} ms of processor time without "
        f"new rows, or {_hours(ACCOUNTS * refresh)} for all accounts. Solution: refresh many "
        "accounts in one call, which shares commits, and use several workers, each with its own "
        "archive.",
        f"**A frame of the largest account** needs {_bytes(FILLS * LARGEST * frame.bytes)} of "
        "memory in pandas. Solution: call a helper on a scan. It then reads the rows in portions, "
        "except if it follows a history (positions, lots): such a helper still reads all rows of "
        "the account.",
        f"**compact** sorts a whole table on one core. It takes {_hours(FILLS * compact.seconds)} "
        f"and {_bytes(FILLS * SORTED_BYTES)} of temporary files. Possible solution: one worker "
        f"for each month, with {_bytes(FILLS * SORTED_BYTES / 12)} of temporary files each.",
        f"**verify** reads every row, which takes {_hours(FILLS * verify.seconds)} on one core. "
        "Possible solution: verify only the months that changed since the last freeze.",
        "**The local service** keeps its store in one SQLite file on one machine. Solution: read "
        "an exchange of this size from the archive instead of a service.",
    )
    numbered = [f"{number}. {limit}" for number, limit in enumerate(limits, start=1)]
    return ["## Where today's design reaches its limits first", "", *numbered]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _cores(seconds: float) -> str:
    return f"{max(1, math.ceil(seconds / WANTED_SECONDS)):,} cores"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1e3:,.1f} ms"
    return f"{seconds:,.0f} s" if seconds < 600 else _hours(seconds)


def _quota_time(minutes: float) -> str:
    return f"{minutes / 60:,.0f} h" if minutes >= 60 else f"{minutes:.0f} min"


def _hours(seconds: float) -> str:
    return f"{seconds / 3_600:,.1f} h"


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"
