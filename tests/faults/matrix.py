"""The matrix of faults: what each operation does with each fault, and whether it recovers.

A cell is one operation and one fault. The fault hits one request of a pull of the tiny simulated
exchange: the first, the second, the middle or the last one. The cell has the worst outcome of these
pulls. ``python -m tests.faults.matrix`` prints the table, and ``--write`` writes it into
docs/faults.md; ``--runs`` is the number of pulls of a cell.
"""

import argparse
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

import toolkit as tk
from toolkit.client import open_session
from toolkit.contract.field_deviations import forget_deviations
from toolkit.times import DAY

DOCS: Final = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
RUNS: Final = 4
SEARCH: Final = 200
"""The most runs of a cell that can be wrong in silence."""
MOST_REQUESTS: Final = 200
OUTCOMES: Final = ("", "right", "error", "warned", "silent", "endless")
"""From the best to the worst: the fault had no place in the answers; the frame is right; a
`ToolkitError`; a warning; nothing is said; the pull does not come to an end."""

RETRIED: Final = ("status 429", "status 502", "refused", "reset", "cut", "short", "stall")
"""Faults after which the client sends the same request again."""

WHOLE: Final = ("metaAndAssetCtxs", "currentDepth", "batchClearinghouseStates")
"""Answers whose rows have no order."""
SNAPSHOT: Final = ("accountValueSnapshots",)
CURSORS: Final = (
    "userFillsByTime",
    "builderApprovedFillsByTime",
    "builderApprovedFundingByTime",
    "builderOrdersByTime",
)
HISTORIES: Final = (*CURSORS, "slippageHistory", "userNonFundingLedgerUpdates")
Frames = tuple[pd.DataFrame, ...]


@dataclass(frozen=True)
class Call:
    """A call of a fetch function.

    Attributes
    ----------
    fetch
        The fetch function.
    arguments, named
        Its arguments, without `session`.
    """

    fetch: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def pull(self, session):
        """Return the frames of the call."""
        frames = self.fetch(*self.arguments, **self.named, session=session)
        return (frames,) if isinstance(frames, pd.DataFrame) else tuple(frames)

    def resume(self, session, cursor):
        """Return the rows after a cursor."""
        frame = self.fetch(self.arguments[0], cursor=cursor, **self.named, session=session)
        assert isinstance(frame, pd.DataFrame)
        return frame


def make_calls(world, start=0):
    """Return the calls of the matrix by operation, over the accounts of a simulated exchange.

    The two largest histories begin at `start`.
    """
    user, builder = world["users"][0], world["builders"][0]
    paged = {"page_size": 200}
    return {
        "userFillsByTime": Call(tk.user_fills_by_time, (user, start), paged),
        "builderApprovedFillsByTime": Call(
            tk.builder_approved_fills_by_time, (builder, start), paged
        ),
        "builderApprovedFundingByTime": Call(
            tk.builder_approved_funding_by_time, (builder, 0), paged
        ),
        "builderOrdersByTime": Call(tk.builder_orders_by_time, (builder, 0)),
        "slippageHistory": Call(tk.slippage_history, ("BTC", 1_000, 0), {"page_size": 60}),
        "userNonFundingLedgerUpdates": Call(tk.user_non_funding_ledger_updates, (user,)),
        "userFills": Call(tk.user_fills, (user,)),
        "historicalOrders": Call(tk.historical_orders, (user,)),
        "metaAndAssetCtxs": Call(tk.meta_and_asset_ctxs),
        "currentDepth": Call(tk.current_depth),
        "batchClearinghouseStates": Call(tk.batch_clearinghouse_states, (world["users"][:5],)),
        "accountValueSnapshots": Call(tk.account_value_snapshots, (["USDC"],)),
    }


@dataclass(frozen=True)
class Outcome:
    """What a pull with faults came to.

    Attributes
    ----------
    name
        One of `OUTCOMES`.
    words
        The error, or what was said.
    frames
        The frames, also those of an error; empty if there are none.
    """

    name: str
    words: str = ""
    frames: Frames = ()


class Matrix:
    """The operations of the matrix on one session, with the right frames.

    Parameters
    ----------
    session
        The service without faults.
    confirm_end
        As `toolkit.connect` takes it.
    start
        As `make_calls` takes it.
    """

    def __init__(self, session, confirm_end=None, start=0):
        self.session = session
        self.confirm_end = confirm_end
        self.calls = make_calls(session.world, start)
        with self.connect(tk.testing.faulty(session, {})) as reader:
            self.truth = {name: call.pull(reader) for name, call in self.calls.items()}

    def connect(self, transport):
        """Return a session with a transport."""
        session = open_session(
            "http://localhost",
            transport=transport,
            most_points=MOST_REQUESTS * 100,
            confirm_end=self.confirm_end,
            default=False,
        )
        # It has asked for the list of coins, so that only the pull sends requests.
        session.markets["perps of "] = {coin: coin for coin in self.session.world["perp_coins"]}
        return session

    def damage(self, faults, share=1.0, seed=0):
        """Return a transport with faults, as `toolkit.testing.faulty` takes them."""
        return tk.testing.faulty(
            self.session, faults, share=share, seed=seed, sleep=lambda seconds: None
        )

    def run(self, operation, transport):
        """Return the outcome of a pull through a transport with faults."""
        with self.connect(transport) as session:
            found = self._pull(operation, session)
        return found if transport.injected else Outcome("")

    def _pull(self, operation, session):
        forget_deviations()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                frames = self.calls[operation].pull(session)
            except tk.ToolkitError as error:
                is_endless = tk.BudgetSpent in map(type, (error, error.__cause__))
                rows = getattr(error, "rows", None)
                frames = () if rows is None else (rows,) if hasattr(rows, "columns") else rows
                words = f"{type(error).__name__}: {error}"
                return Outcome("endless" if is_endless else "error", words, tuple(frames))
        if self.is_right(operation, frames):
            return Outcome("right", frames=frames)
        said = "; ".join(str(warning.message) for warning in caught)
        states = {frame.attrs["toolkit"]["complete"] for frame in frames}
        if said or not states <= {"yes", "latest"}:
            return Outcome("warned", said or ", ".join(states), frames)
        return Outcome("silent", frames=frames)

    def is_right(self, operation, frames):
        """Return whether frames have the right rows, in the right order if they have one."""
        truth = self.truth[operation]
        if len(frames) != len(truth):
            return False
        if operation in WHOLE:
            pairs = zip(map(count_rows, frames), map(count_rows, truth), strict=True)
            return all(rows == others for rows, others in pairs)
        return all(map(_is_same_history, frames, truth))

    def places(self, operation, runs):
        """Return the number of the damaged request and the seed of each run of a cell."""
        requests = int(self.truth[operation][0].attrs["toolkit"]["requests"])
        numbers = sorted({1, min(2, requests), -(-requests // 2), requests})
        return [(numbers[run % len(numbers)], run) for run in range(runs)]

    def worst_outcome(self, operation, fault, runs=RUNS):
        """Return the worst outcome of a cell."""
        worst = Outcome("")
        for number, seed in self.places(operation, runs):
            found = self.run(operation, self.damage({number: fault}, seed=seed))
            worst = max(worst, found, key=lambda outcome: OUTCOMES.index(outcome.name))
            if worst.name in ("silent", "endless"):
                break
        return worst

    # The ways back after a fault. Each returns an empty text, or what is wrong.

    def pull_again(self, operation, fault):
        """Pull through a transport with a fault in the first request, and then without faults."""
        transport = self.damage({1: fault})
        with self.connect(transport) as session:
            self._pull(operation, session)
            transport.is_active = False
            found = self._pull(operation, session)
        return "" if found.name == "right" else f"{found.name} {found.words}"

    def retry(self, operation, fault):
        """Pull through a transport with one fault, which a further attempt makes good."""
        for number, seed in self.places(operation, 2):
            found = self.run(operation, self.damage({number: fault}, seed=seed))
            if found.name != "right":
                return f"{found.name} {found.words}"
            if not found.frames[0].attrs["toolkit"]["retries"]:
                return "no retry is counted"
        return ""

    def resume(self, operation, fault):
        """Pull until the fault raises an error with a cursor, and continue from there."""
        for number, seed in self.places(operation, 2):
            transport = self.damage({number: fault}, seed=seed)
            with self.connect(transport) as session:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.calls[operation].pull(session)
                except tk.Incomplete as error:
                    if error.cursor is None:
                        continue
                    transport.is_active = False
                    rest = self.calls[operation].resume(session, error.cursor)
                    whole = pd.concat([error.rows, rest], ignore_index=True)
                    if not self.is_right(operation, [whole]):
                        return f"request {number}: {len(whole)} rows after {error.cursor}"
                except tk.ToolkitError:
                    continue
        return ""

    def refresh_again(self, operation, fault, archive):
        """Refresh an archive through a transport with a fault, and then without faults.

        The archive then has all rows, or says that it does not.
        """
        call, transport = self.calls[operation], self.damage({2: fault})
        with self.connect(transport) as session, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                try:
                    archive.refresh(call.fetch, *call.arguments, session=session, **call.named)
                except tk.ToolkitError:
                    assert transport.is_active, "the second refresh has no fault"
                transport.is_active = False
            frame = archive.frame(call.fetch, *_subjects(call), start=0)
        is_noted = frame.attrs["toolkit"]["complete"] != "yes"
        return "" if is_noted or self.is_right(operation, [frame]) else f"{len(frame)} rows"


def _subjects(call):
    return call.arguments[:-1] if call.arguments[-1] == 0 else call.arguments


def _is_same_history(frame, other):
    """Return whether frames have the same rows; those of one millisecond in any order."""
    if frame.equals(other) or len(frame) != len(other):
        return frame.equals(other)
    times = [name for name in ("time", "status_timestamp", "timestamp") if name in frame.columns]
    return frame[times[:1]].equals(other[times[:1]]) and count_rows(frame) == count_rows(other)


def count_rows(frame):
    """Return the number of each row of a frame."""
    return Counter(map(repr, frame.itertuples(index=False, name=None)))


def documented_cells(block="undetected"):
    """Return the cells that a table in docs/faults.md lists: pairs of fault and operation.

    These cells can be wrong in silence although each fault hits one request only. The table
    "unconfirmed" has further ones, with the default of `confirm_end`.
    """
    table = DOCS.read_text().partition(f"<!-- {block}:begin -->")[2].partition("<!-- ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return {(row[1].strip(), name) for row in rows for name in re.findall(r"`(\w+)`", row[2])}


UNCONFIRMED_FAULTS: Final = ("page empty", "page cut", "page dropped", "cursor ignored")
"""Faults for which the default of `confirm_end` is tested, too."""


def small_matrix(*, confirm_end=True):
    """Return the matrix with not more than a day of fills."""
    service = tk.local(seed=7, size="tiny", default=False)
    return Matrix(service, confirm_end=confirm_end, start=service.now_ms() - DAY)


def run_cells(matrix, fault, runs=RUNS):
    """Return the worst outcome of a fault in each operation.

    More runs are made in a cell that can be wrong in silence, until one is.
    """
    listed = documented_cells()
    return {
        name: matrix.worst_outcome(name, fault, SEARCH if (fault, name) in listed else runs)
        for name in matrix.calls
    }


def cells_table(cells):
    """Return the outcomes, fault -> operation -> outcome, as a table of Markdown.

    Faults with the same outcomes share a row.
    """
    names = list(next(iter(cells.values())))
    faults = {}
    for fault, row in cells.items():
        outcomes = " | ".join(row[name] or "-" for name in names)
        faults[outcomes] = [*faults.get(outcomes, []), fault]
    return "\n".join(
        [
            f"| fault | {' | '.join(f'`{name}`' for name in names)} |",
            "| --- |" + " --- |" * len(names),
            *(f"| {', '.join(alike)} | {outcomes} |" for outcomes, alike in faults.items()),
        ]
    )


if __name__ == "__main__":
    import stamina

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table into docs/faults.md")
    parser.add_argument("--runs", type=int, default=RUNS, help="the pulls of a cell")
    given = parser.parse_args()
    with stamina.set_testing(True, attempts=6):
        made = small_matrix()
        found = {
            fault: {name: cell.name for name, cell in run_cells(made, fault, given.runs).items()}
            for fault in tk.testing.FAULTS
        }
    print(cells_table(found))
    if given.write:
        sys.path.insert(0, str(DOCS.parent))
        from reference_pages import replace_block

        DOCS.write_text(replace_block(DOCS.read_text(), "cells", cells_table(found)))
